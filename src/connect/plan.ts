// For which frontends a socket can choose a backend, and their elements in the maps.

import { type Bytes, type Family, ipBytes } from '../lib/ip.ts'
import { isLinkLocal, isLoopback, isUnspecified } from '../lib/ip.ts'
import { type Balance, isHash } from '../model/balance.ts'
import type { BackendList } from '../model/backend-list.ts'
import { Places } from '../table-sync/places.ts'
import type { Frontend, Policy, Route, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import * as layout from './layout.ts'

/** Whose sockets choose: those of pods, or of the node itself and of pods on its network. */
export interface Choosers {
  readonly pods: boolean
  readonly node: boolean
}

/** A frontend, and where its clients are sent; absent: the rules decide. */
export interface ChosenFrontend {
  readonly key: Bytes
  readonly forPods: Policy | undefined
  readonly forNode: Policy | undefined
}

/** A list whose clients stay with their backends: by affinity, or by a hash of their address. */
export interface StickyList {
  readonly list: BackendList
  readonly seconds: number
}

/** Elements of one map. */
export interface Elements {
  readonly put: (readonly [key: Bytes, value: Bytes])[]
  readonly deleted: Bytes[]
}

/**
 * In this order, a program that looks meanwhile finds a backend, or nothing and leaves it to the rules: what is live is put, then backends, then
 * frontends; then frontends are deleted, then backends, then what is not live.
 */
export interface MapChange {
  /** Of UDP: a flow that goes to a backend that is not among these chooses anew. */
  readonly live: Elements
  readonly backends: Elements
  readonly frontends: Elements
  /** Numbers of lists with affinity: what was seen of calls to them holds no longer. Before all else. */
  readonly forgotten: readonly number[]
}

/**
 * The frontends for which the rules would do nothing but lead to a backend. Not those that only some sources may use, nor those with limits, which the rules keep, nor those that choose by a
 * hash of the client's address and port: a socket gets them later. And not those with connect retry: each attempt must be free to go
 * to another backend.
 */
export function chosenFrontends(family: Family, view: ServicePortView, choosers: Choosers): ChosenFrontend[] {
  const { protocol, connectRetry, frontends } = view
  if (protocol === 'SCTP' || connectRetry === true) return []
  return frontends.flatMap((frontend) => {
    const { address, port, allowedSources, affinitySeconds, limits } = frontend
    if (allowedSources !== undefined || limits !== undefined) return []
    const forPods = choosers.pods && !isMasqueraded(frontend) ? policyOf(frontend.fromPods, affinitySeconds) : undefined
    const forNode = choosers.node ? policyOf(frontend.fromNode, affinitySeconds) : undefined
    if (forPods === undefined && forNode === undefined) return []
    const dialled = address === undefined ? undefined : ipBytes(address)
    const key = layout.frontendKey(family, { address: dialled, port, protocol: layout.IPPROTO[protocol] })
    return [{ key, forPods, forNode }]
  })
}

/** At external addresses, rules masquerade pods only so that replies come back through this node. Here they come back without. */
function isMasqueraded({ kind, fromPods }: Frontend): boolean {
  return kind === 'clusterIP' && fromPods.masquerade
}

function policyOf({ verdict }: Route, affinitySeconds: number | undefined): Policy | undefined {
  if (verdict.kind !== 'to' || hasOwnAddress(verdict.backends)) return undefined
  const { balance } = verdict.backends
  return isHash(balance) && stickySeconds(balance, affinitySeconds) === undefined ? undefined : verdict.policy
}

/** How long a client stays with its backend, as the rules know it; undefined: it does not. */
function stickySeconds(balance: Balance, affinitySeconds: number | undefined): number | undefined {
  return affinitySeconds ?? (balance === 'hash-client' ? Infinity : undefined)
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

/** What a service port has in the maps. */
interface Chosen {
  /** The values of its frontends, by key. */
  readonly frontends: ReadonlyMap<Bytes, Bytes>
  /** The lists that they lead to, in the order of their places, by number. */
  readonly lists: ReadonlyMap<number, BackendList>
  /** Those with affinity, which have no places. */
  readonly sticky: ReadonlyMap<number, StickyList>
  /** All of them, of UDP. */
  readonly live: ReadonlyMap<number, BackendList>
}

const NOTHING: Chosen = { frontends: new Map(), lists: new Map(), sticky: new Map(), live: new Map() }
const POLICIES = ['Cluster', 'Local'] as const

/** Plans the changes of one family's maps. */
export class ConnectPlan {
  readonly #family: Family
  readonly #choosers: Choosers
  readonly #places = new Places()
  /** The number of the first of a service port's lists. None is used again. */
  readonly #numbers = new Map<ServicePortName, number>()
  readonly #sticky = new Map<number, StickyList>()
  #nextNumber = 1
  #frontends = 0
  #nodeAddresses: ReadonlyMap<Bytes, Bytes> = new Map()

  constructor(family: Family, choosers: Choosers) {
    this.#family = family
    this.#choosers = choosers
  }

  /** How many frontends have an entry. */
  get frontends(): number {
    return this.#frontends
  }

  /** The list of this number, if it has affinity. */
  stickyList(number: number): StickyList | undefined {
    return this.#sticky.get(number)
  }

  plan(changes: readonly ServicePortChange[]): MapChange {
    const live: Elements = { put: [], deleted: [] }
    const backends: Elements = { put: [], deleted: [] }
    const deleted = new Set<Bytes>()
    const put = new Map<Bytes, Bytes>()
    const forgotten: number[] = []
    const steps = changes.map(({ name, before, after }) => {
      const former = before === undefined ? NOTHING : this.#chosen(name, before)
      if (before !== undefined && after !== undefined) this.#places.keep(before, after)
      const next = after === undefined ? NOTHING : this.#chosen(name, after)
      if (next.frontends.size === 0) this.#numbers.delete(name)
      return { former, next }
    })
    for (const { former, next } of steps) {
      planLive(former.live, next.live, live)
      planBackends(former.lists, next.lists, backends)
      for (const [number, { list, seconds }] of former.sticky) {
        if (next.sticky.get(number)?.list !== list || next.sticky.get(number)?.seconds !== seconds)
          forgotten.push(number)
        this.#sticky.delete(number)
      }
      for (const [number, list] of next.sticky) this.#sticky.set(number, list)
      for (const key of former.frontends.keys()) if (!next.frontends.has(key)) deleted.add(key)
      this.#frontends += next.frontends.size - former.frontends.size
    }
    // Deletions come first: an address may pass from one service to another.
    for (const { former, next } of steps) {
      for (const [key, value] of next.frontends) {
        if (deleted.delete(key) || former.frontends.get(key) !== value) put.set(key, value)
      }
    }
    return { live, backends, frontends: { put: [...put], deleted: [...deleted] }, forgotten }
  }

  /** Node ports are open on these; on those of loopback only for the node itself. */
  planNodeAddresses(addresses: readonly string[]): Elements {
    const before = this.#nodeAddresses
    this.#nodeAddresses = new Map(
      addresses.map((text) => {
        const address = ipBytes(text)
        return [layout.nodeAddressKey(address), layout.nodeAddressValue(isLoopback(address))]
      }),
    )
    return {
      put: [...this.#nodeAddresses].filter(([key]) => !before.has(key)),
      deleted: [...before.keys()].filter((key) => !this.#nodeAddresses.has(key)),
    }
  }

  #chosen(name: ServicePortName, view: ServicePortView): Chosen {
    const frontends = chosenFrontends(this.#family, view, this.#choosers)
    if (frontends.length === 0) return NOTHING
    const first = this.#numberOf(name)
    const lists = new Map<number, BackendList>()
    const sticky = new Map<number, StickyList>()
    const live = new Map<number, BackendList>()
    // All frontends of a service port have the same.
    const affinitySeconds = view.frontends[0]?.affinitySeconds
    const ranges = new Map<Policy | undefined, layout.ListRange>()
    for (const [i, policy] of POLICIES.entries()) {
      const list = view.lists[policy]
      if (list === undefined || !frontends.some(({ forPods, forNode }) => forPods === policy || forNode === policy))
        continue
      const number = first + i
      if (view.protocol === 'UDP') live.set(number, list)
      const seconds = stickySeconds(list.balance, affinitySeconds)
      if (seconds !== undefined) {
        sticky.set(number, { list, seconds })
        ranges.set(policy, { list: number, count: layout.STICKY })
        continue
      }
      const placed = this.#places.of(list)
      lists.set(number, placed)
      ranges.set(policy, { list: number, count: placed.length })
    }
    const range = (policy: Policy | undefined) => ranges.get(policy) ?? layout.NO_LIST
    const values = frontends.map(
      ({ key, forPods, forNode }) => [key, layout.choiceValue(range(forPods), range(forNode))] as const,
    )
    return { frontends: new Map(values), lists, sticky, live }
  }

  #numberOf(name: ServicePortName): number {
    let number = this.#numbers.get(name)
    if (number === undefined) {
      number = this.#nextNumber
      this.#nextNumber += POLICIES.length
      this.#numbers.set(name, number)
    }
    return number
  }
}

function planLive(
  before: ReadonlyMap<number, BackendList>,
  after: ReadonlyMap<number, BackendList>,
  { put, deleted }: Elements,
): void {
  for (const number of new Set([...before.keys(), ...after.keys()])) {
    if (before.get(number) === after.get(number)) continue
    const [former, next] = [liveKeys(number, before.get(number)), liveKeys(number, after.get(number))]
    for (const key of next) if (!former.has(key)) put.push([key, layout.LIVE_VALUE])
    for (const key of former) if (!next.has(key)) deleted.push(key)
  }
}

function liveKeys(number: number, list: BackendList | undefined): Set<Bytes> {
  const keys = new Set<Bytes>()
  if (list === undefined) return keys
  for (let i = 0; i < list.length; i++) keys.add(layout.liveKey(number, list.addressAt(i), list.portAt(i)))
  return keys
}

function planBackends(
  before: ReadonlyMap<number, BackendList>,
  after: ReadonlyMap<number, BackendList>,
  { put, deleted }: Elements,
): void {
  for (const [number, list] of after) {
    for (const i of list.placesUnlike(before.get(number)))
      put.push([layout.backendKey(number, i + 1), layout.backendValue(list.addressAt(i), list.portAt(i))])
  }
  for (const [number, list] of before) {
    for (let i = after.get(number)?.length ?? 0; i < list.length; i++) deleted.push(layout.backendKey(number, i + 1))
  }
}
