// Which readers of the packet-flow table leave out which rows, and why. A row that a mode cannot promise says so itself
// (PacketFlowCase.modes); here stands what a reader cannot try.

import type { Flow, PacketFlowCase } from './packet-flow.ts'

export type ModeName = 'userspace' | 'iptables' | 'ipvs' | 'nftables'

/**
 * What a mode promises of a row: the row, or its variant. In userspace mode it is the proxy that connects to backends,
 * which therefore always see the node; and it does not carry SCTP.
 */
export function promisedBy(mode: ModeName, row: PacketFlowCase): PacketFlowCase | undefined {
  if (row.modes?.includes(mode) === false) return undefined
  if (mode !== 'userspace') return row
  const flows = [...row.flows, ...row.steps.flatMap((step) => step.flows)]
  if (flows.some(({ to }) => to.protocol === 'SCTP')) return undefined
  const seenAsNode = (flow: Flow): Flow =>
    flow.outcome.kind === 'to' ? { ...flow, outcome: { ...flow.outcome, seenAs: 'node' } } : flow
  const steps = row.steps.map((step) => ({ ...step, flows: step.flows.map(seenAsNode) }))
  return { ...row, flows: row.flows.map(seenAsNode), steps }
}
