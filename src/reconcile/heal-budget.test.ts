import { expect, it } from 'vitest'
import { HealBudget } from './heal-budget.ts'

/** Another program changes our rules whenever they are restored: when are they? */
function fight(budget: HealBudget, { fromMs, untilMs }: { fromMs: number; untilMs: number }) {
  const heals: number[] = []
  const usedUp: number[] = []
  for (let nowMs = fromMs; nowMs < untilMs; nowMs += Math.max(1, budget.waitMs(nowMs))) {
    if (budget.waitMs(nowMs) > 0) continue
    budget.begin(nowMs)
    heals.push(nowMs)
    if (budget.spend(nowMs)) usedUp.push(nowMs)
  }
  return { heals, usedUp }
}

it('HealBudget lets rules be restored at once, and again after 50 ms', () => {
  const { heals, usedUp } = fight(new HealBudget(), { fromMs: 1000, untilMs: 1200 })
  expect(heals).toEqual([1000, 1050, 1100, 1150])
  expect(usedUp).toEqual([])
})

it('HealBudget slows a fight down to once in two seconds, and says so once', () => {
  const { heals, usedUp } = fight(new HealBudget(), { fromMs: 0, untilMs: 600_000 })
  expect(heals.filter((ms) => ms < 5000)).toHaveLength(100)
  const later = heals.filter((ms) => ms >= 60_000)
  expect(later).toHaveLength(270)
  expect(Math.max(...later.slice(1).map((ms, i) => ms - later[i]!))).toBe(2000)
  expect(usedUp).toHaveLength(1)
})

it('HealBudget recovers when the fight is over', () => {
  const budget = new HealBudget()
  fight(budget, { fromMs: 0, untilMs: 10_000 })
  const { heals, usedUp } = fight(budget, { fromMs: 300_000, untilMs: 310_000 })
  expect(heals.filter((ms) => ms < 305_000)).toHaveLength(100)
  expect(usedUp).toHaveLength(1)
})

it('HealBudget is not touched by comparisons that find nothing', () => {
  const budget = new HealBudget()
  for (let nowMs = 0; nowMs < 10_000; nowMs += 50) {
    expect(budget.waitMs(nowMs)).toBe(0)
    budget.begin(nowMs)
  }
})
