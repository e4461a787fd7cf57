// Reads the kernel's lists of backends group by group, so that a million backends are never in memory at once.

import type { Bytes } from '../lib/ip.ts'
import type { Steps } from '../lib/steps.ts'
import type { ServicePortView } from '../model/types.ts'
import type { TableParts } from '../nftables/table-driver.ts'
import type { Table } from '../nftables/types.ts'
import type { TableUpdate } from '../nftables/update-table.ts'
import { frontendKey } from './plan/frontend.ts'
import type { ListLengths, TableLists } from './table-planner.ts'

export function countPlaces(lengths: ListLengths): number {
  let places = 0
  for (const ofMap of lengths.values()) for (const length of ofMap.values()) places += length
  return places
}

interface KernelListsOptions {
  readonly actual: Table
  readonly lists: TableLists
  /** How long the lists are. */
  readonly lengths: ListLengths
  readonly parts: TableParts
  /** Receives the elements that were read. */
  readonly update: TableUpdate
}

export class KernelLists {
  readonly #options: KernelListsOptions
  /** The lists that have not been read yet. */
  readonly #lengths: ListLengths

  constructor(options: KernelListsOptions) {
    this.#options = options
    this.#lengths = options.lengths
  }

  /** Reads the lists of some service ports. */
  read(views: readonly ServicePortView[]): void {
    const frontends = new Set(views.flatMap((view) => view.frontends.map(frontendKey)))
    for (const [map, lengths] of this.#lengths) {
      const keys: Bytes[] = []
      for (const frontend of frontends) this.#takeKeys(lengths, frontend, keys)
      this.#readKeys(map, keys)
    }
  }

  /** Reads the lists of frontends that no service port has any more. */
  *readingRest(): Steps<void> {
    for (const [map, lengths] of this.#lengths) {
      for (const frontend of lengths.keys()) {
        const keys: Bytes[] = []
        this.#takeKeys(lengths, frontend, keys)
        this.#readKeys(map, keys)
        yield
      }
    }
  }

  #takeKeys(lengths: Map<Bytes, number>, frontend: Bytes, keys: Bytes[]): void {
    const { lists } = this.#options
    const length = lengths.get(frontend) ?? 0
    for (let place = 0; place < length; place++) keys.push(lists.placeKey(frontend, place))
    lengths.delete(frontend)
  }

  #readKeys(map: string, keys: readonly Bytes[]): void {
    const { actual, parts, update } = this.#options
    const set = actual.sets.get(map)
    if (set !== undefined && keys.length > 0) update.addFound(set, parts.readKeys(set, keys))
  }
}
