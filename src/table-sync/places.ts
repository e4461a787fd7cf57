// Where each backend of a list stands in the kernel, where a list is a map from places to backends.
//
// Backends are chosen place by place, so one that weighs more than others has more places. Where a hash of the client chooses the place,
// the places are Maglev's table, which all nodes have.
//
// If places followed the order of addresses, the loss of one endpoint would move half of the others, for every frontend. So
// backends that stay keep their places: new ones take the free places, and the last ones of the list fill the gaps that are left.

import { apportion, mostPlaces } from '../lib/apportion.ts'
import { type Bytes, asBytes } from '../lib/ip.ts'
import { hostTable, maglevSize } from '../lib/maglev.ts'
import { isHash } from '../model/balance.ts'
import { backendId, type BackendList } from '../model/backend-list.ts'
import type { ServicePortView } from '../model/types.ts'

/**
 * The places of all lists. A list that is not known here is in order of addresses. Lists are compared by object identity: views
 * share one object as long as a list does not change.
 */
export class Places {
  readonly #placed = new WeakMap<BackendList, BackendList>()

  /** The backends of a list by their places: as often as they weigh. */
  of(list: BackendList): BackendList {
    return this.#placed.get(list) ?? inOrder(list)
  }

  /** Gives places to the changed lists of a service port. The lists of the view before keep theirs: the kernel has them. */
  keep(before: ServicePortView, after: ServicePortView): void {
    const known = new Set(Object.values(before.lists))
    for (const policy of ['Cluster', 'Local'] as const) {
      const list = after.lists[policy]
      const former = before.lists[policy]
      if (list === undefined || former === undefined || known.has(list)) continue
      if (isHash(list.balance) || isHash(former.balance)) continue
      known.add(list)
      this.arrange(list, this.#following(former, list))
    }
  }

  #following(former: BackendList, list: BackendList): Bytes {
    if (former.isWeighted || list.isWeighted) return keepPlaces(inOrder(list), this.of(former).allRecords())
    const { came, went } = differenceOf(former, list)
    const placed = this.of(former)
    const seats = new Seats(placed)
    const free = keepSame(seats, placesOf(went, placed), came)
    fillPlaces(seats, free, came)
    return seats.records()
  }

  /** `placed`: the records of the list, in the order of their places. */
  arrange(list: BackendList, placed: Bytes): void {
    if (placed === inOrder(list).records) this.#placed.delete(list)
    else this.#placed.set(list, list.rearranged(placed))
  }
}

const places = new WeakMap<BackendList, BackendList>()

/** The places of a list in order of addresses. */
export function inOrder(list: BackendList): BackendList {
  const isHashed = isHash(list.balance)
  if (!list.isWeighted && !isHashed) return list
  let placed = places.get(list)
  if (placed === undefined) {
    const records = list.allRecords()
    const weights = records.map((_, i) => list.weightAt(i))
    placed = list.rearranged(asBytes((isHashed ? hashed(list, records, weights) : repeated(records, weights)).join('')))
    places.set(list, placed)
  }
  return placed
}

/** How many places a list has at most, without making them. */
export function placesAtMost({ balance, isWeighted, length }: BackendList): number {
  if (isHash(balance)) return maglevSize(length)
  return isWeighted ? mostPlaces(length) : length
}

function repeated(records: readonly Bytes[], weights: readonly number[]): string[] {
  const counts = apportion(weights)
  return records.map((record, i) => record.repeat(counts[i]!))
}

function hashed(list: BackendList, records: readonly Bytes[], weights: readonly number[]): Bytes[] {
  const hosts = records.map((_, i) => ({ address: list.addressAt(i), port: list.portAt(i) }))
  return hostTable(hosts, weights).map((i) => records[i]!)
}

