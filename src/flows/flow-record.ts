// What is said of a connection through a Service.

export type FlowProtocol = 'TCP' | 'UDP' | 'SCTP'

/** How a connection ended, as the connection tracker saw it. */
export type FlowEnd =
  /** Both sides closed it. */
  | 'closed'
  /** One side reset it after the backend had answered. */
  | 'reset'
  /** The backend refused it. */
  | 'refused by the backend'
  /** The backend never answered, and the kernel has given it up. */
  | 'no answer'
  /** The kernel has forgotten it: nothing came for as long as its timeout, or a program removed it. */
  | 'expired'

export interface FlowPeer {
  readonly ip: string
  readonly port: number
  /** `namespace/name`. Absent: not known. */
  readonly pod?: string | undefined
  readonly node?: string | undefined
}

export interface FlowRecord {
  /** Milliseconds since 1970. */
  readonly timeMs: number
  /** `unanswered`: it has begun and had no answer for some seconds. */
  readonly event: 'begun' | 'unanswered' | 'ended'
  /** `namespace/name:port`. */
  readonly service: string
  readonly protocol: FlowProtocol
  readonly client: FlowPeer
  /** What the client dialled. */
  readonly frontend: { readonly ip: string; readonly port: number }
  /** Absent where the kernel does not know it: the proxy carries the connection itself. */
  readonly backend?: FlowPeer | undefined
  /** Only with `ended`. */
  readonly end?: FlowEnd | undefined
  /** Until it ended, or until now. Absent: it began before anybody looked. */
  readonly durationMs?: number | undefined
  /** With headers. Absent: the kernel does not count (net.netfilter.nf_conntrack_acct). */
  readonly sentBytes?: number | undefined
  readonly sentPackets?: number | undefined
  readonly receivedBytes?: number | undefined
  readonly receivedPackets?: number | undefined
}

const PROTOCOLS: Readonly<Record<number, FlowProtocol>> = { 6: 'TCP', 17: 'UDP', 132: 'SCTP' }

/** Undefined: one that no Service has. */
export function protocolNamed(number: number): FlowProtocol | undefined {
  return PROTOCOLS[number]
}

/** `namespace/name` of `namespace/name:port`. */
export function serviceOf(servicePort: string): string {
  const colon = servicePort.indexOf(':')
  return colon === -1 ? servicePort : servicePort.slice(0, colon)
}

/** One line of JSON without its end. */
export function formatFlowLine(record: FlowRecord, node: string): string {
  const { timeMs, event, ...rest } = record
  return JSON.stringify({ time: new Date(timeMs).toISOString(), event, observedBy: node, ...rest })
}
