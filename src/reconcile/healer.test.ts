import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { silentLogger } from '../lib/log.ts'
import type { SyncStats } from './programmer.ts'
import { Healer } from './healer.ts'

const RESTORED: SyncStats = { transactions: 1, operations: 3, bytes: 5 }
const INTACT: SyncStats = { transactions: 0, operations: 0, bytes: 0 }

/** A healer whose restore() waits for its answer. */
function open() {
  const clock = new ManualClock()
  const answers: { resolve(stats: SyncStats): void; reject(error: Error): void }[] = []
  const told: string[] = []
  const healer = new Healer({
    restore: () => new Promise((resolve, reject) => answers.push({ resolve, reject })),
    onHealed: () => told.push('healed'),
    onFailed: () => told.push('failed'),
    clock,
    log: silentLogger,
  })
  return { clock, healer, answers, told }
}

test('it tells of a comparison that had something to restore, and of no other', async () => {
  const { clock, healer, answers, told } = open()
  healer.heal()
  answers[0]!.resolve(INTACT)
  await clock.advance(100)
  expect(told).toEqual([])
  healer.heal()
  answers[1]!.resolve(RESTORED)
  await clock.advance(100)
  expect(told).toEqual(['healed'])
})

test('what another program changes meanwhile is restored afterwards, once', async () => {
  const { clock, healer, answers } = open()
  for (let change = 0; change < 5; change++) healer.heal()
  expect(answers).toHaveLength(1)
  answers[0]!.resolve(RESTORED)
  await clock.advance(100)
  expect(answers).toHaveLength(2)
  answers[1]!.resolve(INTACT)
  await clock.advance(1000)
  expect(answers).toHaveLength(2)
})

test('a failure is handed on', async () => {
  const { clock, healer, answers, told } = open()
  healer.heal()
  answers[0]!.reject(new Error('refused'))
  await clock.advance(100)
  expect(told).toEqual(['failed'])
})

test('stop() waits for what is under way and begins nothing more', async () => {
  const { clock, healer, answers, told } = open()
  healer.heal()
  healer.heal()
  const stopped = healer.stop().then(() => told.push('stopped'))
  await clock.advance(100)
  expect(told).toEqual([])
  answers[0]!.resolve(RESTORED)
  await stopped
  await clock.advance(1000)
  expect(told).toEqual(['healed', 'stopped'])
  expect(answers).toHaveLength(1)
})
