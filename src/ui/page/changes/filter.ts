// Changes of one service, of one node.

import type { ChangeEntry } from '../../protocol.ts'

export interface ChangeFilter {
  /** `namespace/name`; '' is all. */
  readonly service: string
  readonly node: string
}

/** The newest first. */
export function filterChanges(changes: readonly ChangeEntry[], { service, node }: ChangeFilter): ChangeEntry[] {
  return changes
    .filter((change) => (node === '' || change.node === node) && (service === '' || isOf(change, service)))
    .sort((a, b) => b.doneMs - a.doneMs || b.id - a.id)
}

function isOf({ ports, objects }: ChangeEntry, service: string): boolean {
  if (ports.some((port) => port === service || port.startsWith(`${service}:`))) return true
  return objects.some(({ kind, namespace, name }) => kind === 'Service' && `${namespace}/${name}` === service)
}

/** From the event to the kernel's acknowledgement; null where there was no event. */
export function tookMs({ receivedMs, doneMs }: ChangeEntry): number | null {
  return receivedMs === undefined ? null : Math.max(0, doneMs - receivedMs)
}

/** Whether a line of a difference adds or removes something. */
export function signOf(line: string): 'add' | 'remove' | 'other' {
  if (/^\s*(add|create|insert|replace|-A|-I|-a|-e|\+)/.test(line)) return 'add'
  if (/^\s*(delete|destroy|flush|-D|-X|-F|-d|-)/.test(line)) return 'remove'
  return 'other'
}
