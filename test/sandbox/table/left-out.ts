// What of the packet-flow table cannot be tried in a sandbox, and why.

import type { Flow, PacketFlowCase } from '../../conformance/packet-flow.ts'

const refusedRows: ReadonlySet<string> = new Set(['slices: addresses of the wrong family, or none at all, are ignored'])

/** Further rows, with the reason. */
const impossibleRows: ReadonlyMap<string, string> = new Map([
  [
    'changes: of two services that claim an external IP the older has it, then the other',
    'the row says when services were created, which in a cluster the API server does',
  ],
])

/** Whether a row has objects that no cluster can have. That the API server refuses them is what is tried then. */
export function isRefused(row: PacketFlowCase): boolean {
  return refusedRows.has(row.name)
}

/** Why a row cannot be tried; undefined when it can. */
export function whyLeftOut(row: PacketFlowCase): string | undefined {
  return impossibleRows.get(row.name)
}

/** The row without the flows that cannot be tried. */
export function withoutImpossibleFlows(row: PacketFlowCase): PacketFlowCase {
  const keep = (flows: readonly Flow[]) => flows.filter((flow) => !isImpossible(row, flow))
  return { ...row, flows: keep(row.flows), steps: row.steps.map((step) => ({ ...step, flows: keep(step.flows) })) }
}

/**
 * A pod of the other node is a stranger to this node's proxy where only local pods are known. In a sandbox it never comes
 * there: what it sends to a cluster IP is for the proxy of its own node, which knows it.
 */
function isImpossible({ settings }: PacketFlowCase, { from, outcome }: Flow): boolean {
  const knowsLocalPodsOnly = settings.detectLocalMode !== undefined && settings.detectLocalMode !== 'ClusterCIDR'
  return knowsLocalPodsOnly && from === 'remotePod' && outcome.kind === 'to'
}
