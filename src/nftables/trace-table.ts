// A table that switches the tracing on for the packets of one flow, and does nothing else.

import { addressField, type TransportProtocol } from './fields.ts'
import type { Family } from '../lib/ip.ts'
import { destinationAddress, equals, isProtocol, destinationPortIs, portsAre, rule, traced } from './language.ts'
import type { NewTable } from './transaction.ts'

/** The packets that are traced: from any address, which another program may have changed already. */
export interface FlowToTrace {
  readonly family: Family
  readonly protocol: TransportProtocol
  /** Absent: any, where another program may have changed it. */
  readonly sourcePort?: number
  readonly destination: string
  readonly destinationPort: number
}

/** Before everything else. */
const PRIORITY = -400

export function planTraceTable(flow: FlowToTrace): NewTable {
  const rules = [
    rule([
      equals(destinationAddress(flow.family), flow.destination, addressField(flow.destination)),
      isProtocol(flow.protocol),
      flow.sourcePort === undefined
        ? destinationPortIs(flow.destinationPort)
        : portsAre(flow.sourcePort, flow.destinationPort),
      traced,
    ]),
  ]
  const hooks = ['output', 'prerouting'] as const
  return {
    isOwned: true,
    chains: hooks.map((hook) => ({
      name: hook,
      comment: undefined,
      hook: { type: 'filter', hook, priority: PRIORITY },
      rules,
    })),
  }
}
