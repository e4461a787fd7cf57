// Clients that never stop: from pods, nodes and the machine outside, to cluster IPs, node ports and load balancers.

import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiJson } from '../sandbox/support/api-access.ts'
import { patience } from '../support/patience.ts'
import { policyService, steadyServices, stickyService, type Cluster, type Target, type Vantage } from './cluster.ts'
import { exchange } from './exchange.ts'
import type { Ledger, Loss } from './ledger.ts'
import { Random } from './random.ts'
import { openStream } from './stream.ts'
import { UdpFlow } from './udp-flow.ts'

/** Nothing that is up takes this long, on a busy machine either. */
const SILENCE_MS = 5000 * patience()
/** The kernel sends a second SYN after a second. */
const SLOW_MS = 900
const PAUSE_MS = 40 * patience()

interface Path {
  readonly service: string
  readonly from: Vantage
  readonly target: Target
}

export class Traffic {
  readonly #cluster: Cluster
  readonly #ledger: Ledger
  readonly #random: Random
  readonly #stopping = new AbortController()
  #loops: Promise<void>[] = []
  #services = new Map<string, ApiJson>()

  constructor(cluster: Cluster, ledger: Ledger, seed: number) {
    this.#cluster = cluster
    this.#ledger = ledger
    this.#random = new Random(seed)
  }

  async start(): Promise<void> {
    setMaxListeners(0, this.#stopping.signal)
    for (const name of [...steadyServices, policyService, stickyService]) {
      this.#services.set(name, await this.#cluster.service(name))
    }
    for (const from of this.#cluster.vantages) {
      this.#loop(() => this.#connect(from))
      this.#loop(() => this.#stream(from))
      this.#loop(() => this.#stream(from))
      this.#loop(() => this.#talk(from))
    }
  }

  /** What clients learn from a name: the addresses and ports that are in force now. */
  async follow(name: string): Promise<void> {
    if (this.#services.has(name)) this.#services.set(name, await this.#cluster.service(name))
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#loops)
  }

  #loop(work: () => Promise<void>): void {
    const run = async () => {
      while (!this.#stopping.signal.aborted) {
        await work()
        await this.#sleep(PAUSE_MS)
      }
    }
    this.#loops.push(run())
  }

  #pickPath(from: Vantage, names: readonly string[], protocol: 'tcp' | 'udp'): Path {
    const service = this.#random.pick(names)
    return {
      service,
      from,
      target: this.#random.pick(this.#cluster.targets(this.#services.get(service), from, protocol)),
    }
  }

  /** A new connection, one question, one answer. */
  async #connect(from: Vantage): Promise<void> {
    const path = this.#pickPath(from, [...steadyServices, policyService, stickyService], 'tcp')
    const counts = this.#ledger.counts['new tcp']
    const sinceMs = performance.now()
    counts.made++
    const result = await exchange(from.netns, path.target, SILENCE_MS)
    if ('why' in result) return this.#lose('new tcp', path, { pod: undefined, why: result.why, sinceMs })
    counts.answered++
    if (result.tookMs > SLOW_MS) this.#ledger.slow++
  }

  /** A connection on which something is said every second, for up to a minute. */
  async #stream(from: Vantage): Promise<void> {
    const path = this.#pickPath(from, steadyServices, 'tcp')
    const counts = this.#ledger.counts['long tcp']
    counts.made++
    const end = await openStream(from.netns, path.target, {
      silenceMs: SILENCE_MS + 1000,
      lifeMs: this.#random.between(10_000, 60_000),
      signal: this.#stopping.signal,
    })
    if (end.why === undefined) counts.answered++
    else this.#lose('long tcp', path, { pod: end.pod, why: end.why, sinceMs: end.lastHeardMs })
  }

  /** Questions and answers by datagrams, all from one port. */
  async #talk(from: Vantage): Promise<void> {
    const path = this.#pickPath(from, [...steadyServices, policyService, stickyService], 'udp')
    const counts = this.#ledger.counts.udp
    using flow = await UdpFlow.open(from.netns, path.target)
    const endMs = performance.now() + this.#random.between(5000, 30_000)
    while (performance.now() < endMs && !this.#stopping.signal.aborted) {
      const { pod } = flow
      const sinceMs = performance.now()
      counts.made++
      const why = await flow.ask(SILENCE_MS)
      if (why === undefined) counts.answered++
      else this.#lose('udp', path, { pod, why, sinceMs })
      await this.#sleep(PAUSE_MS)
    }
  }

  #lose(kind: Loss['kind'], { service, from, target }: Path, what: Pick<Loss, 'pod' | 'why' | 'sinceMs'>): void {
    const path = `${from.name} -> ${target.front}`
    this.#ledger.lose({ kind, service, path, through: target.through, endedMs: performance.now(), ...what })
  }

  #sleep(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
  }
}
