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

/** Changes that did something, and runs of those that did nothing as one. */
export function foldIdle(changes: readonly ChangeEntry[]): readonly (ChangeEntry | readonly ChangeEntry[])[] {
  const rows: (ChangeEntry | ChangeEntry[])[] = []
  for (const change of changes) {
    const last = rows.at(-1)
    if (change.operations > 0 || change.error !== undefined) rows.push(change)
    else if (Array.isArray(last)) last.push(change)
    else rows.push([change])
  }
  return rows
}

const ADDRESS = /(\d+\.\d+\.\d+\.\d+)(?: \. |:)\d+/g

/** Which endpoints were ejected, and which are back, by the lines of the difference: elements that only move are in both. */
export function ejectedIn({ commands, moreCommands }: Pick<ChangeEntry, 'commands' | 'moreCommands'>): {
  readonly ejected: readonly string[]
  readonly back: readonly string[]
} {
  // What is not shown may be the other half of a move.
  if (moreCommands > 0) return { ejected: [], back: [] }
  const addresses = (sign: string) =>
    new Set(commands.filter((line) => signOf(line) === sign).flatMap((line) => lastAddress(line) ?? []))
  const [added, removed] = [addresses('add'), addresses('remove')]
  return {
    ejected: [...removed].filter((each) => !added.has(each)),
    back: [...added].filter((each) => !removed.has(each)),
  }
}

/** The endpoint stands behind the address that clients dial. */
function lastAddress(line: string): string | undefined {
  return [...line.matchAll(ADDRESS)].at(-1)?.[1]
}

/** Whether a line of a difference adds or removes something. */
export function signOf(line: string): 'add' | 'remove' | 'other' {
  if (/^\s*(?:-t \w+ )?(add|create|insert|replace|-A|-I|-a|-e|\+)/.test(line)) return 'add'
  if (/^\s*(?:-t \w+ )?(delete|destroy|flush|-D|-X|-F|-d|-)/.test(line)) return 'remove'
  return 'other'
}
