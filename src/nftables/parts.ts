// A change of very many elements, as several transactions: in one, the kernel would keep everybody waiting, and take much longer than
// for all parts. No packet sees a state in between that lets in whom neither the state before nor the one after does:
//
// 1. sources that are no longer allowed go,
// 2. backends come to places where no rule looks yet, and take places of others where nothing else changes about the frontend,
// 3. all that decides about a frontend changes at once, some frontends after the others,
// 4. backends go from places where no rule looks any more,
// 5. sources that are allowed now come.

import type { Bytes } from '../lib/ip.ts'
import { FIELD_BYTES } from './fields.ts'
import type { Element, NftSet, Op } from './types.ts'

type BySet = ReadonlyMap<NftSet, readonly Element[]>

export interface ElementChanges {
  readonly deleted: BySet
  /** Those that get another value and keep their owner: before, and after, in the same order. */
  readonly replaced: BySet
  readonly replacing: BySet
  readonly added: BySet
}

export interface PartSizes {
  /** So many elements may change in one transaction, whatever they are. */
  readonly whole: number
  /** Of more than that, so many are one part. */
  readonly elements: number
  /** So many sets and chains may come, change and go in one transaction, and of more than that so many are one part. */
  readonly objects: number
}

/** The kernel takes some milliseconds for a part, and has enlarged a set by the time that it gets the next. */
export const PART_SIZES: PartSizes = { whole: 4000, elements: 2000, objects: 200 }

/** What an element says of its frontend: a source that may connect, the backend at one of its places, or anything else. */
type Role = 'source' | 'place' | 'decision'

/** Behind the frontend, such a key has one field more. */
function roleOf({ key }: NftSet): Role {
  const last = key.at(-1)
  if (last === 'integer') return 'place'
  return key[1] === 'inet_proto' && (last === 'ipv4_addr' || last === 'ipv6_addr') ? 'source' : 'decision'
}

function frontendOf({ key: fields }: NftSet, key: Bytes): Bytes {
  return key.slice(0, -FIELD_BYTES[fields.at(-1)!])
}

export function* inParts(changes: ElementChanges, sizes: PartSizes): Generator<readonly Op[]> {
  const decisions = new Decisions()
  const chunks = (op: 'addElements' | 'deleteElements', lists: Lists) => chunksOf(op, lists, sizes.elements)
  const deleted = byRole(changes.deleted)
  const added = byRole(changes.added)
  const replaced = byRole(changes.replaced)
  for (const [set, elements] of deleted.decision) for (const each of elements) decisions.delete(each.key, set, each)
  for (const [set, elements] of replaced.decision) {
    const after = changes.replacing.get(set) ?? []
    for (const [i, each] of elements.entries()) decisions.replace(each.key, set, each, after[i]!)
  }
  for (const [set, elements] of added.decision) for (const each of elements) decisions.add(each.key, set, each)
  // Where another service takes a frontend over, it takes its places with it.
  const taken = takenOver(deleted.place, added.place)
  const rest = { deleted: new Map<NftSet, Element[]>(), added: new Map<NftSet, Element[]>() }
  for (const action of ['deleted', 'added'] as const) {
    for (const [set, elements] of action === 'deleted' ? deleted.place : added.place) {
      const keys = taken.get(set)
      if (keys === undefined) rest[action].set(set, [...elements])
      else
        rest[action].set(
          set,
          elements.filter(({ key }) => !keys.has(key)),
        )
      for (const each of elements) {
        if (keys?.has(each.key) !== true) continue
        decisions[action === 'deleted' ? 'delete' : 'add'](frontendOf(set, each.key), set, each)
      }
    }
  }
  const swapped = new Map<NftSet, { before: Element[]; after: Element[] }>()
  for (const [set, elements] of replaced.place) {
    const replacing = changes.replacing.get(set) ?? []
    const lists = { before: [] as Element[], after: [] as Element[] }
    swapped.set(set, lists)
    for (const [i, each] of elements.entries()) {
      const frontend = frontendOf(set, each.key)
      if (decisions.has(frontend)) decisions.replace(frontend, set, each, replacing[i]!)
      else {
        lists.before.push(each)
        lists.after.push(replacing[i]!)
      }
    }
  }
  yield* chunks('deleteElements', deleted.source)
  yield* chunks('addElements', rest.added)
  for (const [set, { before, after }] of swapped) {
    for (let i = 0; i < before.length; i += sizes.elements) {
      yield [
        { op: 'deleteElements', set, elements: before.slice(i, i + sizes.elements) },
        { op: 'addElements', set, elements: after.slice(i, i + sizes.elements) },
      ]
    }
  }
  yield* decisions.parts(sizes.elements)
  yield* chunks('deleteElements', rest.deleted)
  yield* chunks('addElements', added.source)
}

