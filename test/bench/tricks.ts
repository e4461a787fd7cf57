// What each trick about the process saves: the program as it is shipped beside copies that lack one of them, in turns.
//   npm run bench:tricks -- [--rounds 8] [--node VERSION] [--all] [NAME ...]
//
// Ends with 1 when a trick saves less than it must. The Node is that of the image, or another version that
// scripts/release/node-runtimes.mjs has. --all shows all figures. docs/adr/0014-tricks-with-proof.md lists the tricks.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { TestApiServer } from '../support/api-server/api-server.ts'
import { createCertificates } from '../support/api-server/certificates.ts'
import { benchNode, clusterOf } from '../support/api-server/sample-cluster.ts'
import { writeKubeconfig } from './beside-api.ts'
import { shippedProgram } from './beside-contestant.ts'
import { table } from './figures.ts'
import { columns, type Figures, measureTurn, type Turn } from './measure-turn.ts'
import { enterOwnNetwork } from './netns.ts'
import type { ApiObject } from '../support/api-server/objects.ts'

const CLUSTERS = {
  start: { services: 1000, changes: 0, restMs: 4000 },
  changes: { services: 1000, changes: 400, restMs: 1000 },
  large: { services: 50_000, changes: 0, restMs: 0 },
} satisfies Record<string, Omit<Turn, 'mode'> & { services: number }>

interface Trick {
  readonly name: string
  readonly measuredAt: keyof typeof CLUSTERS
  readonly saves: keyof Figures
  /** In the unit of the figure, or in percent of what the program needs without it. */
  readonly atLeast: number | `${number}%`
  /** Pieces of the program and what stands in their place without the trick. */
  readonly without: readonly (readonly [piece: string, instead: string])[]
  /** V8 compiles all at each start. */
  readonly withoutCodeCache?: true
}

const flag = (text: string) => [`setV8Flag("--${text}");`, ''] as const

const TRICKS: readonly Trick[] = [
  {
    name: 'code-cache',
    measuredAt: 'start',
    saves: 'startCpu',
    atLeast: '5%',
    without: [],
    withoutCodeCache: true,
  },
  {
    name: 'http-without-import',
    measuredAt: 'start',
    saves: 'peak',
    atLeast: 1,
    // As an import does.
    without: [['const { Agent, createServer, request } =', 'const { Agent, createServer, request, WebSocket } =']],
  },
  {
    name: 'optimize-later',
    measuredAt: 'start',
    saves: 'startCpu',
    atLeast: '5%',
    without: [['patience.longer.forEach(setV8Flag);', '']],
  },
  {
    name: 'no-parallel-scavenge',
    measuredAt: 'start',
    saves: 'startCpu',
    atLeast: '2%',
    without: [flag('no-parallel-scavenge')],
  },
  { name: 'collect-garbage', measuredAt: 'start', saves: 'rest', atLeast: 1, without: [['collectGarbage,', '']] },
  { name: 'malloc-trim', measuredAt: 'start', saves: 'rest', atLeast: 1, without: [['trimAllocator,', '']] },
  {
    name: 'forget-program-pages',
    measuredAt: 'start',
    saves: 'rest',
    atLeast: 1,
    without: [['trimAllocator,\n\t\tforgetProgramPages', 'trimAllocator']],
  },
  {
    name: 'semi-space-growth-factor',
    measuredAt: 'changes',
    saves: 'busy',
    atLeast: 1,
    without: [flag('semi-space-growth-factor=1')],
  },
  {
    name: 'pause-reading',
    measuredAt: 'changes',
    saves: 'changesCpu',
    atLeast: '10%',
    without: [['if (this.#bytes <= MUCH_BYTES) this.#socket.pause();', '']],
  },
  {
    name: 'heap-growing-percent',
    measuredAt: 'large',
    saves: 'peak',
    atLeast: 1,
    without: [flag('heap-growing-percent=60')],
  },
  {
    name: 'no-allocation-site-pretenuring',
    measuredAt: 'large',
    saves: 'peak',
    atLeast: 1,
    without: [flag('no-allocation-site-pretenuring')],
  },
  {
    name: 'send-thread',
    measuredAt: 'large',
    saves: 'live',
    atLeast: '2%',
    without: [['this.#isUp = Atomics.load(this.#words, 0) === STATE.idle', 'this.#isUp = false']],
  },
  {
    name: 'string-pool',
    measuredAt: 'large',
    saves: 'peak',
    atLeast: 1,
    without: [
      ['if (length > MAX_LENGTH) return bytes', 'if (length > 0) return bytes'],
      ['if (text.length === 0 || text.length > MAX_LENGTH) return text', 'return text'],
    ],
  },
]

