// Sets, and what frontends are called in their keys: what every mode that has an nftables table needs.

import type { Bytes, Family } from '../../lib/ip.ts'
import type { Backend, Frontend } from '../../model/types.ts'
import { addressField, portField, protocolField } from '../../state/nftables/fields.ts'
import type { SetElements } from '../../state/nftables/fragment.ts'
import type { Element, FieldType, NftSet } from '../../state/nftables/types.ts'

type SetOptions = Partial<Pick<NftSet, 'data' | 'interval' | 'comment'>>

export function makeSet(name: string, key: readonly FieldType[], options: SetOptions = {}): NftSet {
  const defaults = {
    data: undefined,
    interval: false,
    dynamic: false,
    timeoutMs: undefined,
    size: undefined,
    comment: undefined,
  }
  return { name, key, ...defaults, ...options }
}

export function addressType(family: Family): FieldType {
  return family === 4 ? 'ipv4_addr' : 'ipv6_addr'
}

/** Keys: a frontend with an address, a node port. */
export function serviceKey(family: Family): readonly FieldType[] {
  return [addressType(family), 'inet_proto', 'inet_service']
}
export const NODE_PORT_KEY: readonly FieldType[] = ['inet_proto', 'inet_service']

/** The frontend in the key of a set: with its address, if it has one. */
export function frontendKey(frontend: Frontend): Bytes {
  const suffix = protocolField(frontend.protocol) + portField(frontend.port)
  return frontend.address === undefined ? suffix : addressField(frontend.address) + suffix
}

export function endpointData(backend: Backend): Bytes {
  return addressField(backend.ip) + portField(backend.port)
}

/** Collects the elements of one fragment by set. */
export class Elements {
  readonly #bySet = new Map<NftSet, Element[]>()

  add(set: NftSet, element: Element): void {
    const list = this.#bySet.get(set)
    if (list === undefined) this.#bySet.set(set, [element])
    else list.push(element)
  }

  list(): SetElements[] {
    return Array.from(this.#bySet, ([set, elements]) => ({ set, elements }))
  }
}
