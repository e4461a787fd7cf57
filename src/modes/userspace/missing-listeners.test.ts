import { expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { MissingListeners } from './missing-listeners.ts'

function open() {
  const reported: string[] = []
  const clock = new ManualClock()
  const missing = new MissingListeners({
    clock,
    onMissing: ({ listeners, first }) => reported.push(`${listeners} from ${first}`),
    onOver: () => reported.push('over'),
  })
  const say = async (...counts: readonly number[]) => {
    for (const listeners of counts) missing.note({ listeners, first: listeners === 0 ? undefined : 'default/web' })
    await clock.advance(1000)
    return reported.splice(0)
  }
  return { missing, say }
}

test('listeners that cannot be opened are reported together: at first, when there are twice as many, and when it is over', async () => {
  const { missing, say } = open()
  expect(await say(0)).toEqual([])
  expect(await say(1, 2, 3, 298, 299, 300)).toEqual(['300 from default/web'])
  expect(missing.count).toBe(300)
  expect(await say(301, 599, 10, 300)).toEqual([])
  expect(await say(600, 601)).toEqual(['601 from default/web'])
  expect(await say(0)).toEqual(['over'])
  expect(await say(0)).toEqual([])
  expect(await say(1)).toEqual(['1 from default/web'])
})

test('what is over at once is not reported, nor is anything when the proxy has ended', async () => {
  const { missing, say } = open()
  expect(await say(5, 0)).toEqual([])
  missing.note({ listeners: 5, first: 'default/web' })
  missing.stop()
  expect(await say()).toEqual([])
})
