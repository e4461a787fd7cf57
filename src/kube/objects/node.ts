// What is read from a Node (core/v1).

import { field, list } from '../encoding/message-to-json.ts'
import type { Resource } from '../resource.ts'
import type { Node } from '../types.ts'
import { readersOf } from './object-meta.ts'

const ZONE_LABEL = 'topology.kubernetes.io/zone'

export const nodes: Resource<Node> = {
  name: 'nodes',
  kind: 'Node',
  path: '/api/v1/nodes',
  ...readersOf({
    keepKey: (key) => key === ZONE_LABEL,
    message: {
      2: field('spec', {
        1: field('podCIDR', 'text'),
        5: list('taints', { 1: field('key', 'text') }),
        7: list('podCIDRs', 'text'),
      }),
      3: field('status', { 5: list('addresses', { 1: field('type', 'pooled'), 2: field('address', 'text') }) }),
    },
    read(meta, json, reader) {
      const spec = reader.object(json['spec'])
      const podCIDR = reader.string(spec['podCIDR'])
      const podCIDRs = reader.strings(spec['podCIDRs'])
      return {
        name: meta.name,
        zone: meta.labels?.[ZONE_LABEL],
        addresses: reader
          .objects(reader.object(json['status'])['addresses'])
          .map(({ type, address }) => ({ type: reader.pooled(type), address: reader.string(address) })),
        // Servers before 1.16 know the singular only.
        podCIDRs: podCIDRs.length === 0 && podCIDR !== '' ? [podCIDR] : podCIDRs,
        deleting: meta.deleting,
        taints: reader.objects(spec['taints']).map((taint) => reader.string(taint['key'])),
      }
    },
  }),
}
