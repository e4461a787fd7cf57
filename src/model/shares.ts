// Least connections, where the kernel does not compare backends itself: who has more open connections than others gets a smaller share
// of the new ones. Shares are rungs of a ladder, from all to a 32nd. They move at most two rungs at a time, half as far as the
// numbers say, and not for less than a rung, so that chance moves nothing.

/** A rung is smaller than the one before by the root of two. */
const LADDER: readonly number[] = [32, 23, 16, 11, 8, 6, 4, 3, 2, 1]
const LAST = LADDER.length - 1

export const FULL_SHARE = LADDER[0]!

/** At most so many rungs in one step. */
const MOST_RUNGS = 2
/** So far has the aim to be from the rung. */
const DEAD_BAND = 0.75
/** With less than this for each backend, the numbers say nothing. */
const ENOUGH = 2

/** What was seen of one backend, lately. */
export interface Load {
  /** How much it weighs, that is, how many connections it is to have in proportion to others. */
  readonly weight: number
  /** Open connections, on average. */
  readonly open: number
  /** Connections that began. */
  readonly begun: number
}

/** The next rung of each backend. The one with the fewest connections is on the first. */
export function nextRungs(loads: readonly Load[], rungs: readonly number[]): readonly number[] {
  const seen = loads.reduce((sum, { open, begun }) => sum + open + begun, 0)
  // Without traffic, nothing is known any more.
  if (seen < ENOUGH * loads.length) return rungs.map((rung) => Math.max(0, rung - 1))
  const each = loads.map(({ open, weight }) => open / weight)
  const mean = each.reduce((sum, open) => sum + open, 0) / each.length
  const little = mean / 16
  const aims = each.map((open, i) => {
    const far = Math.log2((open + little) / (mean + little))
    return rungs[i]! + (Math.abs(far) < DEAD_BAND ? 0 : Math.round(far))
  })
  const first = aims.reduce((least, aim) => Math.min(least, aim), Infinity)
  return aims.map((aim, i) => within(aim - first, rungs[i]! - MOST_RUNGS, Math.min(LAST, rungs[i]! + MOST_RUNGS)))
}

function within(value: number, least: number, most: number): number {
  return Math.max(0, least, Math.min(most, value))
}

export function shareOf(rung: number): number {
  return LADDER[rung]!
}

/** What was seen of backends, by `ip:port`. */
export type SeenLoads = ReadonlyMap<string, Pick<Load, 'open' | 'begun'>>

/** By `ip:port`: the rung of backends that are not on the first. */
export type Rungs = ReadonlyMap<string, number>

/** Whether so little was seen that nothing moves, but for those that come back. */
export function isIdle(loads: SeenLoads): boolean {
  let seen = 0
  for (const { open, begun } of loads.values()) seen += open + begun
  return seen < ENOUGH
}

/** The next rungs; `weights` has the backends that may be chosen. */
export function moveRungs(weights: ReadonlyMap<string, number>, loads: SeenLoads, rungs: Rungs): Rungs {
  const seen = Array.from(weights, ([backend, weight]) => ({ weight, ...(loads.get(backend) ?? NOTHING) }))
  const next = nextRungs(
    seen,
    [...weights.keys()].map((backend) => rungs.get(backend) ?? 0),
  )
  return new Map([...weights.keys()].flatMap((backend, i) => (next[i] === 0 ? [] : [[backend, next[i]!] as const])))
}

export function sameRungs(a: Rungs, b: Rungs): boolean {
  return a.size === b.size && [...a].every(([backend, rung]) => b.get(backend) === rung)
}

const NOTHING = { open: 0, begun: 0 }
