// Differences between JSON values: the server makes them, the page applies them. A snapshot of a large cluster is a megabyte, and
// little of it changes at a time.

import { isJsonObject, type JsonObject } from '../lib/json.ts'

/** A new value; changed fields of an object; added, removed and changed items of a list. */
export type Patch =
  | { readonly put: unknown }
  | { readonly fields: Readonly<Record<string, Patch>>; readonly gone?: readonly string[] }
  | {
      /** The new list, as runs of the old list's items and new items. Absent: the same items. */
      readonly items?: readonly ItemRun[]
      /** Changes by the index in the new list. */
      readonly at?: Readonly<Record<string, Patch>>
    }

type ItemRun = readonly [from: number, count: number] | { readonly put: unknown }
/** Undefined: no difference. */
export function diffValues(before: unknown, after: unknown): Patch | undefined {
  if (before === after) return undefined
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after)
  if (isJsonObject(before) && isJsonObject(after)) return diffFields(before, after)
  return { put: after }
}

/** Unchanged parts stay the same objects. */
export function applyPatch(before: unknown, patch: Patch): unknown {
  if ('put' in patch) return patch.put
  if ('fields' in patch) {
    const fields = new Map(Object.entries(before as JsonObject))
    for (const name of patch.gone ?? []) fields.delete(name)
    for (const [name, change] of Object.entries(patch.fields)) fields.set(name, applyPatch(fields.get(name), change))
    return Object.fromEntries(fields)
  }
  const list = before as readonly unknown[]
  const after =
    patch.items?.flatMap((run) => ('put' in run ? [run.put] : list.slice(run[0], run[0] + run[1]))) ?? list.slice()
  for (const [place, change] of Object.entries(patch.at ?? {})) {
    after[Number(place)] = applyPatch(after[Number(place)], change)
  }
  return after
}

function diffFields(before: JsonObject, after: JsonObject): Patch | undefined {
  const changed: [string, Patch][] = []
  for (const name of Object.keys(after)) {
    if (!isThere(after, name)) continue
    const patch = isThere(before, name) ? diffValues(before[name], after[name]) : { put: after[name] }
    if (patch !== undefined) changed.push([name, patch])
  }
  const gone = Object.keys(before).filter((name) => isThere(before, name) && !isThere(after, name))
  if (changed.length + gone.length === 0) return undefined
  return { fields: Object.fromEntries(changed), ...(gone.length > 0 ? { gone } : {}) }
}

/** Undefined counts as absent, as in JSON. */
function isThere(fields: JsonObject, name: string): boolean {
  return Object.hasOwn(fields, name) && fields[name] !== undefined
}

function diffLists(before: readonly unknown[], after: readonly unknown[]): Patch | undefined {
  const places = new Map<unknown, number>()
  before.forEach((item, place) => {
    const key = keyOf(item)
    if (!places.has(key)) places.set(key, place)
  })
  const items: ItemRun[] = []
  const changed: [string, Patch][] = []
  after.forEach((item, place) => {
    const from = sameAt(before, place, item) ? place : places.get(keyOf(item))
    if (from === undefined) {
      items.push({ put: item })
      return
    }
    addToRuns(items, from)
    const patch = diffValues(before[from], item)
    if (patch !== undefined) changed.push([String(place), patch])
  })
  const [run] = items
  const isSame = items.length === 1 && Array.isArray(run) && run[0] === 0 && run[1] === before.length
  const isEmpty = before.length === 0 && after.length === 0
  if ((isSame || isEmpty) && changed.length === 0) return undefined
  return {
    ...(isSame ? {} : { items }),
    ...(changed.length > 0 ? { at: Object.fromEntries(changed) } : {}),
  }
}

function sameAt(before: readonly unknown[], place: number, item: unknown): boolean {
  return place < before.length && keyOf(before[place]) === keyOf(item)
}

function addToRuns(items: ItemRun[], place: number): void {
  const last = items.at(-1)
  if (last !== undefined && !('put' in last) && last[0] + last[1] === place)
    items[items.length - 1] = [last[0], last[1] + 1]
  else items.push([place, 1])
}

/** The identity of an item, to find it at another index. */
function keyOf(item: unknown): unknown {
  if (!isJsonObject(item)) return Array.isArray(item) ? 'list' : item
  const { id, address, namespace, name, family } = item
  if (id !== undefined || address !== undefined) return id ?? address
  if (typeof namespace === 'string' && typeof name === 'string') return `${namespace}/${name}`
  return name ?? family ?? 'object'
}
