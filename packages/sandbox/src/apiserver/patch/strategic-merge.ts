// Kubernetes' own merge: like a merge patch, but lists whose elements have a key are merged by it, as the schema says.
// Directives in the patch ($patch, $retainKeys, $deleteFromPrimitiveList, $setElementOrder) say what a merge cannot.

import { badRequest } from '../api-error.ts'
import { isJsonObject, sameJson } from '../json.ts'
import type { Field, FieldType, Message } from '../schema/schema.ts'
import type { Json, JsonObject } from '../json.ts'

const directivePrefixes = {
  delete: '$deleteFromPrimitiveList/',
  order: '$setElementOrder/',
} as const

export function applyStrategicMerge(document: JsonObject, patch: JsonObject, message: Message): JsonObject {
  return mergeObject(document, patch, { kind: 'message', message })
}

/** A message, a map, or something whose inside the schema does not know. */
type ObjectType = Extract<FieldType, { kind: 'message' | 'map' }> | undefined

function mergeObject(document: JsonObject, patch: JsonObject, type: ObjectType): JsonObject {
  const directive = patch['$patch']
  if (directive === 'replace') return withoutDirectives(patch)
  if (directive === 'delete') return {}
  const merged: JsonObject = { ...document }
  retainKeys(merged, patch['$retainKeys'])
  deleteFromLists(merged, patch)
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue
    if (value === null) delete merged[key]
    else merged[key] = mergeValue(merged[key], value, place(type, key))
  }
  orderLists(merged, patch, type)
  return merged
}

interface Spot {
  readonly type: FieldType | undefined
  readonly field: Field | undefined
}

function place(type: ObjectType, key: string): Spot {
  if (type === undefined) return { type: undefined, field: undefined }
  if (type.kind === 'map') return { type: type.of, field: undefined }
  const field = type.message.byName.get(key)
  return { type: field?.type, field }
}

function mergeValue(current: Json | undefined, value: Json, { type, field }: Spot): Json {
  if (Array.isArray(value)) return mergeList(Array.isArray(current) ? current : [], value, { type, field })
  if (!isJsonObject(value)) return value
  if (field?.patch?.strategy === 'replace') return withoutDirectives(value)
  const inner = type?.kind === 'message' || type?.kind === 'map' ? type : undefined
  return mergeObject(isJsonObject(current) ? current : {}, value, inner)
}

/** With $retainKeys, the patch names every key that may stay. */
function retainKeys(merged: JsonObject, keys: Json | undefined): void {
  if (!Array.isArray(keys)) return
  for (const key of Object.keys(merged)) if (!keys.includes(key)) delete merged[key]
}

function deleteFromLists(merged: JsonObject, patch: JsonObject): void {
  for (const [key, values] of Object.entries(patch)) {
    if (!key.startsWith(directivePrefixes.delete) || !Array.isArray(values)) continue
    const name = key.slice(directivePrefixes.delete.length)
    const list = merged[name]
    if (Array.isArray(list)) merged[name] = list.filter((element) => !values.includes(element))
  }
}

function mergeList(current: readonly Json[], patch: readonly Json[], { type, field }: Spot): Json[] {
  const rule = field?.patch
  if (rule?.strategy !== 'merge') return patch.filter((element) => !isDirective(element)).map(clean)
  const elements = type?.kind === 'list' ? type.of : undefined
  if (rule.mergeKey === undefined) return [...new Set([...current, ...patch])]
  if (patch.some((element) => isJsonObject(element) && element['$patch'] === 'replace')) {
    return patch.filter((element) => !isDirective(element)).map(clean)
  }
  return mergeKeyed(current, patch, { key: rule.mergeKey, type: elements })
}

function isDirective(element: Json): boolean {
  return isJsonObject(element) && '$patch' in element && Object.keys(element).length === 1
}

function mergeKeyed(
  current: readonly Json[],
  patch: readonly Json[],
  { key, type }: { key: string; type: FieldType | undefined },
): Json[] {
  let merged = [...current]
  for (const element of patch) {
    if (!isJsonObject(element)) throw badRequest('strategic merge patch: a list of objects has something else in it')
    const name = element[key]
    if (name === undefined)
      throw badRequest(`map: ${JSON.stringify(element)} does not contain declared merge key: ${key}`)
    const at = merged.findIndex((one) => isJsonObject(one) && sameJson(one[key], name))
    if (element['$patch'] === 'delete') {
      merged = merged.filter((one) => !(isJsonObject(one) && sameJson(one[key], name)))
    } else if (at < 0) {
      merged.push(clean(element))
    } else {
      merged[at] = mergeValue(merged[at], element, { type, field: undefined })
    }
  }
  return merged
}

/** $setElementOrder: the listed elements come in that order; others keep their place as well as they can. */
function orderLists(merged: JsonObject, patch: JsonObject, type: ObjectType): void {
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(directivePrefixes.order) || !Array.isArray(order)) continue
    const name = key.slice(directivePrefixes.order.length)
    const list = merged[name]
    if (!Array.isArray(list)) continue
    const mergeKey = place(type, name).field?.patch?.mergeKey
    const rank = (element: Json): number => order.findIndex((one) => sameElement(one, element, mergeKey))
    merged[name] = sortListed(list, rank)
  }
}

function sameElement(a: Json, b: Json, key: string | undefined): boolean {
  if (key === undefined) return sameJson(a, b)
  return isJsonObject(a) && isJsonObject(b) && sameJson(a[key], b[key])
}

/** Sorts those with a rank among themselves; those without stay behind what they followed. */
function sortListed(list: readonly Json[], rank: (element: Json) => number): Json[] {
  const groups: { rank: number; elements: Json[] }[] = []
  for (const element of list) {
    const position = rank(element)
    if (position < 0 && groups.length > 0) groups.at(-1)!.elements.push(element)
    else groups.push({ rank: position, elements: [element] })
  }
  return groups.sort((a, b) => a.rank - b.rank).flatMap(({ elements }) => elements)
}

/** What the patch adds, without what it says about itself. */
function clean(value: Json): Json {
  if (Array.isArray(value)) return value.filter((element) => !isDirective(element)).map(clean)
  return isJsonObject(value) ? withoutDirectives(value) : value
}

function withoutDirectives(object: JsonObject): JsonObject {
  const entries = Object.entries(object).filter(([key, value]) => !key.startsWith('$') && value !== null)
  return Object.fromEntries(entries.map(([key, value]) => [key, clean(value)]))
}
