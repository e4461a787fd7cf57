// Destinations that take no new connections. They leave when the connections that they still have are closed.
//
// They are in the kernel with weight 0: that is how a restarted proxy finds them again. Here is what it takes to judge
// when they may go. Nothing in here asks for the time or the kernel; the caller passes both.

import type { Draining, Retired } from './diff.ts'
import {
  destinationKey,
  serverKey,
  type Destination,
  type DestinationKey,
  type DestinationState,
  type IpvsOp,
  type ServerId,
  type ServerKey,
} from './types.ts'

/** Why a destination went. */
export type DrainEnd = 'drained' | 'limit' | 'silent' | 'gone'

export interface DrainLimits {
  /** Connections that are still open after this long are cut off. */
  readonly limitMs: number
}

/** A destination to which clients keep sending for this long without any answer is dead, and so are its connections. */
const SILENT_MS = 15_000
/** How many times it must have been sent to without an answer: a last acknowledgement is never answered. */
const UNANSWERED = 3

interface Entry {
  readonly destination: Destination
  readonly sinceMs: number
  packetsIn: bigint
  packetsOut: bigint
  /** When the first packet came that was not answered, and how many looks later found more of them. */
  silentSinceMs: number | undefined
  unanswered: number
}

interface Server {
  readonly server: ServerId
  readonly entries: Map<DestinationKey, Entry>
  /** Whether it has no other destinations, so that it goes with the last of these. */
  isEmptied: boolean
}

/** What the kernel has for one server. */
export interface DrainCheck {
  readonly server: ServerId
  readonly destinations: readonly DestinationState[]
  /**
   * How many connections to a destination may still carry data; undefined when that is unknown. Asked only about
   * destinations without established connections.
   */
  readonly openConnections: (destination: Destination) => number | undefined
}

export interface Drained {
  readonly server: ServerId
  readonly destination: Destination
  readonly end: DrainEnd
}

export class DrainList implements Draining {
  readonly #limits: DrainLimits
  readonly #servers = new Map<ServerKey, Server>()

  constructor(limits: DrainLimits) {
    this.#limits = limits
  }

  get isEmpty(): boolean {
    return this.#servers.size === 0
  }

  hasServer(server: ServerKey): boolean {
    return this.#servers.has(server)
  }

  has(server: ServerKey, destination: DestinationKey): boolean {
    return this.#servers.get(server)?.entries.has(destination) === true
  }

