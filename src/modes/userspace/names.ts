// Every name in our table that does not belong to the guards that all modes share.

import { GUARD_CHAINS, GUARD_SETS } from '../shared/names.ts'

export const TABLE = 'kube-proxy-userspace'

export const SETS = {
  ...GUARD_SETS,
  /** Frontends by address: where they are served, where outside clients of those with a Local policy are, and which these are. */
  services: 'service-listeners',
  localServices: 'service-listeners-local',
  splitServices: 'service-ips-local',
  /** The same, for node ports. */
  nodePorts: 'nodeport-listeners',
  localNodePorts: 'nodeport-listeners-local',
  splitNodePorts: 'service-nodeports-local',
  /** The ports that the proxy itself listens on. */
  listeners: 'listeners',
} as const

export const CHAINS = {
  ...GUARD_CHAINS,
  services: 'services',
  clusterServices: 'services-cluster',
  localServices: 'services-local',
  nodePorts: 'nodeports',
  clusterNodePorts: 'nodeports-cluster',
  localNodePorts: 'nodeports-local',
  listenersCheck: 'listeners-check',
  natPrerouting: 'nat-prerouting',
  natOutput: 'nat-output',
} as const