const { values, positionals } = parseArgs({
  options: {
    rounds: { type: 'string', default: '8' },
    node: { type: 'string' },
    all: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const rounds = Number(values.rounds)
const scripts = new URL('../../../../scripts/release/', import.meta.url)
const { compileParts } = (await import(new URL('bundle.mjs', scripts).href)) as {
  compileParts: (out: string, node: string) => void
}
const { imageNode, nodeRuntime } = (await import(new URL('node-runtimes.mjs', scripts).href)) as {
  imageNode: string
  nodeRuntime: (version: string) => string
}
const node = nodeRuntime(values.node ?? imageNode)
const chosen = TRICKS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
const folder = mkdtempSync(join(tmpdir(), 'bench-tricks-'))

/** A copy of the release that lacks a trick; the path of its program. */
function copyWithout({
  name,
  without,
  withoutCodeCache,
}: Pick<Trick, 'name' | 'without' | 'withoutCodeCache'>): string {
  const copy = join(folder, name)
  cpSync(dirname(shippedProgram), copy, { recursive: true })
  const left = new Set(without.map(([piece]) => piece))
  for (const file of readdirSync(copy)) {
    if (withoutCodeCache === true && file.endsWith('.bin')) rmSync(join(copy, file))
    if (!file.endsWith('.cjs')) continue
    let text = readFileSync(join(copy, file), 'utf8')
    for (const [piece, instead] of without) {
      if (text.includes(piece)) left.delete(piece)
      text = text.replace(piece, instead)
    }
    writeFileSync(join(copy, file), text)
  }
  if (left.size > 0) throw new Error(`Cannot take ${name} out of the program: it has no ${[...left].join(', ')}`)
  if (withoutCodeCache !== true) compileParts(copy, join(node, 'bin/node'))
  return join(copy, 'kube-proxy.cjs')
}

/** Figures of the program and of the copies, by round. */
async function measure(tricks: readonly Trick[], measuredAt: keyof typeof CLUSTERS) {
  const { services, ...turn } = CLUSTERS[measuredAt]
  const { ca, server: tls } = createCertificates()
  await using server = await TestApiServer.start({ tls })
  const cluster = [...clusterOf({ services, endpointsPerService: 10 })]
  server.store.applyAll([benchNode('10.255.255.1'), ...cluster])
  const authority = Buffer.from(ca).toString('base64')
  const kubeconfig = writeKubeconfig(folder, { server: server.url, 'certificate-authority-data': authority }, {})
  const put = async (object: ApiObject) => void server.store.apply(structuredClone(object))
  const slices = cluster.filter(({ kind }) => kind === 'EndpointSlice')
  const programs = [{ name: 'with-all', without: [] }, ...tricks].map(copyWithout)
  const figures: Figures[][] = []
  for (let round = -1; round < rounds; round++) {
    const ofRound: Figures[] = []
    for (const program of programs) {
      ofRound.push(
        await measureTurn(
          [join(node, 'bin/node'), program],
          { mode: 'nftables', ...turn },
          { kubeconfig, put },
          slices,
        ),
      )
    }
    // The first fills caches.
    if (round >= 0) figures.push(ofRound)
    console.error(`${measuredAt}: round ${round + 1} of ${rounds}`)
  }
  return figures
}

interface Saving {
  readonly mean: number
  /** Of the mean. */
  readonly error: number
  readonly percent: number
}

function savingOf(figures: readonly Figures[][], at: number, key: keyof Figures): Saving {
  const differences = figures.map((round) => round[at]![key]! - round[0]![key]!)
  const mean = meanOf(differences)
  const variance = meanOf(differences.map((each) => (each - mean) ** 2))
  const without = meanOf(figures.map((round) => round[at]![key]!))
  return { mean, error: Math.sqrt(variance / Math.max(1, rounds - 1)), percent: (100 * mean) / without }
}

function meanOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0) / numbers.length
}

enterOwnNetwork()
const rows: string[][] = []
let isWorthIt = true
for (const measuredAt of Object.keys(CLUSTERS) as (keyof typeof CLUSTERS)[]) {
  const tricks = chosen.filter((each) => each.measuredAt === measuredAt)
  if (tricks.length === 0) continue
  const figures = await measure(tricks, measuredAt)
  for (const [i, trick] of tricks.entries()) {
    const keys = values.all ? (Object.keys(figures[0]![0]!) as (keyof Figures)[]) : [trick.saves]
    for (const key of keys) {
      const { mean, error, percent } = savingOf(figures, i + 1, key)
      const least = typeof trick.atLeast === 'number' ? trick.atLeast : (mean / percent) * parseFloat(trick.atLeast)
      // One that saves too little by chance is measured again with more rounds.
      const saves = mean + error >= least
      if (key === trick.saves) isWorthIt &&= saves
      const verdict = key !== trick.saves ? '' : saves ? `yes (${trick.atLeast})` : `NO (${trick.atLeast})`
      rows.push([
        trick.name,
        columns[key],
        `${mean.toFixed(1)} ± ${error.toFixed(1)}`,
        `${percent.toFixed(1)} %`,
        verdict,
      ])
    }
  }
}
rmSync(folder, { recursive: true })
console.log(table(['trick', 'figure', 'saved', 'of', 'worth it (at least)'], rows))
process.exit(isWorthIt ? 0 : 1)
