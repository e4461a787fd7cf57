// RFC 7386: objects are merged, null removes, everything else replaces.

import { isJsonObject } from '../json.ts'
import type { Json, JsonObject } from '../json.ts'

export function applyMergePatch(document: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) return structuredClone(patch)
  const merged: JsonObject = isJsonObject(document) ? { ...document } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key]
    else merged[key] = applyMergePatch(merged[key], value)
  }
  return merged
}
