// The table of this program beside kube-proxy, as README.md and docs/performance.md have it: both from the same run.

import { readFileSync, writeFileSync } from 'node:fs'
import { median } from './figures.ts'

export interface Figures {
  readonly startMs: number
  readonly startCpuMs: number
  /** Without the programs that it ran. */
  readonly startOwnCpuMs: number
  readonly changeMs: number
  readonly churnCpuMs: number
  readonly churnOwnCpuMs: number
  readonly rssMb: number
}

export interface Measured {
  readonly services: number
  /** One of each round. */
  readonly ours: readonly Figures[]
  readonly theirs: readonly Figures[]
}

/** What a reader must know to have the same figures. */
export interface Circumstances {
  readonly date: string
  readonly commit: string
  readonly peer: string
  readonly node: string
  readonly mode: string
  readonly api: string
  readonly endpoints: number
  readonly rounds: number
  readonly changes: number
  readonly churn: number
  readonly churnEveryMs: number
  readonly load: string
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`
const milliseconds = (ms: number) => `${ms.toFixed(ms < 10 ? 1 : 0)} ms`

const MEASURES: readonly (readonly [keyof Figures, string, (value: number) => string])[] = [
  ['startMs', 'start until a client is served', seconds],
  ['startCpuMs', 'CPU of the start', seconds],
  ['startOwnCpuMs', 'of it of the process itself', seconds],
  ['changeMs', 'one change until a client sees it', milliseconds],
  ['churnCpuMs', 'CPU of {churn} changes', seconds],
  ['churnOwnCpuMs', 'of it of the process itself', seconds],
  ['rssMb', 'memory after them', (mb) => `${mb.toFixed(0)} MB`],
]

export function formatBeside(measured: readonly Measured[], about: Circumstances): string {
  const rows = measured.flatMap(({ services, ours, theirs }) =>
    MEASURES.map(([key, title, format], i) => {
      const [us, them] = [ours, theirs].map((each) => median(each.map((figures) => figures[key]))) as [number, number]
      const cells = [
        i === 0 ? services.toLocaleString('en') : '',
        title.replace('{churn}', String(about.churn)),
        format(us),
        format(them),
        `**${(us / them).toFixed(us / them < 0.1 ? 3 : 2)}**`,
      ]
      return `| ${cells.join(' | ')} |`
    }),
  )
  return `| services | | kube-proxy-ts | ${about.peer} | ours / theirs |
| --- | --- | --- | --- | --- |
${rows.join('\n')}

Medians of ${about.rounds} rounds in turns, ${about.date}, commit ${about.commit}, Node ${about.node}, mode ${about.mode}, ${about.endpoints} endpoints per service, ${about.api},
load of the machine ${about.load}. From the start of the process, or the request that changes an object (${about.changes} in each round), to the first connection that is
answered rightly. CPU is of the process and the programs that it ran, of a start until a second after that, and for one change
in ${about.churnEveryMs} ms until two seconds after the last.`
}

export const BESIDE_BEGIN = '<!-- beside: made by npm run bench:beside -- --write -->'
export const BESIDE_END = '<!-- /beside -->'

/** The table between the two marks of a page. */
export function besideOf(page: string): string {
  const from = page.indexOf(BESIDE_BEGIN)
  const to = page.indexOf(BESIDE_END)
  if (from < 0 || to < from) throw new Error(`Cannot find the table: the page needs ${BESIDE_BEGIN} and ${BESIDE_END}`)
  return page.slice(from + BESIDE_BEGIN.length, to).trim()
}

export function writeBeside(files: readonly string[], text: string): void {
  for (const file of files) {
    const page = readFileSync(file, 'utf8')
    // Found before anything is written, and by its place: it may be empty.
    besideOf(page)
    const before = page.slice(0, page.indexOf(BESIDE_BEGIN) + BESIDE_BEGIN.length)
    writeFileSync(file, `${before}\n\n${text}\n\n${page.slice(page.indexOf(BESIDE_END))}`)
  }
}
