// The sets and maps of our table: what they are keyed by and what they say.

import type { Family } from '../../lib/ip.ts'
import type { FieldType, NftSet } from '../../state/nftables/types.ts'
import { addressType, guardSchema, makeSet, NODE_PORT_KEY, serviceKey } from '../shared/schema.ts'
import { SETS } from './names.ts'

export type Schema = Readonly<Record<keyof typeof SETS, NftSet>>

export function schemaFor(family: Family): Schema {
  return family === 4 ? SCHEMA4 : SCHEMA6
}

function buildSchema(family: Family): Schema {
  const service = serviceKey(family)
  const listener: FieldType[] = [addressType(family), 'inet_service']
  return {
    ...guardSchema(family),
    services: makeSet(SETS.services, service, { data: listener, comment: 'Where frontends are served' }),
    localServices: makeSet(SETS.localServices, service, {
      data: listener,
      comment: 'Where outside clients are served with externalTrafficPolicy Local',
    }),
    splitServices: makeSet(SETS.splitServices, service, { comment: 'Frontends with externalTrafficPolicy Local' }),
    nodePorts: makeSet(SETS.nodePorts, NODE_PORT_KEY, { data: listener, comment: 'Where NodePorts are served' }),
    localNodePorts: makeSet(SETS.localNodePorts, NODE_PORT_KEY, {
      data: listener,
      comment: 'Where outside clients of NodePorts are served with externalTrafficPolicy Local',
    }),
    splitNodePorts: makeSet(SETS.splitNodePorts, NODE_PORT_KEY, {
      comment: 'NodePorts with externalTrafficPolicy Local',
    }),
    listeners: makeSet(SETS.listeners, NODE_PORT_KEY, { comment: 'Ports of the proxy, not to be dialled directly' }),
  }
}

const SCHEMA4 = buildSchema(4)
const SCHEMA6 = buildSchema(6)
