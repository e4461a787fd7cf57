// What the proxies and the kernel hold, and whether it grows.

import { readdirSync, readFileSync } from 'node:fs'
import type { Cluster } from './cluster.ts'
import { kernelObjects } from './kernel-objects.ts'
import type { SoakMode } from './options.ts'
import { median, slopePerHour } from './statistics.ts'

export interface ProcessSample {
  readonly atMs: number
  readonly pid: number
  readonly rssMb: number
  readonly descriptors: number
  readonly threads: number
}

/** Of one process, from its first sample after the warm-up to its last. */
export interface ProcessGrowth {
  readonly node: string
  readonly pid: number
  /** Descriptors and threads of a proxy that lived for the whole run are compared at rest, and have to be as many. */
  readonly life: 'the whole run' | 'a part'
  readonly minutes: number
  readonly rssMb: Change
  readonly descriptors: Change
  readonly threads: Change
}

export interface Change {
  readonly start: number
  readonly end: number
  readonly perHour: number
}

/** A sample of a process that has just begun says nothing about growth. */
const YOUNG_MS = 30_000
const WINDOW = 3

/**
 * Beyond these the run has failed. Where a garbage collector is at work, less is noise. The nftables mode keeps up to 15
 * rules that nothing uses any more, with their sets, in each table: it sweeps sixteen at a time. The userspace mode keeps the
 * listeners for the local endpoints of a UDP port whose policy was Local: at most two on each node.
 */
export const bounds = {
  rssMb: (start: number) => start * 1.25 + 20,
  /** In userspace mode the proxy holds two for each connection, of which there are as many as clients happen to have. */
  descriptors: (mode: SoakMode) => (mode === 'userspace' ? 40 : 12),
  threads: 2,
  kernelObjects(kind: string, { mode, nodes }: { readonly mode: SoakMode; readonly nodes: number }): number {
    if (kind === 'rules' || kind === 'sets') return 15 * nodes
    return kind === 'elements' && mode === 'userspace' ? 2 * nodes : 0
  },
} as const

export class Growth {
  readonly #cluster: Cluster
  readonly #mode: SoakMode
  readonly #samples = new Map<string, ProcessSample[]>()
  readonly #bornMs = new Map<number, number>()
  readonly #atRest: ReadonlyMap<number, ProcessSample>[] = []
  kernelAtStart: Record<string, number> = {}
  kernelAtEnd: Record<string, number> = {}

  constructor(cluster: Cluster, mode: SoakMode) {
    this.#cluster = cluster
    this.#mode = mode
  }

  async sample(): Promise<void> {
    const { nodes } = await this.#cluster.sandbox.status()
    for (const { name, proxyPid } of nodes) {
      const sample = proxyPid === undefined ? undefined : readProcess(proxyPid)
      if (sample === undefined) continue
      if (!this.#bornMs.has(sample.pid)) this.#bornMs.set(sample.pid, sample.atMs)
      const key = `${name} ${sample.pid}`
      const list = this.#samples.get(key) ?? []
      this.#samples.set(key, list)
      list.push(sample)
    }
  }

  /** A sample of the cluster at rest, where descriptors of services and connections are as many as the last time. */
  async sampleAtRest(): Promise<void> {
    await this.sample()
    const latest = [...this.#samples.values()].map((list) => list.at(-1)!)
    this.#atRest.push(new Map(latest.map((sample) => [sample.pid, sample])))
  }

  /** Only what comes from now on counts. */
  endWarmUp(): void {
    this.#samples.clear()
  }

  /**
   * Kernel objects by kind, of all nodes together: of a cluster at rest they are as many as they were. On one node they may
   * differ, with the pods that it was given.
   */
  async countKernel(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const node of this.#cluster.nodes) {
      for (const [kind, count] of Object.entries(await kernelObjects(this.#cluster, node.netns, this.#mode))) {
        counts[kind] = (counts[kind] ?? 0) + count
      }
    }
    return counts
  }

  /** The newest sample of each node, for the line while it runs. */
  latest(): string {
    const last = new Map<string, ProcessSample>()
    for (const [key, list] of this.#samples) last.set(key.split(' ')[0]!, list.at(-1)!)
    return [...last]
      .map(([node, s]) => `${node} ${s.rssMb.toFixed(0)} MB ${s.descriptors} fds ${s.threads} threads`)
      .join(', ')
  }

  processes(): ProcessGrowth[] {
    return [...this.#samples].flatMap(([key, all]) => {
      const [node = ''] = key.split(' ')
      const list = all.filter(({ atMs, pid }) => atMs - this.#bornMs.get(pid)! >= YOUNG_MS)
      if (list.length < 2 * WINDOW) return []
      const change = (value: (sample: ProcessSample) => number): Change => ({
        start: median(list.slice(0, WINDOW).map(value)),
        end: median(list.slice(-WINDOW).map(value)),
        perHour: slopePerHour(list.map((sample) => [sample.atMs, value(sample)])),
      })
      const { pid } = list[0]!
      const [first, last] = [this.#atRest[0]?.get(pid), this.#atRest.at(-1)?.get(pid)]
      const atRest = (value: (sample: ProcessSample) => number): Partial<Change> =>
        first === undefined || last === undefined ? {} : { start: value(first), end: value(last) }
      return {
        node,
        pid,
        life: first === undefined ? 'a part' : 'the whole run',
        minutes: (list.at(-1)!.atMs - list[0]!.atMs) / 60_000,
        rssMb: change(({ rssMb }) => rssMb),
        descriptors: { ...change(({ descriptors }) => descriptors), ...atRest(({ descriptors }) => descriptors) },
        threads: { ...change(({ threads }) => threads), ...atRest(({ threads }) => threads) },
      }
    })
  }

  /** What has grown beyond its bound. */
  complaints(): string[] {
    const complaints = this.processes().flatMap(({ node, pid, life, rssMb, descriptors, threads }) => {
      const who = `the proxy of ${node} (process ${pid})`
      return [
        ...(rssMb.end > bounds.rssMb(rssMb.start)
          ? [`${who}: ${rssMb.start.toFixed(0)} to ${rssMb.end.toFixed(0)} MB`]
          : []),
        ...(life === 'a part' ? [] : exceeding(`${who}: descriptors`, descriptors, bounds.descriptors(this.#mode))),
        ...(life === 'a part' ? [] : exceeding(`${who}: threads`, threads, bounds.threads)),
      ]
    })
    const kernel = Object.entries(this.kernelAtEnd).flatMap(([kind, end]) => {
      // These depend on what clients do at the moment.
      if (kind === 'conntrack' || kind === 'ipvs draining') return []
      return exceeding(
        `kernel: ${kind}`,
        { start: this.kernelAtStart[kind] ?? 0, end },
        bounds.kernelObjects(kind, { mode: this.#mode, nodes: this.#cluster.nodes.length }),
      )
    })
    return [...complaints, ...kernel]
  }
}

function exceeding(what: string, { start, end }: Pick<Change, 'start' | 'end'>, bound: number): string[] {
  return end > start + bound ? [`${what}: ${start} to ${end}`] : []
}

function readProcess(pid: number): ProcessSample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
    const descriptors = readdirSync(`/proc/${pid}/fd`).length
    return { atMs: performance.now(), pid, rssMb: field('VmRSS') / 1024, descriptors, threads: field('Threads') }
  } catch {
    // It has ended, or is about to.
    return undefined
  }
}
