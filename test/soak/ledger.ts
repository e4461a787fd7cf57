// What was lost, and whether something that may lose it was going on.

/** A connection or a datagram that was not answered. */
export interface Loss {
  readonly kind: 'new tcp' | 'long tcp' | 'udp'
  readonly service: string
  /** Where it came from and what it was sent to: `pod-1 -> cluster IP`. */
  readonly path: string
  /** The nodes whose proxy may have led it. */
  readonly through: readonly string[]
  /** The pod that answered before, where one did. */
  readonly pod: string | undefined
  readonly why: string
  /** The last sign of life, or when it was begun. */
  readonly sinceMs: number
  readonly endedMs: number
}

/** Something that may lose connections, from a moment on, until it is closed. Some also demand that a loss looks like theirs. */
export interface Excuse {
  readonly name: string
  readonly sinceMs: number
  untilMs: number
  readonly covers: (loss: Loss) => boolean
}

export interface Counts {
  made: number
  answered: number
  lost: number
  excused: number
}

const MAX_LOSSES = 200
const MAX_EVENTS = 200
const NEAR_MS = 3000

export class Ledger {
  readonly startedMs = performance.now()
  readonly counts: Record<Loss['kind'], Counts> = {
    'new tcp': noneYet(),
    'long tcp': noneYet(),
    udp: noneYet(),
  }
  /** Losses that nothing excuses, the first of them in full. */
  readonly unexcused: string[] = []
  readonly excusedBy = new Map<string, number>()
  readonly examples = new Map<string, string>()
  /** New connections that took longer than the kernel waits before it sends a second time. */
  slow = 0
  #excuses: Excuse[] = []
  readonly #events: { readonly atMs: number; readonly what: string }[] = []

  get lost(): number {
    return Object.values(this.counts).reduce((sum, { lost }) => sum + lost, 0)
  }

  get excused(): number {
    return Object.values(this.counts).reduce((sum, { excused }) => sum + excused, 0)
  }

  /** Notes something that was done to the cluster, to be told with what was lost around it. */
  note(what: string): void {
    this.#events.push({ atMs: performance.now(), what })
    if (this.#events.length > MAX_EVENTS) this.#events.shift()
  }

  /** Opens an excuse; the change that opened it sets `untilMs` when it is over. */
  open(name: string, covers: (loss: Loss) => boolean): Excuse {
    const excuse: Excuse = { name, sinceMs: performance.now(), untilMs: Infinity, covers }
    this.#excuses.push(excuse)
    return excuse
  }

  close(excuse: Excuse): void {
    excuse.untilMs = performance.now()
  }

  lose(loss: Loss): void {
    const counts = this.counts[loss.kind]
    const excuse = this.#excuses.find(
      ({ sinceMs, untilMs, covers }) => loss.endedMs >= sinceMs && loss.sinceMs <= untilMs && covers(loss),
    )
    let line = this.#describe(loss)
    if (excuse === undefined) {
      counts.lost++
      line += `, which was at ${timeOfDay(loss.sinceMs)}${this.#circumstances(loss)}`
      if (this.unexcused.length < MAX_LOSSES) this.unexcused.push(line)
      console.log(`LOST ${line}`)
      return
    }
    counts.excused++
    this.excusedBy.set(excuse.name, (this.excusedBy.get(excuse.name) ?? 0) + 1)
    if (!this.examples.has(excuse.name)) this.examples.set(excuse.name, line)
  }

  /** Forgets excuses that nothing can refer to any more. */
  forgetBefore(ms: number): void {
    this.#excuses = this.#excuses.filter(({ untilMs }) => untilMs > ms)
  }

  /** What was done a little before, and while nothing came. */
  #circumstances({ sinceMs }: Loss): string {
    const near = this.#events.filter(({ atMs }) => Math.abs(atMs - sinceMs) <= NEAR_MS)
    const told = near.map(({ atMs, what }) => `${what} (${((atMs - sinceMs) / 1000).toFixed(2)} s)`)
    return told.length === 0 ? '; nothing was done around it' : `; around it: ${told.join(', ')}`
  }

  #describe({ kind, service, path, pod, why, sinceMs, endedMs }: Loss): string {
    const at = (ms: number) => ((ms - this.startedMs) / 1000).toFixed(2)
    const whom = pod === undefined ? '' : ` (${pod})`
    return `${kind} ${service} ${path}${whom}: ${why}, from ${at(sinceMs)} s to ${at(endedMs)} s`
  }
}

/** As the logs of the proxies have it. */
function timeOfDay(ms: number): string {
  return new Date(performance.timeOrigin + ms).toISOString().slice(11, 23)
}

function noneYet(): Counts {
  return { made: 0, answered: 0, lost: 0, excused: 0 }
}
