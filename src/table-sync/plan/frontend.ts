// What the planners of all modes with an nftables table do with a frontend.

import { type Bytes, asBytes } from '../../lib/ip.ts'
import type { BackendList } from '../../model/backend-list.ts'
import type { Frontend, ServicePortView, Verdict } from '../../model/types.ts'
import { addressField, portField, protocolField } from '../../nftables/fields.ts'
import type { Fragment } from '../../nftables/fragment.ts'
import type { Element, NftSet } from '../../nftables/types.ts'
import type { GuardSchema } from './schema.ts'

/** Collects the elements of one fragment by set. */
export class Elements {
  /** A fragment uses a dozen sets at most: looking through them takes less than a map would. */
  readonly #lists: { readonly set: NftSet; readonly elements: Element[] }[] = []

  add(set: NftSet, element: Element): void {
    for (const list of this.#lists) {
      if (list.set === set) {
        list.elements.push(element)
        return
      }
    }
    this.#lists.push({ set, elements: [element] })
  }

  list(): Fragment['elements'] {
    return this.#lists
  }
}

export function frontendKey(frontend: Frontend): Bytes {
  const suffix = protocolField(frontend.protocol) + portField(frontend.port)
  return frontend.address === undefined ? asBytes(suffix) : asBytes(addressField(frontend.address) + suffix)
}

/** The list that pods and the node use, which all clients use unless the policy is Local. */
export function mainVerdict(frontend: Frontend): Verdict {
  return frontend.fromNode.verdict
}

/** The cluster IP itself. */
export function planClusterIp(schema: GuardSchema, frontend: Frontend, elements: Elements): void {
  if (frontend.kind === 'clusterIP') elements.add(schema.clusterIps, { key: addressField(frontend.address!) })
}

/** Marks the frontends whose clients are rejected, and those whose packets are silently dropped. */
export function planRefusals(
  schema: GuardSchema,
  frontend: Frontend,
  elements: Elements,
  kind = frontend.fromOthers.verdict.kind,
): void {
  if (kind === 'to' || kind === 'leave') return
  const key = frontendKey(frontend)
  const byNodePort = frontend.kind === 'nodePort'
  elements.add(byNodePort ? schema.unservedNodePorts : schema.unservedServices, { key })
  if (kind === 'reject') elements.add(byNodePort ? schema.rejectNodePorts : schema.rejectServices, { key })
}

/**
 * Connections of endpoints to themselves, which are masqueraded: the endpoint would otherwise answer itself, around the
 * translation. Those that are known to run elsewhere cannot begin one here.
 */
export function planHairpins(hairpin: NftSet, { backends, protocol }: ServicePortView, elements: Elements): void {
  for (let i = 0; i < backends.length; i++) {
    if (!backends.canBeLocalAt(i)) continue
    const address = backends.addressAt(i)
    elements.add(hairpin, { key: asBytes(address + address + protocolField(protocol) + portField(backends.portAt(i))) })
  }
}

/** What a packet gets that is sent to this backend: its address and port. */
export function endpointData(backends: BackendList, index: number): Bytes {
  return asBytes(backends.addressAt(index) + portField(backends.portAt(index)))
}
