// Where explain and doctor learn what they need: from the running proxy, from files, from an API server, from a dump.

import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { RunOptions } from '../config/run-options.ts'
import { knownFromDump, parseDump } from '../explain/dump.ts'
import type { KernelState } from '../explain/explain.ts'
import type { Known } from '../explain/known.ts'
import { knownFromObjects, readApiObjects, readKnownFromProxy, readManifestObjects } from '../explain/read-known.ts'
import { canonicalIp } from '../lib/ip.ts'
import { modeNamed } from '../modes/all.ts'
import { silentLogger, type LogSettings } from '../lib/log.ts'
import type { SplitArguments } from './explain-arguments.ts'
import { loadRunOptions } from './load-options.ts'

export interface ReadKnown {
  readonly known: Known
  readonly kernel: KernelState | 'this machine' | undefined
}

type Given = ReadonlyMap<string, unknown>

export async function readKnown({ own }: SplitArguments, given: Given): Promise<ReadKnown> {
  const dumpFile = own.get('dump')
  const dump = dumpFile === undefined ? undefined : parseDump(readDump(dumpFile), dumpFile)
  const text = (name: string) => (given.get(name) as string | undefined) ?? ''
  const nodeName = own.get('node') ?? text('hostname-override')
  if (text('manifests') !== '' || text('kubeconfig') !== '' || text('master') !== '') {
    const options = await loadQuietly(withNode(given, nodeName))
    return { known: await readFromObjects(options, nodeName), kernel: dump?.state }
  }
  if (dump !== undefined && text('control-socket') === '') {
    return { known: knownFromDump(dump, addressesOf(own.get('node-addresses')), modeNamed), kernel: dump.state }
  }
  const known = await readKnownFromProxy(text('control-socket'))
  return { known, kernel: dump?.state ?? 'this machine' }
}

async function readFromObjects(options: RunOptions, nodeName: string): Promise<Known> {
  const { config, master, manifests } = options
  const isThisMachine = nodeName === '' || nodeName.toLowerCase() === hostname().toLowerCase()
  if (manifests !== '') {
    const objects = readManifestObjects(manifests)
    return knownFromObjects({ source: `manifests in ${manifests}`, config, objects, isThisMachine })
  }
  const objects = await readApiObjects({ ...config.clientConnection, master })
  return knownFromObjects({ source: `the API server ${objects.server}`, config, objects, isThisMachine })
}

function withNode(given: Given, nodeName: string): Given {
  return nodeName === '' ? given : new Map([...given, ['hostname-override', nodeName]])
}

/** What the proxy would warn of at its start is not the question here. */
function loadQuietly(given: Given): Promise<RunOptions> {
  const settings: LogSettings = { format: () => '', sink: () => {}, verbosity: 0, now: () => 0 }
  return loadRunOptions(given, { log: silentLogger, settings, apply: () => {} })
}

function readDump(file: string): string {
  return readFileSync(file === '-' ? 0 : file, 'utf8')
}

function addressesOf(text: string | undefined): string[] {
  return (text ?? '').split(',').flatMap((each) => canonicalIp(each.trim()) ?? [])
}
