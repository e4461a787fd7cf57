// Backends at which a client failed are suspects. The node probes each one, ejects those that fail the probe too, and goes on
// probing those until they answer.

import type { Clock, Timer } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { FailureKind, Place } from './decode-failure.ts'
import { SuspectQuota } from './suspect-quota.ts'

/** `unknown`: the node could not connect for reasons of its own, which says nothing about the backend. */
export type ProbeResult = 'answers' | 'fails' | 'unknown'

export interface SuspectedBackend extends Place {
  readonly family: Family
}

/** One backend under suspicion, as /statusz and `explain` show it. */
export interface Suspect extends SuspectedBackend {
  readonly state: 'suspected' | 'ejected'
  /** How a client failed there. */
  readonly reason: FailureKind
  /** When this state began, in milliseconds since 1970. */
  readonly sinceMs: number
  /** Probes that failed. */
  readonly failedProbes: number
  /** When an ejected one is tried next, in milliseconds since 1970. */
  readonly nextProbeMs: number | undefined
}

/** `acquitted`: the probe found nothing wrong. `returned`: an ejected one answers again. `gone`: it is no backend any more. */
export type SuspectChange = 'suspected' | 'acquitted' | 'ejected' | 'returned' | 'gone'

export interface SuspectsOptions {
  readonly clock: Clock
  readonly probe: (backend: SuspectedBackend) => Promise<ProbeResult>
  readonly onChange: (suspect: Suspect, change: SuspectChange) => void
}

/** Pauses between the probes of an ejected backend: doubling, up to the longest. */
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 30_000
/** A backend that has just passed a probe is not probed again for this long, however many clients fail. */
const TRUSTED_MS = 1000

interface Entry {
  readonly backend: SuspectedBackend
  readonly reason: FailureKind
  state: Suspect['state']
  sinceMs: number
  failedProbes: number
  nextProbeMs: number | undefined
  timer: Timer | undefined
}

export class Suspects {
  readonly #options: SuspectsOptions
  readonly #entries = new Map<string, Entry>()
  readonly #quota = new SuspectQuota()
  /** Until when backends count as healthy, by the monotonic clock. Oldest first. */
  readonly #trusted = new Map<string, number>()

  constructor(options: SuspectsOptions) {
    this.#options = options
  }

  /** A client of one of these services failed at this backend. Returns the state of the backend now. */
  report(backend: SuspectedBackend, reason: FailureKind, services: readonly string[]): Suspect['state'] | 'trusted' {
    const key = keyOf(backend)
    const known = this.#entries.get(key)
    if (known !== undefined) return known.state
    if (this.#isTrusted(key)) return 'trusted'
    if (!this.#quota.take(key, services, this.#options.clock.monotonicNow())) return 'trusted'
    const entry: Entry = {
      backend,
      reason,
      state: 'suspected',
      sinceMs: this.#options.clock.now(),
      failedProbes: 0,
      nextProbeMs: undefined,
      timer: undefined,
    }
    this.#entries.set(key, entry)
    this.#notify(entry, 'suspected')
    void this.#try(entry)
    return 'suspected'
  }

  /** No service port uses the backend any more. */
  forget(backend: SuspectedBackend): void {
    const entry = this.#entries.get(keyOf(backend))
    if (entry !== undefined) this.#end(entry, 'gone')
  }

  /** Oldest suspicion first. */
  list(): Suspect[] {
    return Array.from(this.#entries.values(), toSuspect)
  }

  /** Ends all probes. */
  close(): void {
    for (const { timer } of this.#entries.values()) timer?.cancel()
    this.#entries.clear()
    this.#quota.clear()
  }

  async #try(entry: Entry): Promise<void> {
    const result = await this.#options.probe(entry.backend)
    // No service port may use it any more.
    if (this.#entries.get(keyOf(entry.backend)) !== entry) return
    if (result === 'fails') this.#failed(entry)
    else if (entry.state === 'suspected') this.#acquit(entry)
    else if (result === 'answers') this.#end(entry, 'returned')
    else this.#tryLater(entry)
  }

  #failed(entry: Entry): void {
    entry.failedProbes++
    const isNew = entry.state === 'suspected'
    if (isNew) {
      entry.state = 'ejected'
      entry.sinceMs = this.#options.clock.now()
    }
    this.#tryLater(entry)
    if (isNew) this.#notify(entry, 'ejected')
  }

  #acquit(entry: Entry): void {
    const { clock } = this.#options
    const nowMs = clock.monotonicNow()
    for (const [key, untilMs] of this.#trusted) {
      if (untilMs > nowMs) break
      this.#trusted.delete(key)
    }
    this.#trusted.set(keyOf(entry.backend), nowMs + TRUSTED_MS)
    this.#end(entry, 'acquitted')
  }

  #isTrusted(key: string): boolean {
    const untilMs = this.#trusted.get(key)
    return untilMs !== undefined && untilMs > this.#options.clock.monotonicNow()
  }

  #tryLater(entry: Entry): void {
    const { clock } = this.#options
    const doublings = Math.min(entry.failedProbes - 1, 16)
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** doublings, LONGEST_PAUSE_MS)
    entry.nextProbeMs = clock.now() + pauseMs
    entry.timer = clock.setTimeout(() => void this.#try(entry), pauseMs)
  }

  #end(entry: Entry, change: 'acquitted' | 'returned' | 'gone'): void {
    entry.timer?.cancel()
    this.#entries.delete(keyOf(entry.backend))
    this.#quota.leave(keyOf(entry.backend), this.#options.clock.monotonicNow())
    this.#notify(entry, change)
  }

  #notify(entry: Entry, change: SuspectChange): void {
    this.#options.onChange(toSuspect(entry), change)
  }
}

function toSuspect({ backend, state, reason, sinceMs, failedProbes, nextProbeMs }: Entry): Suspect {
  return { ...backend, state, reason, sinceMs, failedProbes, nextProbeMs }
}

function keyOf({ ip, port }: Place): string {
  return `${ip} ${port}`
}
