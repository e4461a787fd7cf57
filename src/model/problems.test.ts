import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { ProblemLog } from './problems.ts'
import type { Problem } from './problems.ts'

function aLog() {
  const told: Problem[] = []
  return { told, log: new ProblemLog((problem) => told.push(problem)) }
}

test('ProblemLog tells a problem once, however often the object is looked at', () => {
  const { told, log } = aLog()
  log.set('Service a/b', 4, ['is odd'])
  log.set('Service a/b', 4, ['is odd'])
  expect(told).toEqual([{ object: 'Service a/b', message: 'is odd' }])
})

test('ProblemLog tells a hundred problems at once, then one per second, and how many it kept to itself', async () => {
  const clock = new ManualClock()
  const told: Problem[] = []
  const log = new ProblemLog((problem) => told.push(problem), clock)
  for (let i = 0; i < 100_000; i++) log.set(`Service a/${i}`, 4, ['is odd'])
  expect(told).toHaveLength(101)
  expect(told.at(-1)?.message).toBe('too many problems; not all are logged')
  await clock.advance(1000)
  log.set('Service a/b', 4, ['is odd'])
  log.set('Service a/c', 4, ['is odd'])
  expect(told.at(-2)?.message).toBe('is odd (99900 others were not logged)')
  expect(told).toHaveLength(103)
})

test('ProblemLog tells a problem that both families see once', () => {
  const { told, log } = aLog()
  log.set('Service a/b', 4, ['is odd'])
  log.set('Service a/b', 6, ['is odd', 'has no IPv6'])
  expect(told.map(({ message }) => message)).toEqual(['is odd', 'has no IPv6'])
})

test('ProblemLog keeps what the other family still sees', () => {
  const { told, log } = aLog()
  log.set('Service a/b', 4, ['is odd'])
  log.set('Service a/b', 6, ['is odd'])
  log.set('Service a/b', 4, [])
  expect([...log.problems()]).toHaveLength(1)
  log.set('Service a/b', 4, ['is odd'])
  expect(told).toHaveLength(1)
})

test('ProblemLog tells a problem again after it was gone', () => {
  const { told, log } = aLog()
  log.set('Service a/b', 4, ['is odd'])
  log.set('Service a/b', 4, [])
  expect([...log.problems()]).toEqual([])
  log.set('Service a/b', 4, ['is odd'])
  expect(told).toHaveLength(2)
})
