// Node ports on 127.0.0.1 and ::1, where the proxy itself listens: what it relays, and what it refuses.

import type { Protocol } from '../kube/types.ts'
import type { BackendList } from './backend-list.ts'
import type { NodeView, ServicePortView } from './types.ts'

/** Not SCTP: a relay would lose its streams and message boundaries. */
const RELAYED: readonly Protocol[] = ['TCP', 'UDP']

export interface LocalhostListener {
  readonly protocol: 'TCP' | 'UDP'
  readonly port: number
  /** Never empty. */
  readonly backends: BackendList
  readonly affinitySeconds: number | undefined
}

/** The listener for a service port. Its clients are on the node itself. Undefined: none, so the kernel refuses. */
export function planLocalhostListener(
  { localhostNodePorts }: NodeView,
  { protocol, frontends }: ServicePortView,
): LocalhostListener | undefined {
  if (localhostNodePorts !== 'served by listeners' || protocol === 'SCTP') return undefined
  const frontend = frontends.find(({ kind }) => kind === 'nodePort')
  const verdict = frontend?.fromNode.verdict
  if (frontend === undefined || verdict?.kind !== 'to') return undefined
  const { port, affinitySeconds } = frontend
  return { protocol, port, backends: verdict.backends, affinitySeconds }
}

/** Whether rules refuse a node port on localhost. */
export function isRefusedOnLocalhost({ localhostNodePorts }: NodeView, protocol: Protocol): boolean {
  if (localhostNodePorts === undefined) return false
  return localhostNodePorts === 'refused' || !RELAYED.includes(protocol)
}
