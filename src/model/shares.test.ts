import { expect, test } from 'vitest'
import { moveRungs, nextRungs, sameShares, shareOf } from './shares.ts'

/** Backends that need so long for each connection, and so many connections a tick: what is open follows from the shares. */
function play(delays: readonly number[], { ticks = 40, rate = 50, weights = delays.map(() => 1) } = {}) {
  let rungs: readonly number[] = delays.map(() => 0)
  const path = [rungs]
  for (let tick = 0; tick < ticks; tick++) {
    const parts = rungs.map((rung, i) => shareOf(rung) * weights[i]!)
    const total = parts.reduce((sum, part) => sum + part, 0)
    const loads = delays.map((delay, i) => {
      const begun = (rate * parts[i]!) / total
      return { weight: weights[i]!, begun, open: begun * delay }
    })
    rungs = nextRungs(loads, rungs)
    path.push(rungs)
  }
  return path
}

test('a backend that is ten times slower gets about a tenth, within ten ticks, and it stays so', () => {
  const path = play([1, 1, 1, 10])
  for (const rungs of path.slice(10)) {
    expect(rungs.slice(0, 3)).toEqual([0, 0, 0])
    expect(shareOf(rungs[3]!)).toBeGreaterThanOrEqual(2)
    expect(shareOf(rungs[3]!)).toBeLessThanOrEqual(6)
  }
})

test('no rung moves by more than two at a time, however slow a backend is', () => {
  const path = play([1, 1, 1000])
  for (const [i, rungs] of path.slice(1).entries())
    for (const [backend, rung] of rungs.entries()) expect(Math.abs(rung - path[i]![backend]!)).toBeLessThanOrEqual(2)
  expect(shareOf(path.at(-1)![2]!)).toBe(1)
})

test('backends that are nearly alike stay where they are', () => {
  expect(play([1, 1.2, 0.9, 1.1]).every((rungs) => rungs.every((rung) => rung === 0))).toBe(true)
})

test('a few short connections more are chance', () => {
  const few = [0.1, 0.6, 0.2].map((open) => ({ weight: 1, open, begun: 10 }))
  expect(nextRungs(few, [0, 0, 0])).toEqual([0, 0, 0])
})

test('who is slow comes up very slowly, and who is as fast as the others one rung at a time', () => {
  const loads = (open: number) => [1, 1, open].map((each) => ({ weight: 1, open: each, begun: each === open ? 2 : 20 }))
  expect(nextRungs(loads(0.9), [0, 0, 6])).toEqual([0, 0, 5.9])
  expect(nextRungs(loads(0.12), [0, 0, 6])).toEqual([0, 0, 5])
})

test('who weighs more may have more connections open', () => {
  expect(play([1, 1], { weights: [4, 1] }).at(-1)).toEqual([0, 0])
})

test('without traffic all come back to the first rung', () => {
  expect(
    nextRungs(
      [
        { weight: 1, open: 0, begun: 0 },
        { weight: 1, open: 0.1, begun: 1 },
      ],
      [0, 5],
    ),
  ).toEqual([0, 4])
})

test('moveRungs() knows backends by name, and forgets those that are gone', () => {
  const loads = new Map([
    ['a', { open: 1, begun: 20 }],
    ['b', { open: 30, begun: 20 }],
  ])
  const weights = new Map([
    ['a', 1],
    ['b', 1],
  ])
  expect(moveRungs(weights, loads, new Map([['c', 7]]))).toEqual(new Map([['b', 2]]))
  expect(sameShares(new Map([['b', 3]]), new Map([['b', 2.9]]))).toBe(true)
  expect(sameShares(new Map([['b', 3]]), new Map([['b', 2.4]]))).toBe(false)
  expect(sameShares(new Map([['b', 0.4]]), new Map())).toBe(true)
  expect(sameShares(new Map(), new Map([['b', 1]]))).toBe(false)
})
