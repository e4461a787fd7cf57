// Least connections, where the kernel does not compare backends itself: who has more open connections than others gets a smaller share
// of the new ones. Shares are rungs of a ladder, from all to a 32nd. A backend goes down as fast as the numbers say, two rungs at a time
// at most, and not for a difference that may be chance. It comes up one rung at a time when it is as fast as the others again, and
// very slowly otherwise: one that is slow for certain would else get a backlog again and again.

/** A rung is smaller than the one before by the root of two. */
const LADDER: readonly number[] = [32, 23, 16, 11, 8, 6, 4, 3, 2, 1]
const LAST = LADDER.length - 1

export const FULL_SHARE = LADDER[0]!

/** At most so many rungs down in one step. */
const MOST_DOWN = 2
/** So far has the aim to be from the rung. */
const DEAD_BAND = 0.75
/** Connections of each backend that say nothing: they are short, and come by chance. */
const CHANCE = 0.75
/** Up, for who is as fast as the others, or nearly. */
const UP = 1
const NEARLY = 1.5
/** Up, for all others. */
const LEAK = 0.1
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

/** The next rungs of each backend, which may lie between two. The one with the fewest connections is on the first. */
export function nextRungs(loads: readonly Load[], rungs: readonly number[]): readonly number[] {
  const open = loads.reduce((sum, load) => sum + load.open, 0)
  const begun = loads.reduce((sum, load) => sum + load.begun, 0)
  // Without traffic, nothing is known any more.
  if (open + begun < ENOUGH * loads.length) return rungs.map((rung) => Math.max(0, rung - UP))
  const each = loads.map((load) => load.open / load.weight)
  const total = each.reduce((sum, value) => sum + value, 0)
  const little = Math.max(CHANCE, total / each.length / 16)
  const aims = loads.map((load, i) => {
    const others = (total - each[i]!) / Math.max(1, each.length - 1)
    const far = Math.log2((each[i]! + little) / (others + little))
    if (far >= DEAD_BAND) return rungs[i]! + Math.min(MOST_DOWN, Math.round(far))
    const isFast = far <= -DEAD_BAND || isNearlyAsFast(load, { open: open - load.open, begun: begun - load.begun })
    return rungs[i]! - (isFast ? UP : LEAK)
  })
  const first = aims.reduce((least, aim) => Math.min(least, aim), Infinity)
  return aims.map((aim) => Math.round(within(aim - Math.max(0, first)) * 10) / 10)
}

/** How long connections last is how many are open for each that begins. */
function isNearlyAsFast({ open, begun }: Load, others: Pick<Load, 'open' | 'begun'>): boolean {
  return open * others.begun <= NEARLY * others.open * begun
}

function within(rung: number): number {
  return Math.max(0, Math.min(LAST, rung))
}

/** Of the nearest rung. */
export function shareOf(rung: number): number {
  return LADDER[Math.round(rung)]!
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

/** Whether all shares are the same. */
export function sameShares(a: Rungs, b: Rungs): boolean {
  const isIn =
    (other: Rungs) =>
    ([backend, rung]: readonly [string, number]) =>
      shareOf(rung) === shareOf(other.get(backend) ?? 0)
  return [...a].every(isIn(b)) && [...b].every(isIn(a))
}

const NOTHING = { open: 0, begun: 0 }
