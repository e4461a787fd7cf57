// A table that switches the tracing on for the packets of one flow, and does nothing else.

import { addressField, type TransportProtocol } from './fields.ts'
import type { Family } from '../lib/ip.ts'
import { destinationAddress, equals, isProtocol, portsAre, rule, traced } from './language.ts'
import type { Chain, Op } from './types.ts'

/** The packets that are traced: from any address, which another program may have changed already. */
export interface FlowToTrace {
  readonly family: Family
  readonly protocol: TransportProtocol
  readonly sourcePort: number
  readonly destination: string
  readonly destinationPort: number
}

/** Before everything else. */
const PRIORITY = -400

export function planTraceChains(flow: FlowToTrace): Chain[] {
  const rules = [
    rule([
      equals(destinationAddress(flow.family), flow.destination, addressField(flow.destination)),
      isProtocol(flow.protocol),
      portsAre(flow.sourcePort, flow.destinationPort),
      traced,
    ]),
  ]
  return (['output', 'prerouting'] as const).map((hook) => ({
    name: hook,
    comment: undefined,
    hook: { type: 'filter', hook, priority: PRIORITY },
    rules,
  }))
}

export function opsToTrace(flow: FlowToTrace): Op[] {
  const chains = planTraceChains(flow)
  return [
    { op: 'addTable', comment: undefined, isOwned: true },
    ...chains.map((chain): Op => ({ op: 'addChain', chain })),
    ...chains.flatMap(({ name, rules }) => rules.map((each): Op => ({ op: 'addRule', chain: name, rule: each }))),
  ]
}
