// The question `traffic`: the kernel counts while there is an asker, and no longer.

import type { Asker, Question } from '../control/questions.ts'
import { allowArguments, QuestionError } from '../control/questions.ts'
import type { CarriedRow, TrafficAnswer, TrafficCounts, TrafficRow } from '../control/traffic.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { KernelError, messageOf } from '../lib/errors.ts'
import { joinHostPort, type Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Carried, Counted, TrafficCounter } from '../modes/contract.ts'

export interface TrafficOptions {
  readonly families: readonly { readonly family: Family; readonly views: () => Iterable<ServicePortView> }[]
  readonly about: () => { readonly mode: string; readonly nodeName: string; readonly ejected: readonly string[] }
  readonly clock: Clock
  readonly log: Logger
  /** The mode's; absent: it cannot tell. */
  readonly open: ((family: Family) => TrafficCounter) | undefined
}

/** An asker that has not asked for this long does not look any more. */
const LEASE_MS = 15_000

export class Traffic {
  readonly #options: TrafficOptions
  /** The commands that look, with the end of what they were promised. */
  readonly #askers = new Map<AbortSignal, Timer>()
  /** Whether metrics show it: then it goes on until they do no longer. */
  #isKept = false
  #counters: ReadonlyMap<Family, TrafficCounter> | undefined
  readonly #forgotten = new Map<Family, ForgottenPairs>()
  #sinceMs = 0

  constructor(options: TrafficOptions) {
    this.#options = options
  }

  readonly question: Question = {
    name: 'traffic',
    what: `connections, packets and bytes by service, frontend and backend; counts while the asker keeps asking, at least every ${LEASE_MS / 1000} s`,
    answer: (query, asker) => {
      allowArguments(query)
      this.#promise(asker)
      return this.#answer()
    },
  }

  /** Counts on and on, whether a command looks or not, or no longer so. Throws when it cannot. */
  keep(isKept: boolean): void {
    this.#isKept = isKept
    try {
      if (isKept) this.#begin()
      else this.#endIfUnused()
    } catch (error) {
      this.#isKept = false
      throw error
    }
  }

  /** What has been counted so far; undefined while nothing counts. */
  read(): TrafficAnswer | undefined {
    return this.#counters === undefined ? undefined : this.#answer()
  }

  /** Counting ends, whichever command looks. */
  close(): void {
    this.#isKept = false
    for (const timer of this.#askers.values()) timer.cancel()
    this.#askers.clear()
    this.#endIfUnused()
  }

  get isCounting(): boolean {
    return this.#counters !== undefined
  }

  #promise({ signal }: Asker): void {
    const before = this.#askers.get(signal)
    before?.cancel()
    const leave = () => {
      this.#askers.get(signal)?.cancel()
      if (this.#askers.delete(signal)) this.#endIfUnused()
    }
    if (before === undefined) signal.addEventListener('abort', leave, { once: true })
    this.#askers.set(signal, this.#options.clock.setTimeout(leave, LEASE_MS))
    try {
      this.#begin()
    } catch (error) {
      leave()
      throw new QuestionError(`Cannot count: ${messageOf(error)}`)
    }
  }

  #begin(): void {
    if (this.#counters !== undefined) return
    const { families, open, about, clock, log } = this.#options
    if (open === undefined) throw new Error(`the ${about().mode} mode is not counted here; see its own tools`)
    const counters = new Map<Family, TrafficCounter>()
    try {
      for (const { family } of families) counters.set(family, open(family))
    } catch (error) {
      for (const counter of counters.values()) counter.close()
      throw error
    }
    this.#counters = counters
    for (const { family } of families) this.#forgotten.set(family, new ForgottenPairs())
    this.#sinceMs = clock.now()
    log.info('Counting traffic, because it is asked for')
  }

  #endIfUnused(): void {
    if (this.#askers.size > 0 || this.#isKept || this.#counters === undefined) return
    this.#end()
    this.#options.log.info('Counting traffic no longer')
  }

  #end(): void {
    const counters = this.#counters ?? new Map<Family, TrafficCounter>()
    this.#counters = undefined
    for (const counter of counters.values()) {
      try {
        counter.close()
      } catch (error) {
        const isGone = error instanceof KernelError && error.errno === 'ENOENT'
        if (!isGone) this.#options.log.error(error, 'Cannot end counting traffic')
      }
    }
  }

