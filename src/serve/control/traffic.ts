// The answer to the question `traffic`: what the kernel has counted since a client began to ask.

import type { TrafficCounts } from '../../traffic/traffic-counts.ts'

/** Since counting began. It ends when the client disconnects, or has not asked for a while. */
export interface TrafficAnswer {
  readonly nowMs: number
  readonly sinceMs: number
  readonly mode: string
  readonly nodeName: string
  readonly rows: readonly TrafficRow[]
  /** How endpoints are chosen, of the service ports that do not leave it to chance. */
  readonly balances?: Readonly<Record<string, string>> | undefined
  /** Of pairs beyond the limit. */
  readonly other: TrafficCounts
  /**
   * For a mode in which the proxy carries connections itself: what it passed on to each backend, without headers. The rows are
   * then of frontends alone.
   */
  readonly carried?: readonly CarriedRow[] | undefined
  /** The cgroup whose sockets choose endpoints: their connections are counted, not their packets. Absent: there is none. */
  readonly without?: string | undefined
}

export interface CarriedRow extends TrafficCounts {
  /** `namespace/name:port`. */
  readonly service: string
  /** `tcp`, without a count of packets, or `udp`. */
  readonly protocol: string
  /** `ip:port` */
  readonly backend: string
  /** It gets no new connections for a while. */
  readonly isEjected: boolean
}

/** What went from a frontend to a backend, or what a frontend refused. */
export interface TrafficRow extends TrafficCounts {
  /** `namespace/name:port`. */
  readonly service: string
  /** `tcp 10.0.0.1:80`; `tcp *:30080` for a node port that refuses. */
  readonly frontend: string
  /** `ip:port`; absent for refusals, and where `carried` has the backends. */
  readonly backend?: string | undefined
  /** Packets that the frontend refused or dropped: without endpoints, without local ones, from sources that are not allowed. */
  readonly refused: number
  /** Of connections whose endpoint their sockets have chosen; of flows, with UDP. Their packets are not counted. */
  readonly isChosen?: true
  /** It gets no new connections for a while. */
  readonly isEjected: boolean
}
