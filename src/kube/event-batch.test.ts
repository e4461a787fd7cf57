import { expect, test } from 'vitest'
import { EventBatch } from './event-batch.ts'

function aBatch(): { batch: EventBatch<number>; delivered: number[] } {
  const delivered: number[] = []
  const batch = new EventBatch<number>({ onEvents: (events) => void delivered.push(events.length) })
  return { batch, delivered }
}

const ignore = () => {}

test('EventBatch.flushSoon() delivers what came within one turn together', async () => {
  const { batch, delivered } = aBatch()
  for (let i = 0; i < 3; i++) {
    batch.add({ type: 'set', key: `${i}`, object: i })
    batch.flushSoon(ignore)
  }
  expect(delivered).toEqual([])
  await new Promise((resolve) => void setImmediate(resolve))
  expect(delivered).toEqual([3])
})

test('EventBatch.flushSoon() does not let the objects of a long list wait', () => {
  const { batch, delivered } = aBatch()
  for (let i = 0; i < 1000; i++) {
    batch.add({ type: 'set', key: `${i}`, object: i })
    batch.flushSoon(ignore)
  }
  expect(delivered.length).toBeGreaterThan(2)
  expect(Math.max(...delivered)).toBeLessThan(500)
  batch.discard()
})
