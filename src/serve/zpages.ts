// /flagz and /statusz: what this process was started with, and what it is.

import { formatJsonTime, formatUnixDate } from './go-time.ts'
import { negotiateForm, type Form } from './negotiate.ts'
import type { Page } from './reply.ts'
import type { Reply } from './http-server.ts'

const component = 'kube-proxy'

const warning =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.'

export interface ProcessStatus {
  readonly startMs: number
  readonly nowMs: number
  /** Without the leading v. */
  readonly version: string
  /** The Kubernetes version whose behaviour this follows: "1.37". */
  readonly emulationVersion: string
  /** The first parts of the paths worth knowing: "/metrics". */
  readonly paths: readonly string[]
  /** What the mode has to say, in lines; only shown as text. */
  readonly details?: string | undefined
}

export function flagzPage(readFlags: () => Readonly<Record<string, string>>): Page {
  return ({ accept }) => {
    const flags = Object.entries(readFlags()).sort(([a], [b]) => (a < b ? -1 : 1))
    const text = `\n${component} flagz\n${warning}\n${flags.map(([name, value]) => `${name}=${value}\n`).join('')}`
    return zpage(negotiateForm(accept, 'Flagz'), 'Flagz', { text, fields: { flags: Object.fromEntries(flags) } })
  }
}

export function statuszPage(decodeStatus: () => ProcessStatus): Page {
  return ({ accept }) => {
    const { startMs, nowMs, version, emulationVersion, paths, details } = decodeStatus()
    const upSeconds = Math.max(0, Math.floor((nowMs - startMs) / 1000))
    const text = `
${component} statusz
${warning}

Started: ${formatUnixDate(startMs)}
Up: ${formatUptime(upSeconds)}
Node version: ${process.version}
Binary version: ${version}
Emulation version: ${emulationVersion}
Paths: ${paths.join(' ')}
${details === undefined || details === '' ? '' : `\n${details}\n`}`
    const fields = {
      startTime: formatJsonTime(Math.floor(startMs / 1000) * 1000),
      uptimeSeconds: upSeconds,
      // The field is required and for people: it says what runs this, whatever its name.
      goVersion: `node ${process.version}`,
      binaryVersion: version,
      emulationVersion,
      paths,
    }
    return zpage(negotiateForm(accept, 'Statusz'), 'Statusz', { text, fields })
  }
}

interface Content {
  readonly text: string
  readonly fields: Readonly<Record<string, unknown>>
}

async function zpage(form: Form | undefined, kind: 'Flagz' | 'Statusz', content: Content): Promise<Reply> {
  if (form === undefined) return notAcceptable
  if (form.kind === 'text') {
    return { status: 200, headers: { 'Content-Type': 'text/plain; charset=utf-8' }, body: content.text }
  }
  const { encoding, version } = form
  const object = { kind, apiVersion: `config.k8s.io/${version}`, metadata: { name: component }, ...content.fields }
  const headers: Record<string, string> = {
    'Content-Type': `application/${encoding};g=config.k8s.io;v=${version};as=${kind}`,
  }
  if (version === 'v1alpha1') {
    const page = kind.toLowerCase()
    headers.Warning = `299 - "This version of the ${page} endpoint is deprecated. Please use a newer version."`
  }
  return { status: 200, headers, body: encoding === 'json' ? JSON.stringify(object, undefined, 2) : await yaml(object) }
}

async function yaml(object: object): Promise<string> {
  // Loaded on use, which is rare.
  const { stringify } = await import('yaml')
  return stringify(object, { sortMapEntries: true })
}

const notAcceptable: Reply = {
  status: 406,
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(
    {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'only the following media types are accepted: application/json, application/yaml, text/plain',
      reason: 'NotAcceptable',
      code: 406,
    },
    undefined,
    2,
  ),
}

function formatUptime(seconds: number): string {
  const twoDigits = (value: number): string => String(value % 60).padStart(2, '0')
  const minutes = Math.floor(seconds / 60)
  return `${Math.floor(minutes / 60)} hr ${twoDigits(minutes)} min ${twoDigits(seconds)} sec`
}
