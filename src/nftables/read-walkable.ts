// A table of the kernel, read with what packets have added to it, for packets to walk through on paper.

import { type Bytes, asBytes } from '../lib/ip.ts'
import type { Walkable } from '../packet-walk/types.ts'
import type { TableId } from './bytes/batch.ts'
import { NftablesDriver } from './driver.ts'
import type { PerhapsSets } from './table-driver.ts'
import type { Element, NftSet, Table } from './types.ts'
import type { DynamicElement, WalkedElements, WalkedTable } from './walk.ts'
import { type DynamicElements, walkableTable } from './walkable.ts'

export interface ReadTable {
  readonly table: WalkedTable
  readonly dynamicElements: DynamicElements
}

interface ReadTableOptions extends TableId {
  /** What is not wanted is looked up while packets walk. */
  readonly perhaps?: PerhapsSets
}

/** Undefined when there is no such table. `nowMs` is the time on the clock of the walks. */
export function readTableAndDynamicElements(options: ReadTableOptions, nowMs: number): ReadTable | undefined {
  const { perhaps } = options
  using driver = new NftablesDriver(options)
  let isWhole = true
  const areWanted = (rest: Table) => (isWhole = perhaps!.areWanted(rest))
  const table = driver.read({ anonymousSets: true, perhaps: perhaps && { ...perhaps, areWanted } })
  if (table === undefined) return undefined
  const elements = new Map<string, WalkedElements>(table.elements)
  const dynamicElements = new Map<string, Map<Bytes, DynamicElement>>()
  for (const set of table.sets.values()) {
    if (!isWhole && perhaps?.sets.has(set.name) === true) elements.set(set.name, new LookedUpElements(options, set))
    if (set.dynamic) dynamicElements.set(set.name, readDynamicElements(driver, set, nowMs))
  }
  return { table: { ...table, elements }, dynamicElements }
}

function readDynamicElements(driver: NftablesDriver, set: NftSet, nowMs: number): Map<Bytes, DynamicElement> {
  const elements = new Map<Bytes, DynamicElement>()
  for (const { element, remainingMs } of driver.readDynamicElements(set)) {
    elements.set(element.key, { data: element.data ?? asBytes(''), expiresMs: nowMs + remainingMs })
  }
  return elements
}

/** Of a set that is too long to be read: a packet looks at few of them. */
class LookedUpElements implements WalkedElements {
  readonly #id: TableId
  readonly #set: NftSet

  constructor(id: TableId, set: NftSet) {
    this.#id = id
    this.#set = set
  }

  get(key: Bytes): Element | undefined {
    return this.#ask((driver) => driver.readKeys(this.#set, [key])[0])
  }

  values(): Iterable<Element> {
    return this.#ask((driver) => driver.readElements(this.#set))
  }

  #ask<T>(question: (driver: NftablesDriver) => T): T {
    using driver = new NftablesDriver(this.#id)
    return question(driver)
  }
}

export function readWalkableTable(options: ReadTableOptions, nowMs: number): Walkable | undefined {
  const read = readTableAndDynamicElements(options, nowMs)
  return read && walkableTable(read.table, read.dynamicElements)
}
