// Turns the counts that the kernel has for pairs of addresses into rows by service. There are thousands of pairs, so the labels of a
// pair are kept for the next reading, and other work has turns in between.

import type { CarriedRow, TrafficRow } from '../serve/control/traffic.ts'
import { inPieces } from '../lib/in-pieces.ts'
import { type Family, joinHostPort } from '../lib/ip.ts'
import { addTraffic, NO_TRAFFIC, type TrafficCounts } from '../traffic/traffic-counts.ts'
import { ServiceFinder } from '../model/service-finder.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Carried, Counted } from '../modes/contract.ts'

type Pair = Counted['pairs'][number]

/** The pairs that are processed before other work has a turn. */
const PIECE = 1024

const FIELDS = Object.keys(NO_TRAFFIC) as (keyof TrafficCounts)[]

/** The service, frontend and backend of a pair, as text. */
interface PairLabels {
  /** Undefined: another program translated it. */
  readonly service: string | undefined
  readonly frontend: string
  readonly backend: string
}

export interface FoundRows {
  readonly rows: readonly TrafficRow[]
  /** The identity of each row, unique across families. */
  readonly ids: readonly string[]
  /** The counts of pairs for which the kernel had no room. */
  readonly other: TrafficCounts
}

/** The rows of one family. */
export class FamilyRows {
  readonly #family: Family
  readonly #services = new ServiceFinder()
  /** From the last reading. */
  #labels = new Map<string, PairLabels>()
  #counts = new Map<string, TrafficCounts>()
  /** The counts of pairs that the kernel has dropped, as it does after a while without packets. Its totals keep them. */
  #forgotten = NO_TRAFFIC

  constructor(family: Family) {
    this.#family = family
  }

  async follow(
    views: readonly ServicePortView[],
    { pairs, refusals, total, carried }: Counted,
    ejected: ReadonlySet<string>,
  ): Promise<FoundRows> {
    const isChanged = await this.#services.follow(views)
    const known = isChanged ? new Map<string, PairLabels>() : this.#labels
    const labels = new Map<string, PairLabels>()
    const counts = new Map<string, TrafficCounts>()
    const [rows, ids]: [TrafficRow[], string[]] = [[], []]
    const sum = { ...NO_TRAFFIC }
    await inPieces(pairs, PIECE, (pair) => {
      const named = known.get(pair.id) ?? this.#labelsOf(pair)
      labels.set(pair.id, named)
      counts.set(pair.id, pair)
      addTraffic(sum, pair)
      if (named.service === undefined) return
      ids.push(pair.id)
      rows.push(rowOf(named, pair, ejected.has(named.backend)))
    })
    await this.#noteForgotten(counts)
    this.#labels = labels
    this.#counts = counts
    for (const { protocol, address, port, packets } of refusals) {
      const service = this.#services.at(protocol, address, port)
      if (service === undefined) continue
      const where = address === undefined ? `*:${port}` : joinHostPort(address, port)
      const frontend = `${protocol.toLowerCase()} ${where}`
      ids.push(`IPv${this.#family} refused at ${frontend}`)
      rows.push({ ...NO_TRAFFIC, service, frontend, refused: packets, isEjected: false })
    }
    addTraffic(sum, this.#forgotten)
    const other = restOf(total, sum)
    return carried === undefined ? { rows, ids, other } : { ...byFrontend(this.#family, rows), other }
  }

  #labelsOf({ protocol, frontend, backend }: Pair): PairLabels {
    return {
      service: this.#services.at(protocol, frontend.address, frontend.port),
      frontend: `${protocol.toLowerCase()} ${joinHostPort(frontend.address, frontend.port)}`,
      backend: joinHostPort(backend.address, backend.port),
    }
  }

  async #noteForgotten(now: ReadonlyMap<string, TrafficCounts>): Promise<void> {
    const forgotten = { ...this.#forgotten }
    await inPieces(this.#counts, PIECE, ([id, before]) => {
      const after = now.get(id) ?? NO_TRAFFIC
      // A smaller count began at zero again. The kernel drops counts one by one: that of new connections before that of packets.
      for (const field of FIELDS) if (after[field] < before[field]) forgotten[field] += before[field]
    })
    this.#forgotten = forgotten
  }
}

function rowOf({ service = '', frontend, backend }: PairLabels, pair: Pair, isEjected: boolean): TrafficRow {
  return {
    service,
    frontend,
    backend,
    begun: pair.begun,
    sentPackets: pair.sentPackets,
    sentBytes: pair.sentBytes,
    receivedPackets: pair.receivedPackets,
    receivedBytes: pair.receivedBytes,
    refused: 0,
    isEjected,
    ...(pair.isChosen === true ? { isChosen: true } : {}),
  }
}

/** In the userspace mode, the backends that the kernel sees are listeners of the proxy, several for a frontend: sums them up. */
function byFrontend(family: Family, rows: readonly TrafficRow[]): Omit<FoundRows, 'other'> {
  const sums = new Map<string, TrafficRow>()
  for (const row of rows) {
    const key = `IPv${family} ${row.service} ${row.frontend}`
    const before = sums.get(key)
    const refused = row.refused + (before?.refused ?? 0)
    sums.set(key, { ...row, backend: undefined, isEjected: false, refused, ...plus(row, before ?? NO_TRAFFIC) })
  }
  return { rows: [...sums.values()], ids: [...sums.keys()] }
}

export function carriedRow({ backend, protocol, isResting, ...counts }: Carried): CarriedRow {
  const { address, port } = backend
  return { ...counts, protocol: protocol.toLowerCase(), backend: joinHostPort(address, port), isEjected: isResting }
}

export function plus(a: TrafficCounts, b: TrafficCounts): TrafficCounts {
  const sum = { ...NO_TRAFFIC }
  addTraffic(sum, a)
  addTraffic(sum, b)
  return sum
}

function restOf(total: TrafficCounts, part: TrafficCounts): TrafficCounts {
  // The total and its parts are read one after the other: packets in between must not make the rest negative.
  const rest = (field: keyof TrafficCounts) => Math.max(0, total[field] - part[field])
  return {
    begun: rest('begun'),
    sentPackets: rest('sentPackets'),
    sentBytes: rest('sentBytes'),
    receivedPackets: rest('receivedPackets'),
    receivedBytes: rest('receivedBytes'),
  }
}
