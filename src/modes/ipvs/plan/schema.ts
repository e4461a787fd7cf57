// The sets and maps of the table: what they are keyed by and what they say.

import type { Family } from '../../../lib/ip.ts'
import type { FieldType, NftSet } from '../../../nftables/types.ts'
import { makeSet } from '../../../nftables/make-set.ts'
import { addressType, byFamily, guardSchema, NODE_PORT_KEY, serviceKey } from '../../../table-sync/plan/schema.ts'
import { SETS } from './names.ts'

export type Schema = Readonly<Record<keyof typeof SETS, NftSet>>

export const schemaFor: (family: Family) => Schema = byFamily(buildSchema)

function buildSchema(family: Family): Schema {
  const address = addressType(family)
  const service = serviceKey(family)
  const nodePort = NODE_PORT_KEY
  const endpoint: FieldType[] = [address, 'inet_service']
  return {
    ...guardSchema(family),
    frontendIps: makeSet(SETS.frontendIps, [address], { comment: 'All addresses of services' }),
    nodeIps: makeSet(SETS.nodeIps, [address], { comment: 'Addresses that the node has without us' }),
    hairpin: makeSet(SETS.hairpin, [address, address, 'inet_proto', 'inet_service'], {
      comment: 'Endpoints of this node that may reach themselves',
    }),
    healthCheckPorts: makeSet(SETS.healthCheckPorts, nodePort, { comment: 'Health check node ports' }),
    services: makeSet(SETS.services, service, { comment: 'Frontends that have a virtual server' }),
    masqueradeServices: makeSet(SETS.masqueradeServices, service, {
      comment: 'Frontends with externalTrafficPolicy Cluster',
    }),
    localServices: makeSet(SETS.localServices, service, { comment: 'Frontends with externalTrafficPolicy Local' }),
    serviceEndpoints: makeSet(SETS.serviceEndpoints, [...service, 'integer'], { data: endpoint }),
    masqueradeNodePorts: makeSet(SETS.masqueradeNodePorts, nodePort, {
      comment: 'NodePorts with externalTrafficPolicy Cluster',
    }),
    localNodePorts: makeSet(SETS.localNodePorts, nodePort, { comment: 'NodePorts with externalTrafficPolicy Local' }),
    nodePortEndpoints: makeSet(SETS.nodePortEndpoints, [...nodePort, 'integer'], { data: endpoint }),
  }
}
