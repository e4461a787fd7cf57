// Notifications of the connection tracker become records of connections through Services.

import type { FlowCounts } from '../conntrack/driver.ts'
import type { EndEvent } from '../conntrack/watch-ends.ts'
import { TCP_CONNTRACK_CLOSE, TCP_CONNTRACK_TIME_WAIT } from '../conntrack/uapi.ts'
import type { Clock } from '../lib/clock.ts'
import { type FlowEnd, type FlowRecord, protocolNamed } from './flow-record.ts'

export interface FlowTrackerOptions {
  readonly clock: Pick<Clock, 'now' | 'monotonicNow'>
  /** The service port that has a frontend; undefined: none. */
  readonly serviceAt: (protocol: string, address: string, port: number) => string | undefined
  /** Whether anybody looks at this service port. */
  readonly isWanted: (service: string) => boolean
  readonly onRecord: (record: FlowRecord) => void
  /** What the kernel has counted of a connection that still is; undefined: nothing counts. */
  readonly counts: ((event: EndEvent) => FlowCounts | undefined) | undefined
  /** Whether the connection had an answer by now; undefined when it is gone. */
  readonly isAnswered: (event: EndEvent) => boolean | undefined
  /** Whether the kernel knows the backend. */
  readonly knowsBackends: boolean
}

/** Connections a second that are recorded. The others are counted. */
export const MOST_A_SECOND = 1000
/** Connections whose beginning is remembered: of the oldest of more, no duration is known. */
const MOST_OPEN = 16_384
const MOST_LEFT_OUT = 65_536
/** Notifications that wait for a service of which the proxy has just heard. */
const MOST_WAITING = 1000
/** A connection without an answer for so long gets a record that says so. */
export const UNANSWERED_MS = 3000
/** At most so many are looked up each second. */
const MOST_LOOKUPS = 200

interface OpenFlow {
  readonly event: EndEvent
  readonly service: string
  readonly beganMs: number
}

export class FlowTracker {
  readonly #options: FlowTrackerOptions
  /** By the kernel's number of a connection. */
  readonly #open = new Map<number, OpenFlow>()
  readonly #leftOut = new Set<number>()
  /** In the order in which they began. */
  #unchecked: OpenFlow[] = []
  #waiting: EndEvent[] = []
  #budget = MOST_A_SECOND
  #notRecorded = 0

  constructor(options: FlowTrackerOptions) {
    this.#options = options
  }

  add(event: EndEvent): void {
    this.#add(event, (waiting) => {
      if (this.#waiting.length < MOST_WAITING) this.#waiting.push(waiting)
    })
  }

  /** Notifications were lost. How many, the kernel does not say: what is open may have ended. */
  lost(): void {
    this.#notRecorded++
  }

  /** To be called each second, after serviceAt() knows what is new. */
  tick(): void {
    this.#budget = MOST_A_SECOND
    const waiting = this.#waiting
    this.#waiting = []
    for (const event of waiting) this.#add(event, () => {})
    this.#findUnanswered()
  }

  /** How many connections were not recorded since the last call, because there were too many. */
  takeLeftOut(): number {
    const count = this.#notRecorded
    this.#notRecorded = 0
    return count
  }

  #add(event: EndEvent, onUnknown: (event: EndEvent) => void): void {
    const { original, reply } = event
    const protocol = protocolNamed(event.protocol)
    const isTranslated = original.dst !== reply.src || original.dport !== reply.sport
    if (protocol === undefined || !isTranslated) return
    const service = this.#options.serviceAt(protocol, original.dst, original.dport)
    if (service === undefined) return onUnknown(event)
    if (!this.#options.isWanted(service)) return
    if (event.kind === 'begun') this.#begin(event, service)
    else this.#end(event, service)
  }

  #begin(event: EndEvent, service: string): void {
    if (this.#budget === 0) {
      keep(this.#leftOut, event.id)
      this.#notRecorded++
      return
    }
    this.#budget--
    const flow = { event, service, beganMs: this.#options.clock.monotonicNow() }
    this.#open.set(event.id, flow)
    if (this.#open.size > MOST_OPEN) this.#open.delete(this.#open.keys().next().value!)
    this.#unchecked.push(flow)
    this.#record(event, service, { event: 'begun' })
  }

  #end(event: EndEvent, service: string): void {
    if (this.#leftOut.delete(event.id)) return
    const open = this.#open.get(event.id)
    this.#open.delete(event.id)
    if (open === undefined) {
      // Its end has been recorded, or it began before we watched.
      const isRecorded = event.kind === 'gone' && event.isAnswered && isTcpOver(event)
      if (isRecorded) return
      if (this.#budget === 0) {
        this.#notRecorded++
        return
      }
      this.#budget--
    }
    const counts = event.counts ?? (event.kind === 'closing' ? this.#options.counts?.(event) : undefined)
    this.#record(event, service, {
      event: 'ended',
      end: endOf(event),
      durationMs: this.#duration(event, open),
      ...counts,
    })
  }

  #duration({ startMs, stopMs }: EndEvent, open: OpenFlow | undefined): number | undefined {
    if (startMs !== undefined && stopMs !== undefined) return round(stopMs - startMs)
    return open === undefined ? undefined : round(this.#options.clock.monotonicNow() - open.beganMs)
  }

  #findUnanswered(): void {
    const dueMs = this.#options.clock.monotonicNow() - UNANSWERED_MS
    const young = this.#unchecked.findIndex(({ beganMs }) => beganMs > dueMs)
    const due = this.#unchecked.splice(0, young === -1 ? this.#unchecked.length : young)
    const left = due.filter((flow) => this.#open.get(flow.event.id) === flow)
    for (const { event, service } of left.slice(0, MOST_LOOKUPS)) {
      if (this.#options.isAnswered(event) === false) {
        this.#record(event, service, {
          event: 'unanswered',
          durationMs: this.#duration(event, this.#open.get(event.id)),
        })
      }
    }
  }

  #record(
    { original, reply, protocol }: EndEvent,
    service: string,
    what: Pick<FlowRecord, 'event'> & Partial<FlowRecord>,
  ): void {
    const { knowsBackends, clock, onRecord } = this.#options
    onRecord({
      timeMs: clock.now(),
      service,
      protocol: protocolNamed(protocol)!,
      client: { ip: original.src, port: original.sport },
      frontend: { ip: original.dst, port: original.dport },
      ...(knowsBackends ? { backend: { ip: reply.src, port: reply.sport } } : {}),
      ...what,
    })
  }
}

function endOf({ kind, isAnswered, tcpState }: EndEvent): FlowEnd {
  if (kind === 'closing') return tcpState === TCP_CONNTRACK_TIME_WAIT ? 'closed' : 'reset'
  if (isAnswered) return 'expired'
  // A refusal of a SYN ends what the kernel knows at once; without an answer it is forgotten by its timeout.
  return tcpState === TCP_CONNTRACK_CLOSE ? 'refused by the backend' : 'no answer'
}

function isTcpOver({ protocol, tcpState }: EndEvent): boolean {
  const isOver = tcpState === undefined || tcpState === TCP_CONNTRACK_CLOSE || tcpState === TCP_CONNTRACK_TIME_WAIT
  return protocolNamed(protocol) === 'TCP' && isOver
}

function keep(set: Set<number>, value: number): void {
  set.add(value)
  if (set.size > MOST_LEFT_OUT) set.delete(set.values().next().value!)
}

function round(ms: number): number {
  return Math.max(0, Math.round(ms * 10) / 10)
}
