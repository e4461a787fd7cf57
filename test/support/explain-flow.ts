// A flow of the packet-flow table, explained: what is decided about it, and whether a walk through a kernel agrees.

import { compareWays } from '../../src/diagnose/explain/compare.ts'
import { decide, type Decision } from '../../src/diagnose/explain/decide.ts'
import type { Decided, Known } from '../../src/diagnose/explain/known.ts'
import { walkAll } from '../../src/diagnose/explain/walk-all.ts'
import { formatIp, ipBytes } from '../../src/lib/ip.ts'
import type { Walkable } from '../../src/packet-walk/types.ts'
import type { Connection } from '../../src/model/follow.ts'
import { type Flow, sources } from '../conformance/packet-flow.ts'
import { crowdIp } from './addresses.ts'
import { describeWay } from './planned-walkable.ts'
import { CLIENT_PORT } from './walk-flow.ts'

export interface ExplainedFlow {
  readonly decision: Decision
  /** Where the kernel does something else. */
  readonly differences: readonly string[]
  /** For messages. */
  readonly about: string
}

export interface FlowContext {
  readonly known: Known
  readonly decided: Decided
  readonly walkable: Walkable
}

export function explainFlow({ from, to, clients }: Flow, { known, decided, walkable }: FlowContext): ExplainedFlow {
  const { family } = decided.node
  const source = clients === undefined ? sources[from].ip[family] : crowdIp(family, 1)
  const { iif: inputInterface } = sources[from]
  const { address: destination, port, protocol } = to
  return explainConnection({ source, inputInterface, destination, protocol, port }, { known, decided, walkable })
}

export function explainConnection(connection: Connection, { known, decided, walkable }: FlowContext): ExplainedFlow {
  const { source, destination, port, protocol, inputInterface } = connection
  const decision = decide(known, decided, connection)
  const packet = {
    inputInterface,
    source: ipBytes(source),
    destination: ipBytes(destination),
    destinationPort: port,
    sourcePort: CLIENT_PORT,
    protocol,
  }
  const { isOwnAddress } = decided
  const ways = walkAll(walkable, packet, { isLocalAddress: (bytes) => isOwnAddress(formatIp(bytes)), now: () => 0 })
  const differences = compareWays(decision, ways, { connection, endsAt: walkable.endsAt, isOwnAddress })
  const shown = differences.length === 0 ? '' : `\n${ways.ways.map(describeWay).join('\n')}`
  return {
    decision,
    differences,
    about: `${source} to ${destination} port ${port}/${protocol}: ${decision.because}${shown}`,
  }
}
