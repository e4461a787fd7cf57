import { Buffer } from 'node:buffer'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ByteQueue } from './byte-queue.ts'

/** Small, as most reads from a socket; and as large as makes the buffer grow beyond what is kept. */
const chunkLength = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 64 * 1024 }) },
  { weight: 1, arbitrary: fc.integer({ min: 500_000, max: 2_000_000 }) },
)
const step = fc.oneof(
  fc.record({ append: chunkLength }),
  // In thousandths of what is there: all of it, as at the end of an object, or a part.
  fc.record({ consume: fc.oneof(fc.constant(1000), fc.nat({ max: 1000 })) }),
)

test('gives the bytes in the order in which they came, however large what came before', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const queue = new ByteQueue()
      let expected = Buffer.alloc(0)
      let chunks = 0
      for (const each of steps) {
        if ('append' in each) {
          const chunk = Buffer.alloc(each.append, ++chunks)
          queue.append(chunk)
          expected = Buffer.concat([expected, chunk])
        } else {
          const length = Math.floor((expected.length * each.consume) / 1000)
          queue.consumeTo(queue.start + length)
          expected = expected.subarray(length)
        }
        expect(queue.length).toBe(expected.length)
        expect(queue.bytes.subarray(queue.start, queue.end).equals(expected)).toBe(true)
      }
    }),
    { numRuns: 200 },
  )
})

test('gives back a buffer that grew for one huge object when the next bytes come', () => {
  const queue = new ByteQueue()
  queue.append(Buffer.alloc(3_000_000))
  queue.consumeTo(queue.end)
  queue.append(Buffer.from('next'))
  expect(queue.bytes.toString('latin1', queue.start, queue.end)).toBe('next')
  expect(queue.bytes.length).toBeLessThan(1_000_000)
})
