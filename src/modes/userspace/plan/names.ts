// Every name in our table that does not belong to the guards that all modes share.

import { GUARD_CHAINS, GUARD_SETS } from '../../../table-sync/plan/names.ts'

export const TABLE = 'kube-proxy-userspace'

export const SETS = {
  ...GUARD_SETS,
  /** Where frontends with an address are served, by where the client is. */
  services: { pods: 'service-listeners-pods', node: 'service-listeners-node', others: 'service-listeners-others' },
  /** The same, for node ports. */
  nodePorts: { pods: 'nodeport-listeners-pods', node: 'nodeport-listeners-node', others: 'nodeport-listeners-others' },
  /** Where the proxy itself listens. */
  listeners: 'listeners',
} as const

export const CHAINS = {
  ...GUARD_CHAINS,
  services: 'services',
  from: { pods: 'services-from-pods', node: 'services-from-node', others: 'services-from-others' },
  listenersCheck: 'listeners-check',
} as const
