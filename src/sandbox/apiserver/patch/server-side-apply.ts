// Server-side apply, as far as one writer at a time needs it: what is applied is merged into the object by the keys of the
// schema, and what the same manager applied before and no longer does is taken out. Who owns which field is not recorded
// in the object (there are no managedFields), so there are no conflicts either.

import { isJsonObject, sameJson } from '../json.ts'
import type { ElementRule, FieldType, Message } from '../schema/schema.ts'
import type { Json, JsonObject } from '../json.ts'

/** The object after `applied` took the place of what its manager had applied before. */
export function applyServerSide(
  current: JsonObject,
  change: { readonly previous: JsonObject | undefined; readonly applied: JsonObject },
  message: Message,
): JsonObject {
  const type: FieldType = { kind: 'message', message }
  const kept = change.previous === undefined ? current : subtract(current, change, { type, rule: undefined })
  return merge(kept, change.applied, { type, rule: undefined }) as JsonObject
}

interface Spot {
  readonly type: FieldType | undefined
  readonly rule: ElementRule | undefined
}

function inside({ type }: Spot, key: string): Spot {
  if (type?.kind === 'map') return { type: type.of, rule: undefined }
  const field = type?.kind === 'message' ? type.message.byName.get(key) : undefined
  return { type: field?.type, rule: field?.elements }
}

function element({ type }: Spot): Spot {
  return { type: type?.kind === 'list' ? type.of : undefined, rule: undefined }
}

function merge(current: Json | undefined, applied: Json, spot: Spot): Json {
  if (spot.rule?.by === 'nothing') return structuredClone(applied)
  if (isJsonObject(applied)) {
    const merged: JsonObject = isJsonObject(current) ? { ...current } : {}
    for (const [key, value] of Object.entries(applied)) {
      if (value === null) delete merged[key]
      else merged[key] = merge(merged[key], value, inside(spot, key))
    }
    return merged
  }
  if (!Array.isArray(applied) || !Array.isArray(current)) return structuredClone(applied)
  if (spot.rule?.by === 'value') return [...new Set([...current, ...applied])]
  if (spot.rule?.by !== 'keys') return structuredClone(applied)
  const { keys } = spot.rule
  const merged = [...current]
  for (const one of applied) {
    const at = merged.findIndex((other) => sameKeys(other, one, keys))
    if (at < 0) merged.push(structuredClone(one))
    else merged[at] = merge(merged[at], one, element(spot))
  }
  return merged
}

interface Difference {
  readonly previous: Json | undefined
  readonly applied: Json | undefined
}

/** Takes out what was applied before and is not applied now. */
function subtract(current: JsonObject, { previous, applied }: Difference, spot: Spot): JsonObject {
  if (!isJsonObject(previous)) return current
  const kept: JsonObject = { ...current }
  for (const key of Object.keys(previous)) {
    const now = isJsonObject(applied) ? applied[key] : undefined
    const remaining = subtractValue(kept[key], { previous: previous[key], applied: now }, inside(spot, key))
    if (remaining === undefined) delete kept[key]
    else kept[key] = remaining
  }
  return kept
}

function subtractValue(current: Json | undefined, change: Difference, spot: Spot): Json | undefined {
  const { previous, applied } = change
  if (current === undefined || spot.rule?.by === 'nothing') return applied === undefined ? undefined : current
  if (isJsonObject(current) && isJsonObject(previous)) {
    const rest = subtract(current, change, spot)
    return applied === undefined && Object.keys(rest).length === 0 ? undefined : rest
  }
  if (Array.isArray(current) && Array.isArray(previous) && spot.rule !== undefined) {
    const rest = subtractList(current, { previous, applied: Array.isArray(applied) ? applied : [] }, spot)
    return applied === undefined && rest.length === 0 ? undefined : rest
  }
  return applied === undefined ? undefined : current
}

function subtractList(current: readonly Json[], change: { previous: Json[]; applied: Json[] }, spot: Spot): Json[] {
  const same = (a: Json, b: Json): boolean =>
    spot.rule?.by === 'keys' ? sameKeys(a, b, spot.rule.keys) : sameJson(a, b)
  return current.flatMap((one) => {
    const before = change.previous.find((other) => same(one, other))
    if (before === undefined) return [one]
    const now = change.applied.find((other) => same(one, other))
    if (now === undefined) return []
    return isJsonObject(one) ? [subtract(one, { previous: before, applied: now }, element(spot))] : [one]
  })
}

/** A key that one of them leaves out has its default there, which is the protocol TCP wherever it happens. */
function sameKeys(a: Json, b: Json, keys: readonly string[]): boolean {
  if (!isJsonObject(a) || !isJsonObject(b)) return false
  const value = (object: JsonObject, key: string): Json => object[key] ?? (key === 'protocol' ? 'TCP' : '')
  return keys.every((key) => sameJson(value(a, key), value(b, key)))
}
