// One Endpoints object becomes several slices; the program's handlers take single slices.

import type { ObjectEvent, ResourceHandler } from './resource-handler.ts'
import { namespacedName, type EndpointSlice } from './types.ts'

/** A handler of Endpoints that delivers their slices to a handler of slices. */
export function flattenSlices(handler: ResourceHandler<EndpointSlice>): ResourceHandler<readonly EndpointSlice[]> {
  const keysOf = new Map<string, readonly string[]>()

  function flatten(event: ObjectEvent<readonly EndpointSlice[]>, flat: ObjectEvent<EndpointSlice>[]): void {
    const before = keysOf.get(event.key) ?? []
    const slices = event.type === 'set' ? event.object : []
    const now = slices.map(namespacedName)
    const kept = new Set(now)
    for (const key of before) {
      if (!kept.has(key)) flat.push({ type: 'delete', key })
    }
    for (const [index, object] of slices.entries()) flat.push({ type: 'set', key: now[index]!, object })
    if (now.length === 0) keysOf.delete(event.key)
    else keysOf.set(event.key, now)
  }

  return {
    onEvents(events) {
      const flat: ObjectEvent<EndpointSlice>[] = []
      for (const event of events) flatten(event, flat)
      if (flat.length > 0) handler.onEvents(flat)
    },
    onSynced: () => handler.onSynced?.(),
    onUnavailable: (error) => handler.onUnavailable?.(error),
    onAvailable: () => handler.onAvailable?.(),
  }
}
