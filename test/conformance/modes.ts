// Which readers of the packet-flow table leave out which rows, and why. A row that a mode cannot promise says so itself
// (PacketFlowCase.modes); here stands what a reader cannot try.

import type { PacketFlowCase } from './packet-flow.ts'

export type ModeName = 'userspace' | 'iptables' | 'ipvs' | 'nftables'

/** Whether a mode promises what a row says. The userspace mode does not carry SCTP: it would lose its streams. */
export function isPromisedBy(mode: ModeName, row: PacketFlowCase): boolean {
  const flows = [...row.flows, ...row.steps.flatMap((step) => step.flows)]
  if (mode === 'userspace' && flows.some(({ to }) => to.protocol === 'SCTP')) return false
  return row.modes?.includes(mode) !== false
}
