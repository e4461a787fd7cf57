// Remembering a client: one map of frontends and one rule for each protocol, there while a service with session affinity needs it.

import { type Bytes, type Family, asBytes } from '../../../lib/ip.ts'
import type { Frontend } from '../../../model/types.ts'
import { addressField, portField, type TransportProtocol } from '../../../nftables/fields.ts'
import type { SharedRule } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import { makeSet } from '../../../nftables/make-set.ts'
import { addressType } from '../../../table-sync/plan/schema.ts'
import { CHAINS, recordSetName, SETS } from './names.ts'

const cache = new Map<string, SharedRule>()

/** The map has the chain that remembers the clients of a frontend. */
export function recordRule(family: Family, { kind, protocol }: Frontend): SharedRule {
  const frontends = kind === 'nodePort' ? 'nodePorts' : 'services'
  const id = `${family} ${frontends} ${protocol}`
  let shared = cache.get(id)
  if (shared === undefined) cache.set(id, (shared = makeRecordRule(family, frontends, protocol)))
  return shared
}

/** The key of a frontend in that map. */
export function recordKey({ address, port }: Frontend): Bytes {
  return asBytes((address === undefined ? '' : addressField(address)) + portField(port))
}

function makeRecordRule(family: Family, frontends: 'nodePorts' | 'services', protocol: TransportProtocol): SharedRule {
  const isProtocol = nft.isProtocol(protocol)
  const name = recordSetName(frontends, protocol)
  const address = nft.originalDestinationAddress(family)
  const port = nft.originalDestinationPort
  if (frontends === 'services') {
    return {
      set: makeSet(name, [addressType(family), 'inet_service'], { data: 'verdict' }),
      chain: CHAINS.recordServices,
      rule: nft.rule([isProtocol, nft.verdictFrom([address, port], name)]),
    }
  }
  const isNoService = nft.isNotIn([address, nft.protocol, port], SETS.services)
  return {
    set: makeSet(name, ['inet_service'], { data: 'verdict' }),
    chain: CHAINS.recordNodePorts,
    rule: nft.rule([isProtocol, isNoService, nft.verdictFrom([port], name)]),
  }
}
