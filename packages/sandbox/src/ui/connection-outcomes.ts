// What became of each connection to a Service, and at which endpoint: from the connection trackers of all nodes, and from the page's own
// client, which knows best what it met.

import type { FlowEvent } from '../../../../src/conntrack/watch.ts'
import type { Flow } from '../../../../src/conntrack/driver.ts'
import { joinHostPort } from '../../../../src/lib/ip.ts'
import type { OutcomeRow } from '../../../../src/ui/protocol.ts'

export type Outcome = 'answered' | 'refused' | 'timedOut' | 'cut'

/** Where a connection leads, as the API has it. */
export interface FlowMeaning {
  /** ServicePortInfo.id */
  readonly service: string
  /** Whether the client gets another endpoint when this one does not answer. */
  readonly isRetried: boolean
  readonly client: string
}

/** A connection of the page's own client: by these its entries in the connection trackers are found. */
export interface OwnConnection {
  readonly sport: number
  readonly host: string
  readonly port: number
}

const TCP = 6
/** As curl --max-time would. */
export const PATIENCE_MS = 3000
/** The client's TCP sends its first packet again after a second. */
const RETRY_MS = 1800
/** The notification may come a moment after the client knows how it ended. */
const LATE_MS = 100
const MOST_OPEN = 10_000

interface Open {
  readonly meaning: FlowMeaning
  readonly sinceMs: number
  readonly isOwn: boolean
  backend: string
  /** When the last endpoint refused: if the client tries another, this was no refusal. */
  refusedMs: number | undefined
}

interface Ended {
  readonly own: OwnConnection
  readonly meaning: FlowMeaning
  readonly outcome: Outcome | 'abandoned'
  readonly atMs: number
}

type Row = { -readonly [Name in keyof OutcomeRow]: OutcomeRow[Name] }

export class ConnectionOutcomes {
  readonly #meaningOf: (flow: Flow) => FlowMeaning | undefined
  readonly #now: () => number
  readonly #open = new Map<string, Open>()
  /** The page's own, by port of the client and destination, with the last endpoint that they met. */
  readonly #own = new Map<string, { backend: string | null }>()
  #ended: Ended[] = []
  #rows = new Map<string, Row>()

  constructor(meaningOf: (flow: Flow) => FlowMeaning | undefined, now: () => number = () => performance.now()) {
    this.#meaningOf = meaningOf
    this.#now = now
  }

  /** Before it connects. */
  beginOwn(own: OwnConnection): void {
    this.#own.set(ownKey(own), { backend: null })
  }

  endOwn(own: OwnConnection, meaning: FlowMeaning, outcome: Ended['outcome']): void {
    this.#ended.push({ own, meaning, outcome, atMs: this.#now() })
  }

  note({ kind, flow }: FlowEvent): void {
    if (flow.protocol !== TCP) return
    const key = flowKey(flow)
    const open = this.#open.get(key)
    if (kind === 'begun') this.#begin(key, flow, open)
    else if (open === undefined) return
    else if (flow.isAnswered) this.#settle(key, open, 'answered')
    else if (kind === 'ended' && open.backend === backendOf(flow)) open.refusedMs = this.#now()
  }

  /** What ended since the last call. */
  take(): OutcomeRow[] {
    const now = this.#now()
    for (const [key, open] of this.#open) {
      if (open.refusedMs !== undefined) {
        if (!open.meaning.isRetried || now - open.refusedMs > RETRY_MS) this.#settle(key, open, 'refused')
      } else if (now - open.sinceMs > PATIENCE_MS) this.#settle(key, open, 'timedOut')
    }
    const isDue = ({ atMs }: Ended) => now - atMs >= LATE_MS
    for (const { own, meaning, outcome } of this.#ended.filter(isDue)) {
      const met = this.#own.get(ownKey(own))
      this.#own.delete(ownKey(own))
      if (outcome !== 'abandoned') this.#count(meaning, met?.backend ?? null, outcome)
    }
    this.#ended = this.#ended.filter((each) => !isDue(each))
    const rows = [...this.#rows.values()]
    this.#rows = new Map()
    return rows
  }

  #begin(key: string, flow: Flow, before: Open | undefined): void {
    const meaning = before?.meaning ?? this.#meaningOf(flow)
    if (meaning === undefined || (before === undefined && this.#open.size >= MOST_OPEN)) return
    const backend = backendOf(flow)
    if (before !== undefined && before.backend !== backend) this.#count(meaning, before.backend, 'retried')
    const own = this.#own.get(
      ownKey({ sport: flow.original.sport, host: flow.original.dst, port: flow.original.dport }),
    )
    if (own !== undefined) own.backend = backend
    this.#open.set(key, { meaning, backend, sinceMs: this.#now(), isOwn: own !== undefined, refusedMs: undefined })
  }

  #settle(key: string, { meaning, backend, isOwn }: Open, outcome: Outcome): void {
    this.#open.delete(key)
    if (!isOwn) this.#count(meaning, backend, outcome)
  }

  #count({ service, client }: FlowMeaning, backend: string | null, outcome: Outcome | 'retried'): void {
    const key = `${service}|${backend}|${client}`
    let row = this.#rows.get(key)
    if (row === undefined) {
      row = { service, backend, client, answered: 0, refused: 0, timedOut: 0, cut: 0, retried: 0 }
      this.#rows.set(key, row)
    }
    row[outcome]++
  }
}

function backendOf({ reply }: Flow): string {
  return joinHostPort(reply.src, reply.sport)
}

function flowKey({ original: { src, sport, dst, dport } }: Flow): string {
  return `${src} ${sport} ${dst} ${dport}`
}

function ownKey({ sport, host, port }: OwnConnection): string {
  return `${sport} ${host} ${port}`
}