  /** The servers that have destinations here. */
  servers(): ServerId[] {
    return Array.from(this.#servers.values(), ({ server }) => server)
  }

  /** How many destinations wait. */
  get size(): number {
    let size = 0
    for (const { entries } of this.#servers.values()) size += entries.size
    return size
  }

  /**
   * Takes destinations out of service; returns what has to be done at once. UDP has no connections that could be seen to
   * end: its destinations go, and with them what the kernel remembers of them.
   */
  retire(retired: readonly Retired[], nowMs: number): IpvsOp[] {
    const ops: IpvsOp[] = []
    for (const { server, destination } of retired) {
      if (server.protocol === 'UDP') {
        ops.push({ op: 'deleteDestination', server, destination })
        continue
      }
      if (destination.weight !== 0) {
        ops.push({ op: 'setDestination', server, destination: { ...destination, weight: 0 } })
      }
      this.#add(server, destination, nowMs)
    }
    return ops
  }

  /** Servers that have no destinations but those that were retired. Returns what has to be done about them at once. */
  empty(servers: readonly ServerId[]): IpvsOp[] {
    const ops: IpvsOp[] = []
    for (const server of servers) {
      const entry = this.#servers.get(serverKey(server))
      if (entry !== undefined) entry.isEmptied = true
      else ops.push({ op: 'deleteServer', server })
    }
    return ops
  }

  /** Follows what is done to servers and destinations otherwise. */
  note(ops: readonly IpvsOp[]): void {
    for (const op of ops) {
      const key = serverKey(op.server)
      const entry = this.#servers.get(key)
      if (entry === undefined) continue
      if (op.op === 'deleteServer') this.#servers.delete(key)
      if (op.op === 'addServer' || op.op === 'setServer') entry.isEmptied = false
      if ('destination' in op && (op.op === 'deleteDestination' || op.destination.weight > 0)) {
        this.#remove(key, destinationKey(op.destination))
      }
    }
  }

  /** Takes over when each destination was retired, for a list that was rebuilt from what the kernel has. */
  inherit(before: DrainList): void {
    for (const [key, { entries }] of this.#servers) {
      for (const id of entries.keys()) {
        const known = before.#servers.get(key)?.entries.get(id)
        if (known !== undefined) entries.set(id, known)
      }
    }
  }

  /** Decides about the destinations of one server: the operations, and what is gone when they are carried out. */
  check({ server, destinations, openConnections }: DrainCheck, nowMs: number): { ops: IpvsOp[]; drained: Drained[] } {
    const key = serverKey(server)
    const waiting = this.#servers.get(key)
    const ops: IpvsOp[] = []
    const drained: Drained[] = []
    if (waiting === undefined) return { ops, drained }
    const states = new Map(destinations.map((state) => [destinationKey(state), state]))
    for (const [id, entry] of waiting.entries) {
      const { destination } = entry
      const state = states.get(id)
      const end = state === undefined ? 'gone' : this.#judge(entry, { state, nowMs, openConnections })
      if (end === undefined) continue
      if (end !== 'gone') ops.push({ op: 'deleteDestination', server, destination })
      drained.push({ server, destination, end })
    }
    if (waiting.isEmptied && drained.length === waiting.entries.size) ops.push({ op: 'deleteServer', server })
    return { ops, drained }
  }

  /** What check() returned has been carried out. */
  remove(drained: readonly Drained[]): void {
    for (const { server, destination } of drained) this.#remove(serverKey(server), destinationKey(destination))
  }

  #judge(
    entry: Entry,
    look: { state: DestinationState; nowMs: number } & Pick<DrainCheck, 'openConnections'>,
  ): DrainEnd | undefined {
    const { state, nowMs, openConnections } = look
    const { activeConnections, inactiveConnections } = state
    if (activeConnections === 0 && inactiveConnections === 0) return 'drained'
    if (activeConnections === 0 && openConnections(entry.destination) === 0) return 'drained'
    if (nowMs - entry.sinceMs >= this.#limits.limitMs) return 'limit'
    return isSilent(entry, state, nowMs) ? 'silent' : undefined
  }

  #add(server: ServerId, destination: Destination, nowMs: number): void {
    const key = serverKey(server)
    let waiting = this.#servers.get(key)
    if (waiting === undefined) this.#servers.set(key, (waiting = { server, entries: new Map(), isEmptied: false }))
    const id = destinationKey(destination)
    if (waiting.entries.has(id)) return
    waiting.entries.set(id, {
      destination,
      sinceMs: nowMs,
      packetsIn: 0n,
      packetsOut: 0n,
      silentSinceMs: undefined,
      unanswered: 0,
    })
  }

  #remove(server: ServerKey, destination: DestinationKey): void {
    const waiting = this.#servers.get(server)
    if (waiting?.entries.delete(destination) !== true || waiting.entries.size > 0) return
    this.#servers.delete(server)
  }
}

/** Notes the packets since the last look; whether there has been no answer for too long. */
function isSilent(entry: Entry, { packetsIn, packetsOut }: DestinationState, nowMs: number): boolean {
  const asked = packetsIn > entry.packetsIn
  const answered = packetsOut > entry.packetsOut
  entry.packetsIn = packetsIn
  entry.packetsOut = packetsOut
  if (answered) {
    entry.silentSinceMs = undefined
    entry.unanswered = 0
    return false
  }
  if (!asked) return false
  entry.silentSinceMs ??= nowMs
  entry.unanswered++
  return entry.unanswered > UNANSWERED && nowMs - entry.silentSinceMs >= SILENT_MS
}