type Lists = Iterable<readonly [NftSet, readonly Element[]]>

function byRole(elements: BySet): Readonly<Record<Role, (readonly [NftSet, readonly Element[]])[]>> {
  const roles: Record<Role, (readonly [NftSet, readonly Element[]])[]> = { source: [], place: [], decision: [] }
  for (const [set, list] of elements) roles[roleOf(set)].push([set, list])
  return roles
}

function takenOver(deleted: Lists, added: Lists): ReadonlyMap<NftSet, ReadonlySet<Bytes>> {
  const before = new Map(deleted)
  const taken = new Map<NftSet, ReadonlySet<Bytes>>()
  for (const [set, elements] of added) {
    const keys = new Set(before.get(set)?.map(({ key }) => key))
    const both = elements.filter(({ key }) => keys.has(key))
    if (both.length > 0) taken.set(set, new Set(both.map(({ key }) => key)))
  }
  return taken
}

function* chunksOf(op: 'addElements' | 'deleteElements', lists: Lists, size: number): Generator<readonly Op[]> {
  for (const [set, elements] of lists) {
    for (let i = 0; i < elements.length; i += size) yield [{ op, set, elements: elements.slice(i, i + size) }]
  }
}

/** Whatever is about the same frontend is in the same part. */
class Decisions {
  readonly #indexes = new Map<Bytes, number>()
  /** One after the other, each about the frontend of this index. */
  readonly #frontends: number[] = []
  readonly #changes: (readonly ['deleteElements' | 'addElements', NftSet, Element])[] = []

  has(frontend: Bytes): boolean {
    return this.#indexes.has(frontend)
  }

  delete(frontend: Bytes, set: NftSet, element: Element): void {
    this.#note(frontend, ['deleteElements', set, element])
  }

  add(frontend: Bytes, set: NftSet, element: Element): void {
    this.#note(frontend, ['addElements', set, element])
  }

  replace(frontend: Bytes, set: NftSet, before: Element, after: Element): void {
    this.delete(frontend, set, before)
    this.add(frontend, set, after)
  }

  *parts(size: number): Generator<readonly Op[]> {
    const perFrontend = this.#changes.length / Math.max(1, this.#indexes.size)
    const frontends = Math.max(1, Math.floor(size / perFrontend))
    const parts: Part[] = []
    for (const [i, [op, set, element]] of this.#changes.entries()) {
      const part = (parts[Math.floor(this.#frontends[i]! / frontends)] ??= new Part())
      push(part[op], set, element)
    }
    for (const part of parts) yield part.ops()
  }

  #note(frontend: Bytes, change: readonly ['deleteElements' | 'addElements', NftSet, Element]): void {
    let index = this.#indexes.get(frontend)
    if (index === undefined) this.#indexes.set(frontend, (index = this.#indexes.size))
    this.#frontends.push(index)
    this.#changes.push(change)
  }
}

class Part {
  readonly deleteElements = new Map<NftSet, Element[]>()
  readonly addElements = new Map<NftSet, Element[]>()

  ops(): readonly Op[] {
    return (['deleteElements', 'addElements'] as const).flatMap((op) =>
      Array.from(this[op], ([set, elements]): Op => ({ op, set, elements })),
    )
  }
}

export function push(map: Map<NftSet, Element[]>, set: NftSet, element: Element): void {
  const list = map.get(set)
  if (list === undefined) map.set(set, [element])
  else list.push(element)
}
