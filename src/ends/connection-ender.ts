// Ends connections to endpoints that are removed, for service ports that ask for it (src/model/ends.ts).
//
// An endpoint that is missing is looked at again after a while before anything is ended: while the API server's controllers move it
// from one EndpointSlice to another, it may be in none.

import type { Flow } from '../conntrack/driver.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { type Family, joinHostPort } from '../lib/ip.ts'
import { nextTurn } from '../lib/next-turn.ts'
import type { EndpointEnds } from '../model/ends.ts'
import type { NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import { ENDED_MS } from './plan-table.ts'
import { FrontendIndex } from './frontend-index.ts'

/** What this takes of the kernel. */
export interface EndsKernel {
  /** TCP connections that are wanted; with an endpoint (`ip:port`), only those that it answers. */
  find(family: Family, isWanted: (flow: Flow) => boolean, answerer?: string): Promise<readonly Flow[]>
  /** Makes the connection tracker forget connections. */
  forget(flows: readonly Flow[]): void
  open(family: Family): Promise<OpenEnding>
}

export interface OpenEnding {
  refuse(flows: readonly Flow[]): void
  wake(flows: readonly Flow[]): void
  close(): void
}

export interface ConnectionEnderOptions {
  readonly kernel: EndsKernel
  readonly machineAddresses: () => readonly string[]
  readonly onEnded: (connections: number) => void
  readonly failures: { readonly onFailed: (error: unknown, againInMs?: number) => void; readonly onMended: () => void }
  readonly clock: Pick<Clock, 'monotonicNow' | 'setTimeout'>
}

/** How long an endpoint must have been missing. */
export const MISSING_MS = 2000
/** TCP answers such packets twice a second at most, and one may be lost. */
const WAKE_AGAIN_MS = 700
/** Until then, a client that takes the same port again comes to the same endpoint again. */
const FORGET_MS = 1000
const RETRY_MS = 1000
/** So many connections take some ten milliseconds. */
const AT_ONCE = 1000
/**
 * The most endpoints whose connections are read one by one: the kernel goes through all connections each time, and a tenant may remove
 * a thousand endpoints at once.
 */
const FEW_ENDPOINTS = 8
/** After work it rests for so many times as long: an owner whose endpoints come and go all the time gets a quarter of a processor. */
const REST = 3
/** All endpoints that are not there: where what was there before is not known. */
const UNKNOWN = ''

interface Port {
  view: ServicePortView
  ends: EndpointEnds
  /** By `ip:port`: when its connections end. */
  readonly due: Map<string, number>
}

/** Endpoints whose time has come, as `ip:port`. */
type Due = ReadonlyMap<ServicePortName, ReadonlySet<string>>

export class ConnectionEnder {
  readonly #options: ConnectionEnderOptions
  readonly #ports = new Map<ServicePortName, Port>()
  #node: NodeView | undefined
  #timer: Timer | undefined
  #ending: Promise<OpenEnding> | undefined
  readonly #timers = new Set<Timer>()
  #closing: Timer | undefined
  #working: Promise<void> | undefined
  #restsUntilMs = 0
  #isStopped = false

  constructor(options: ConnectionEnderOptions) {
    this.#options = options
  }

  follow(node: NodeView, changes: readonly ServicePortChange[]): void {
    this.#node = node
    for (const { name, after } of changes) this.#note(name, after)
    this.#schedule()
  }

  /** Resolves when the present work has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#closing?.cancel()
    for (const timer of this.#timers) timer.cancel()
    await this.#working
    await this.#close()
  }

  /** Resolves when nothing is being done. */
  async idle(): Promise<void> {
    await this.#working
  }

  #note(name: ServicePortName, view: ServicePortView | undefined): void {
    const ends = view?.ends
    if (view === undefined || ends === undefined) {
      this.#ports.delete(name)
      return
    }
    const nowMs = this.#options.clock.monotonicNow()
    const before = this.#ports.get(name)
    const due = before?.due ?? new Map<string, number>()
    const dueAt = (endpoint: string, atMs: number) => due.set(endpoint, Math.min(atMs, due.get(endpoint) ?? Infinity))
    const { present, ending, afterSeconds = 0 } = ends
    for (const endpoint of present) due.delete(endpoint)
    for (const endpoint of ending) if (!due.has(endpoint)) dueAt(endpoint, nowMs + afterSeconds * 1000)
    const there = new Set([...present, ...ending])
    const known = before === undefined ? [UNKNOWN] : [...before.ends.present, ...before.ends.ending]
    for (const endpoint of known) if (!there.has(endpoint)) dueAt(endpoint, nowMs + MISSING_MS)
    this.#ports.set(name, { view, ends, due })
  }

  #schedule(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#working !== undefined || this.#isStopped) return
    let firstMs = Infinity
    for (const { due } of this.#ports.values()) for (const atMs of due.values()) firstMs = Math.min(firstMs, atMs)
    if (firstMs === Infinity) return
    const { clock } = this.#options
    const atMs = Math.max(firstMs, this.#restsUntilMs)
    this.#timer = clock.setTimeout(() => this.#begin(), Math.max(0, atMs - clock.monotonicNow()))
  }

  #begin(): void {
    const { clock } = this.#options
    const beganMs = clock.monotonicNow()
    this.#working = this.#work().finally(() => {
      const endedMs = clock.monotonicNow()
      this.#restsUntilMs = endedMs + REST * (endedMs - beganMs)
      this.#working = undefined
      this.#schedule()
    })
  }

  async #work(): Promise<void> {
    const { clock, failures } = this.#options
    const due = this.#takeDue()
    try {
      await this.#end(due)
      failures.onMended()
    } catch (error) {
      const againMs = clock.monotonicNow() + RETRY_MS
      for (const [name, endpoints] of due)
        for (const endpoint of endpoints) this.#ports.get(name)?.due.set(endpoint, againMs)
      failures.onFailed(error, RETRY_MS)
      await this.#close()
    }
  }

  #takeDue(): Due {
    const nowMs = this.#options.clock.monotonicNow()
    const taken = new Map<ServicePortName, ReadonlySet<string>>()
    for (const [name, { due }] of this.#ports) {
      const endpoints = [...due].flatMap(([endpoint, atMs]) => (atMs > nowMs ? [] : endpoint))
      if (endpoints.length > 0) taken.set(name, new Set(endpoints))
      for (const endpoint of endpoints) due.delete(endpoint)
    }
    return taken
  }

  async #end(due: Due): Promise<void> {
    const { kernel, onEnded } = this.#options
    const { family } = this.#node!
    const found = await this.#find(due)
    for (let first = 0; first < found.length; first += AT_ONCE) {
      if (first > 0) await nextTurn()
      const ending = await (this.#ending ??= kernel.open(family))
      // The endpoint may have come back meanwhile.
      const flows = found.slice(first, first + AT_ONCE).filter(this.#isOver(due))
      if (this.#isStopped) return
      if (flows.length === 0) continue
      ending.refuse(flows)
      ending.wake(flows)
      onEnded(flows.length)
      this.#wakeAgain(ending, flows)
    }
  }

  async #find(due: Due): Promise<readonly Flow[]> {
    const { kernel } = this.#options
    const { family } = this.#node!
    const isOver = this.#isOver(due)
    const endpoints = new Set([...due.values()].flatMap((each) => [...each]))
    const asked = endpoints.has(UNKNOWN) || endpoints.size > FEW_ENDPOINTS ? [undefined] : endpoints
    const found: (readonly Flow[])[] = []
    for (const endpoint of asked) {
      // What the kernel does alone has no turns.
      if (found.length > 0) await nextTurn()
      if (this.#isStopped) return []
      found.push(await kernel.find(family, isOver, endpoint))
    }
    return found.flat()
  }

  /** As the service ports are now: connections that they sent to endpoints that are due. */
  #isOver(due: Due): (flow: Flow) => boolean {
    const index = new FrontendIndex((address) => this.#isNodePortAddress(address))
    const kept = new Map<ServicePortName, ReadonlySet<string>>()
    for (const [name, endpoints] of due) {
      const port = this.#ports.get(name)
      if (port === undefined) continue
      index.add(port.view)
      // What is known has a time of its own.
      const known = [...port.ends.ending, ...port.due.keys()].filter((endpoint) => !endpoints.has(endpoint))
      kept.set(name, new Set([...port.ends.present, ...known]))
    }
    return (flow) => {
      const name = index.portOf(flow)
      if (name === undefined) return false
      const endpoints = due.get(name)!
      const by = joinHostPort(flow.reply.src, flow.reply.sport)
      return (endpoints.has(by) || endpoints.has(UNKNOWN)) && !kept.get(name)!.has(by)
    }
  }

  #wakeAgain(ending: OpenEnding, flows: readonly Flow[]): void {
    this.#later(WAKE_AGAIN_MS, () => ending.wake(flows))
    this.#later(FORGET_MS, () => this.#options.kernel.forget(flows))
    this.#closing?.cancel()
    this.#closing = this.#options.clock.setTimeout(() => void this.#close(), ENDED_MS)
  }

  #later(afterMs: number, act: () => void): void {
    const timer = this.#options.clock.setTimeout(() => {
      this.#timers.delete(timer)
      try {
        act()
      } catch (error) {
        this.#options.failures.onFailed(error)
      }
    }, afterMs)
    this.#timers.add(timer)
  }

  async #close(): Promise<void> {
    const ending = this.#ending
    this.#ending = undefined
    this.#closing?.cancel()
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    await ending?.then(
      (open) => open.close(),
      () => {},
    )
  }

  #isNodePortAddress(address: string): boolean {
    const { nodePortAddresses } = this.#node!
    if (nodePortAddresses.kind === 'all') return this.#options.machineAddresses().includes(address)
    return nodePortAddresses.addresses.includes(address)
  }
}
