// What `nft monitor trace` prints about a packet: the rules that it met, where it went, and how it ended.

import { joinHostPort } from '../lib/ip.ts'
import type { Outcome } from './decide.ts'

export interface Traced {
  /** Rule by rule, without the packet's headers. */
  readonly lines: readonly string[]
  readonly outcome: Outcome | 'unknown'
  /** `ip:port` at the last hook that was traced. */
  readonly destination: string | null
}

export interface TracedFlow {
  readonly source: string
  readonly sourcePort: number
  readonly destination: string
  readonly destinationPort: number
}

/** `table` is that of the trace itself, which is left out. */
export function parseTrace(text: string, flow: TracedFlow, table: string): Traced {
  const lines = text.split('\n').filter((line) => line.startsWith('trace id '))
  const first = lines.find((line) => line.includes(`sport ${flow.sourcePort} `))
  const id = /^trace id (\S+)/.exec(first ?? '')?.[1]
  if (id === undefined) return { lines: [], outcome: 'unknown', destination: null }
  const own = lines
    .filter((line) => line.startsWith(`trace id ${id} `))
    .map((line) => line.slice(`trace id ${id} `.length).trim())
  const rules = own.filter((line) => !/ packet: /.test(line) && !line.includes(` ${table} `))
  const packets = own.flatMap((line) => destinationIn(line) ?? [])
  const dialled = joinHostPort(flow.destination, flow.destinationPort)
  const destination = packets.at(-1) ?? dialled
  const dropped = rules.find((line) => /\(verdict drop\)|policy drop/.test(line))
  return { lines: rules, outcome: outcomeOf(dropped, destination !== dialled), destination }
}

function outcomeOf(dropped: string | undefined, moved: boolean): Outcome {
  if (dropped !== undefined) return / reject\b/.test(dropped) ? 'reject' : 'drop'
  return moved ? 'to' : 'untouched'
}

function destinationIn(line: string): string | undefined {
  const [, address, port] =
    / packet: .*?ip6? daddr (\S+) .*? (?:tcp|udp|sctp) sport \d+ (?:tcp|udp|sctp) dport (\d+)/.exec(line) ?? []
  return address === undefined || port === undefined ? undefined : joinHostPort(address, Number(port))
}
