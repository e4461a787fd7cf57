// What is counted of connections, wherever it is counted.

export interface TrafficCounts {
  /** Packets that begin a connection: one that is sent again counts again. */
  readonly begun: number
  readonly sentPackets: number
  readonly sentBytes: number
  readonly receivedPackets: number
  readonly receivedBytes: number
}

export const NO_TRAFFIC: TrafficCounts = {
  begun: 0,
  sentPackets: 0,
  sentBytes: 0,
  receivedPackets: 0,
  receivedBytes: 0,
}

export function addTraffic(sum: { -readonly [Field in keyof TrafficCounts]: number }, more: TrafficCounts): void {
  sum.begun += more.begun
  sum.sentPackets += more.sentPackets
  sum.sentBytes += more.sentBytes
  sum.receivedPackets += more.receivedPackets
  sum.receivedBytes += more.receivedBytes
}
