// A table of the kernel, read with what packets have added to it, for packets to walk through on paper.

import type { Walkable } from '../lib/packet-walk.ts'
import { NftablesDriver, type NftablesDriverOptions } from './driver.ts'
import type { Table } from './types.ts'
import type { LearnedElement } from './walk.ts'
import { type Learned, walkableTable } from './walkable.ts'

export interface ReadTable {
  readonly table: Table
  readonly learned: Learned
}

/** Undefined when there is no such table. `nowMs` is the time on the clock of the walks. */
export function readTableAndLearned(options: NftablesDriverOptions, nowMs: number): ReadTable | undefined {
  const driver = new NftablesDriver(options)
  try {
    const table = driver.read()
    if (table === undefined) return undefined
    const learned = new Map<string, Map<string, LearnedElement>>()
    for (const set of table.sets.values()) {
      if (!set.dynamic) continue
      const elements = new Map<string, LearnedElement>()
      for (const { element, remainingMs } of driver.readLearned(set)) {
        elements.set(element.key, { data: element.data ?? '', expiresMs: nowMs + remainingMs })
      }
      learned.set(set.name, elements)
    }
    return { table, learned }
  } finally {
    driver.close()
  }
}

export function readWalkableTable(options: NftablesDriverOptions, nowMs: number): Walkable | undefined {
  const read = readTableAndLearned(options, nowMs)
  return read && walkableTable(read.table, read.learned)
}
