// Which cluster IPs connect() can choose a backend for, and their elements in the map.

import { type Bytes, type Family, ipBytes } from '../lib/ip.ts'
import { isLinkLocal, isLoopback, isUnspecified } from '../lib/ip.ts'
import type { BackendList } from '../model/backend-list.ts'
import { inOrder, Places } from '../table-sync/places.ts'
import type { Frontend, ServicePortChange, ServicePortView } from '../model/types.ts'
import { backendValue, countValue, keyOf, MOST_PLACES } from './layout.ts'

/** A cluster IP and port for which connect() chooses. */
export interface ChosenFrontend {
  readonly address: Bytes
  readonly port: number
  readonly backends: BackendList
}

/** Elements of the map. In this order, a program that looks meanwhile finds a backend, or nothing and leaves it to the rules. */
export interface MapChange {
  readonly put: (readonly [key: Bytes, value: Bytes])[]
  readonly deleted: Bytes[]
}

/**
 * The frontends for which the rules would only replace the dialled address by that of a backend. Not those with session affinity:
 * it needs the client's address, and a socket gets one later. Not those that masquerade pods. And not those with connect retry:
 * each attempt must be free to go to another backend.
 */
export function chosenFrontends({ protocol, connectRetry, frontends }: ServicePortView): ChosenFrontend[] {
  if (protocol !== 'TCP' || connectRetry === true) return []
  return frontends.flatMap((frontend) => chosenFrontend(frontend) ?? [])
}

function chosenFrontend({ kind, address, port, fromPods, fromNode, ...rest }: Frontend): ChosenFrontend | undefined {
  if (kind !== 'clusterIP' || address === undefined) return undefined
  if (rest.affinitySeconds !== undefined || rest.allowedSources !== undefined || fromPods.masquerade) return undefined
  const [forPods, forNode] = [fromPods.verdict, fromNode.verdict]
  if (forPods.kind !== 'to' || forNode.kind !== 'to' || forPods.backends !== forNode.backends) return undefined
  if (inOrder(forPods.backends).length > MOST_PLACES || hasOwnAddress(forPods.backends)) return undefined
  return { address: ipBytes(address), port, backends: forPods.backends }
}

/**
 * Whether one of the addresses means another machine for each host or pod: loopback, link-local and the like. A process that
 * connects to one would reach itself. The rules would take it for the node's, and lead nowhere. No API server allows such
 * endpoints, but objects also come from files.
 */
function hasOwnAddress(backends: BackendList): boolean {
  for (let i = 0; i < backends.length; i++) {
    const address = backends.addressAt(i)
    if (isLoopback(address) || isLinkLocal(address) || isUnspecified(address) || isMulticast(address)) return true
  }
  return false
}

function isMulticast(address: Bytes): boolean {
  const first = address.charCodeAt(0)
  return address.length === 4 ? first >= 224 : first === 0xff
}

/** Plans the changes of one family's map. */
export class ConnectPlan {
  readonly #family: Family
  readonly #places = new Places()
  #frontends = 0

  constructor(family: Family) {
    this.#family = family
  }

  /** How many cluster IPs and ports have an entry. */
  get frontends(): number {
    return this.#frontends
  }

  plan(changes: readonly ServicePortChange[]): MapChange {
    const backends: MapChange['put'] = []
    const counts: MapChange['put'] = []
    const deleted = new Set<Bytes>()
    const steps = changes.map(({ before, after }) => {
      if (before !== undefined && after !== undefined) this.#places.keep(before, after)
      return { before: frontendsByKey(before), after: frontendsByKey(after) }
    })
    for (const { before, after } of steps) {
      for (const [key, frontend] of before) this.#planDeleted(frontend, after.get(key), deleted)
      this.#frontends += after.size - before.size
    }
    // Deletions come first: an address may pass from one service to another.
    for (const { before, after } of steps) {
      for (const [key, frontend] of after) {
        deleted.delete(key)
        this.#planPut(frontend, before.get(key), { backends, counts, deleted })
      }
    }
    return { put: [...backends, ...counts], deleted: [...deleted] }
  }

  #planDeleted(
    { address, port, backends }: ChosenFrontend,
    after: ChosenFrontend | undefined,
    deleted: Set<Bytes>,
  ): void {
    if (after === undefined) deleted.add(keyOf(address, port, 0))
    const places = (list: BackendList | undefined) => (list === undefined ? 0 : this.#places.of(list).length)
    for (let i = places(after?.backends); i < places(backends); i++) deleted.add(keyOf(address, port, i + 1))
  }

  #planPut(
    { address, port, backends: list }: ChosenFrontend,
    before: ChosenFrontend | undefined,
    { backends, counts, deleted }: Record<'backends' | 'counts', MapChange['put']> & { deleted: Set<Bytes> },
  ): void {
    const placed = this.#places.of(list)
    const former = before && this.#places.of(before.backends)
    for (const i of placed.placesUnlike(former)) {
      const key = keyOf(address, port, i + 1)
      deleted.delete(key)
      backends.push([key, backendValue(placed.addressAt(i), placed.portAt(i))])
    }
    if (former?.length === placed.length) return
    counts.push([keyOf(address, port, 0), countValue(this.#family, placed.length)])
  }
}

/** By the key of the element with their number of backends. */
function frontendsByKey(view: ServicePortView | undefined): ReadonlyMap<Bytes, ChosenFrontend> {
  const frontends = view === undefined ? [] : chosenFrontends(view)
  return new Map(frontends.map((frontend) => [keyOf(frontend.address, frontend.port, 0), frontend]))
}
