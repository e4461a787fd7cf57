// The sets and maps of our table: what they are keyed by and what they say.

import { makeSet } from '../../../nftables/make-set.ts'
import type { Family } from '../../../lib/ip.ts'
import type { FieldType, NftSet } from '../../../nftables/types.ts'
import {
  addressType,
  byFamily,
  type GuardSchema,
  guardSchema,
  NODE_PORT_KEY,
  serviceKey,
} from '../../../table-sync/plan/schema.ts'
import type { Source } from './entrance.ts'
import { SETS } from './names.ts'

export interface Schema {
  readonly guards: GuardSchema
  readonly services: Readonly<Record<Source, NftSet>>
  readonly nodePorts: Readonly<Record<Source, NftSet>>
  readonly listeners: NftSet
}

export const schemaFor: (family: Family) => Schema = byFamily(buildSchema)

export function setsOf({ guards, services, nodePorts, listeners }: Schema): NftSet[] {
  return [...Object.values(guards), ...Object.values(services), ...Object.values(nodePorts), listeners]
}

function buildSchema(family: Family): Schema {
  const data: FieldType[] = [addressType(family), 'inet_service']
  const redirects = (names: Readonly<Record<Source, string>>, key: readonly FieldType[]) => ({
    pods: makeSet(names.pods, key, { data, comment: 'Where the proxy serves pods' }),
    node: makeSet(names.node, key, { data, comment: 'Where the proxy serves this node' }),
    others: makeSet(names.others, key, { data, comment: 'Where the proxy serves everybody else' }),
  })
  return {
    guards: guardSchema(family),
    services: redirects(SETS.services, serviceKey(family)),
    nodePorts: redirects(SETS.nodePorts, NODE_PORT_KEY),
    listeners: makeSet(SETS.listeners, serviceKey(family), {
      comment: 'Listeners of the proxy, not to be dialled directly',
    }),
  }
}
