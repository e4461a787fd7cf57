import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { TryAgain } from './try-again.ts'

function open(work: (attempt: number) => boolean) {
  const clock = new ManualClock()
  const attempts: number[] = []
  const said: string[] = []
  const attempt = () => {
    attempts.push(clock.monotonicNow())
    if (work(attempts.length)) again.succeeded()
    else again.failed(new Error('no'))
  }
  const again = new TryAgain({
    clock,
    again: attempt,
    onFailed: (_, againInMs) => said.push(String(againInMs)),
    onMended: () => said.push('mended'),
    mostMs: 1000,
  })
  return { clock, attempts, said, attempt, again }
}

test('the pauses double up to a limit, and start again after a success', async () => {
  const { clock, attempts, said, attempt } = open((number) => number === 7 || number > 8)
  attempt()
  await clock.advance(60_000)
  expect(attempts).toEqual([0, 100, 300, 700, 1500, 2500, 3500])
  attempt()
  await clock.advance(60_000)
  expect(said).toEqual(['100', '200', '400', '800', '1000', '1000', 'mended', '100', 'mended'])
})

test('what succeeds at once is no news, and nothing is tried after close()', async () => {
  const { clock, attempts, said, attempt, again } = open((number) => number === 1)
  attempt()
  expect(said).toEqual([])
  attempt()
  expect(again.isWaiting).toBe(true)
  again.close()
  await clock.advance(60_000)
  again.failed(new Error('late'))
  expect(again.isWaiting).toBe(false)
  expect(attempts).toHaveLength(2)
})
