import { expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { ClosedDoors } from './closed-doors.ts'

function open() {
  const told: string[] = []
  const clock = new ManualClock()
  const closed = new ClosedDoors({
    clock,
    onClosed: ({ doors, first }) => told.push(`${doors} from ${first}`),
    onOver: () => told.push('over'),
  })
  const say = async (...counts: readonly number[]) => {
    for (const doors of counts) closed.note({ doors, first: doors === 0 ? undefined : 'default/web' })
    await clock.advance(1000)
    return told.splice(0)
  }
  return { closed, say }
}

test('doors that cannot be opened are told together: at first, when there are twice as many, and when it is over', async () => {
  const { closed, say } = open()
  expect(await say(0)).toEqual([])
  expect(await say(1, 2, 3, 298, 299, 300)).toEqual(['300 from default/web'])
  expect(closed.doors).toBe(300)
  expect(await say(301, 599, 10, 300)).toEqual([])
  expect(await say(600, 601)).toEqual(['601 from default/web'])
  expect(await say(0)).toEqual(['over'])
  expect(await say(0)).toEqual([])
  expect(await say(1)).toEqual(['1 from default/web'])
})

test('what is over at once is not told, nor is anything when the proxy has ended', async () => {
  const { closed, say } = open()
  expect(await say(5, 0)).toEqual([])
  closed.note({ doors: 5, first: 'default/web' })
  closed.stop()
  expect(await say()).toEqual([])
})