/** The records of `wanted` in an order that leaves as many as possible where they are in `former`; undefined there: a free place. */
export function keepPlaces(wanted: BackendList, former: readonly (Bytes | undefined)[]): Bytes {
  const missing = new Map<Bytes, Bytes[]>()
  for (const record of wanted.allRecords()) {
    const id = backendId(record)
    const same = missing.get(id)
    if (same === undefined) missing.set(id, [record])
    else same.push(record)
  }
  const seats = new Seats(wanted.rearranged(asBytes('')))
  const gaps: number[] = []
  for (const [place, record] of former.entries()) {
    const same = record && missing.get(backendId(record))?.pop()
    seats.put(place, same)
    if (same === undefined) gaps.push(place)
  }
  fillPlaces(seats, gaps, [...missing.values()].flat())
  return seats.records()
}

/** The backends that only one of the lists has. Both have the same order, so equal records at either end are skipped. */
function differenceOf(former: BackendList, list: BackendList): { came: Set<Bytes>; went: Set<Bytes> } {
  const [a, b] = [former.records, list.records]
  const shorter = Math.min(a.length, b.length)
  let start = 0
  while (start < shorter && a.charCodeAt(start) === b.charCodeAt(start)) start++
  start -= start % list.recordLength
  let rest = 0
  while (rest < shorter - start && a.charCodeAt(a.length - 1 - rest) === b.charCodeAt(b.length - 1 - rest)) rest++
  rest -= rest % list.recordLength
  const came = new Set(list.rearranged(b.slice(start, b.length - rest)).allRecords())
  const went = new Set<Bytes>()
  for (const record of former.rearranged(a.slice(start, a.length - rest)).allRecords()) {
    if (!came.delete(record)) went.add(record)
  }
  return { came, went }
}

/** For fewer backends than this, a search for each costs less than a pass over the list. */
const FEW = 8

function placesOf(wanted: ReadonlySet<Bytes>, list: BackendList): number[] {
  if (wanted.size < FEW) return Array.from(wanted, (record) => list.placeOf(record))
  return list.allRecords().flatMap((record, place) => (wanted.has(record) ? place : []))
}

/** Backends that differ only in what the kernel does not see stay where they are. Returns the gaps that are left. */
function keepSame(seats: Seats, gaps: readonly number[], came: Set<Bytes>): number[] {
  const byId = new Map(Array.from(came, (record) => [backendId(record), record]))
  return gaps.filter((place) => {
    const former = seats.at(place)
    const same = former && byId.get(backendId(former))
    const stays = same !== undefined && came.delete(same)
    seats.put(place, stays ? same : undefined)
    return !stays
  })
}

/** Puts new backends into the gaps, and moves the last ones of the list into the gaps that are left. */
function fillPlaces(seats: Seats, gaps: readonly number[], came: Iterable<Bytes>): void {
  const free = gaps.toSorted((a, b) => a - b)
  // New backends take the free places in turn, and then places behind the last.
  let taken = 0
  for (const record of came) seats.put(free[taken++] ?? seats.length, record)
  for (const place of free.slice(taken)) {
    while (seats.length > place && seats.at(seats.length - 1) === undefined) seats.pop()
    if (place < seats.length) seats.put(place, seats.pop())
  }
}

/** A list that is being rearranged. Its cost depends on the places that change, not on the length of the list. */
class Seats {
  length: number
  readonly #list: BackendList
  /** Undefined: a free place. */
  readonly #changed = new Map<number, Bytes | undefined>()

  constructor(list: BackendList) {
    this.#list = list
    this.length = list.length
  }

  at(place: number): Bytes | undefined {
    return this.#changed.has(place) ? this.#changed.get(place) : this.#list.recordAt(place)
  }

  put(place: number, record: Bytes | undefined): void {
    this.#changed.set(place, record)
    this.length = Math.max(this.length, place + 1)
  }

  pop(): Bytes | undefined {
    const last = this.at(--this.length)
    this.#changed.delete(this.length)
    return last
  }

  records(): Bytes {
    const { records, recordLength } = this.#list
    const parts: Bytes[] = []
    let next = 0
    for (const [place, record] of [...this.#changed].sort(([a], [b]) => a - b)) {
      parts.push(records.slice(next * recordLength, place * recordLength), record ?? asBytes(''))
      next = place + 1
    }
    parts.push(records.slice(next * recordLength, this.length * recordLength))
    return asBytes(parts.join(''))
  }
}
