import { expect, test } from 'vitest'
import { maglevSize, maglevTable } from './maglev.ts'

const names = (count: number, network = 0) =>
  Array.from({ length: count }, (_, i) => String.fromCharCode(10, network, (i * 3) & 255, (i * 7 + 3) & 255))

const equal = (all: readonly string[]) => all.map(() => 1)

function whoHas(all: readonly string[], size?: number): string[] {
  return maglevTable(all, equal(all), size).map((index) => all[index]!)
}

test('maglevSize() is a prime', () => {
  for (const members of [1, 32, 33, 127, 128, 5000]) {
    const size = maglevSize(members)
    for (let divisor = 2; divisor * divisor <= size; divisor++) expect(size % divisor).not.toBe(0)
  }
})

test('maglevTable() has no places for nobody', () => {
  expect(maglevTable([], [])).toEqual([])
})

test.each([2, 3, 4, 8, 16, 31, 32, 64, 127])('of %d, each has the same part, to one place', (count) => {
  const places = new Map<string, number>()
  for (const who of whoHas(names(count))) places.set(who, (places.get(who) ?? 0) + 1)
  expect(Math.max(...places.values()) - Math.min(...places.values())).toBeLessThanOrEqual(1)
})

test.each([2, 3, 4, 8, 16, 32, 64, 127])('when one of %d goes, at most its part and 2 %% move', (count) => {
  for (const network of [1, 2, 3]) {
    const all = names(count, network)
    const before = whoHas(all)
    for (const gone of all.slice(0, 6)) {
      const after = whoHas(
        all.filter((name) => name !== gone),
        before.length,
      )
      const moved = before.filter((who, place) => who !== after[place]).length
      expect(moved / before.length).toBeLessThanOrEqual(1 / count + 0.02)
    }
  }
})

test('who weighs more has more places', () => {
  const table = maglevTable(names(3), [3, 1, 4])
  const shares = [0, 1, 2].map((who) => table.filter((each) => each === who).length / table.length)
  for (const [who, weight] of [3, 1, 4].entries()) expect(Math.abs(shares[who]! - weight / 8)).toBeLessThan(1 / 256)
})