  #answer(): TrafficAnswer {
    try {
      return this.#readAll()
    } catch (error) {
      if (!(error instanceof KernelError && error.errno === 'ENOENT')) throw error
      // Another program has removed what counts (`nft flush ruleset`): from now on, then.
      this.#end()
      this.#begin()
      return this.#readAll()
    }
  }

  #readAll(): TrafficAnswer {
    const { families, about, clock } = this.#options
    const { mode, nodeName, ejected } = about()
    const rows: TrafficRow[] = []
    let carried: CarriedRow[] | undefined
    let other: TrafficCounts = NOTHING
    for (const { family, views } of families) {
      const all = [...views()]
      const counted = this.#counters!.get(family)!.read(all)
      const found = rowsOf(all, counted, new Set(ejected))
      rows.push(...(counted.carried === undefined ? found : byFrontend(found)))
      if (counted.carried !== undefined) carried = [...(carried ?? []), ...counted.carried.map(carriedRow)]
      other = plus(other, restOf(counted, this.#forgotten.get(family)!.follow(counted)))
    }
    return { nowMs: clock.now(), sinceMs: this.#sinceMs, mode, nodeName, rows, other, carried }
  }
}

const NOTHING: TrafficCounts = { begun: 0, sentPackets: 0, sentBytes: 0, receivedPackets: 0, receivedBytes: 0 }

/** Translations of other programs are left out. */
function rowsOf(views: readonly ServicePortView[], counted: Counted, ejected: ReadonlySet<string>): TrafficRow[] {
  const services = new Map<string, string>()
  for (const { name, frontends } of views) {
    for (const { protocol, address, port } of frontends) services.set(`${protocol} ${address ?? ''} ${port}`, name)
  }
  const serviceAt = (protocol: string, address: string | undefined, port: number) =>
    services.get(`${protocol} ${address ?? ''} ${port}`) ?? services.get(`${protocol}  ${port}`)
  const rows: TrafficRow[] = []
  for (const { protocol, frontend, backend, begun, sent, received } of counted.pairs) {
    const service = serviceAt(protocol, frontend.address, frontend.port)
    if (service === undefined) continue
    const to = joinHostPort(backend.address, backend.port)
    rows.push({
      service,
      frontend: `${protocol.toLowerCase()} ${joinHostPort(frontend.address, frontend.port)}`,
      backend: to,
      begun,
      sentPackets: sent.packets,
      sentBytes: sent.bytes,
      receivedPackets: received.packets,
      receivedBytes: received.bytes,
      refused: 0,
      isEjected: ejected.has(to),
    })
  }
  for (const { protocol, address, port, packets } of counted.refusals) {
    const service = serviceAt(protocol, address, port)
    if (service === undefined) continue
    const frontend = `${protocol.toLowerCase()} ${address === undefined ? `*:${port}` : joinHostPort(address, port)}`
    rows.push({ ...NOTHING, service, frontend, refused: packets, isEjected: false })
  }
  return rows
}

/** What the kernel calls backends are doors of the proxy, several for a frontend. */
function byFrontend(rows: readonly TrafficRow[]): TrafficRow[] {
  const sums = new Map<string, TrafficRow>()
  for (const row of rows) {
    const key = `${row.service} ${row.frontend}`
    const before = sums.get(key)
    const refused = row.refused + (before?.refused ?? 0)
    sums.set(key, { ...row, backend: undefined, isEjected: false, refused, ...plus(row, before ?? NOTHING) })
  }
  return [...sums.values()]
}

function carriedRow({ backend, protocol, isResting, ...counts }: Carried): CarriedRow {
  return { ...counts, protocol: protocol.toLowerCase(), backend: join(backend), isEjected: isResting }
}

/** The kernel forgets a pair that had no packets for a while; the totals do not. */
class ForgottenPairs {
  #last = new Map<string, TrafficCounts>()
  #sum = NOTHING

  /** What pairs had that are forgotten by now. */
  follow({ pairs }: Counted): TrafficCounts {
    const now = new Map(
      pairs.map((pair) => [`${pair.protocol} ${join(pair.frontend)} ${join(pair.backend)}`, countsOf(pair)]),
    )
    for (const [key, before] of this.#last) {
      const after = now.get(key)
      // One that is there again has begun anew.
      if (after === undefined || after.sentPackets < before.sentPackets) this.#sum = plus(this.#sum, before)
    }
    this.#last = now
    return this.#sum
  }
}

function join({ address, port }: { readonly address: string; readonly port: number }): string {
  return joinHostPort(address, port)
}

function countsOf({ begun, sent, received }: Counted['pairs'][number]): TrafficCounts {
  return {
    begun,
    sentPackets: sent.packets,
    sentBytes: sent.bytes,
    receivedPackets: received.packets,
    receivedBytes: received.bytes,
  }
}

function restOf({ pairs, total }: Counted, forgotten: TrafficCounts): TrafficCounts {
  const sum = pairs.reduce<TrafficCounts>((all, pair) => plus(all, countsOf(pair)), forgotten)
  // Packets that come between two readings must not make it negative.
  const rest = (whole: number, part: number) => Math.max(0, whole - part)
  return {
    begun: rest(total.begun, sum.begun),
    sentPackets: rest(total.sent.packets, sum.sentPackets),
    sentBytes: rest(total.sent.bytes, sum.sentBytes),
    receivedPackets: rest(total.received.packets, sum.receivedPackets),
    receivedBytes: rest(total.received.bytes, sum.receivedBytes),
  }
}

function plus(a: TrafficCounts, b: TrafficCounts): TrafficCounts {
  return {
    begun: a.begun + b.begun,
    sentPackets: a.sentPackets + b.sentPackets,
    sentBytes: a.sentBytes + b.sentBytes,
    receivedPackets: a.receivedPackets + b.receivedPackets,
    receivedBytes: a.receivedBytes + b.receivedBytes,
  }
}
