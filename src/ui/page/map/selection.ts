// The selection on the map, and the target of a click: the panel, or an end of the packet in the form.

import { formatRoute } from '../route.ts'

export interface Selection {
  readonly kind: 'service' | 'pod' | 'node' | 'outside' | 'group'
  readonly id: string
}

const KINDS = ['service', 'pod', 'node', 'outside', 'group'] as const

export type MapQuery = Readonly<Record<string, string>>

export function parseSelection(query: MapQuery): Selection | null {
  for (const kind of KINDS) {
    const id = query[kind]
    if (id !== undefined) return { kind, id }
  }
  return null
}

/** Which end of a packet the user picks on the map. */
export function parsePick({ pick }: MapQuery): 'from' | 'to' | null {
  return pick === 'from' || pick === 'to' ? pick : null
}

/** The target of a click on a thing. */
export function selectRoute(selection: Selection, pick: 'from' | 'to' | null): string {
  const { kind, id } = selection
  if (pick === 'from' && kind !== 'service' && kind !== 'group') return formatRoute('packet', packetFrom(selection))
  if (pick === 'to' && kind === 'service') return formatRoute('packet', { to: id })
  return formatRoute('map', { [kind]: id, pick: pick ?? undefined })
}

/** The sender of a packet: a pod, a node's own processes, the machine outside. */
export function packetFrom({ kind, id }: Selection): Record<string, string> {
  if (kind === 'node') return { from: 'node', node: id }
  return { from: kind === 'outside' ? 'outside' : id }
}
