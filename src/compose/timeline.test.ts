import { expect, test } from 'vitest'
import type { ChangesAnswer } from '../serve/control/changes.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { ChangeListener, RecordedChange } from '../reconcile/recorder.ts'
import { Timeline } from './timeline.ts'

function open() {
  const clock = new ManualClock()
  let listener: ChangeListener | undefined
  const lastComparison = aChange('all of it')
  const timeline = new Timeline({
    recorders: [{ listen: (given) => (listener = given), lastComparison }],
    about: () => ({ mode: 'nftables', nodeName: 'n' }),
    clock,
  })
  const ask = (signal: AbortSignal, query = '') =>
    timeline.question.answer(new URLSearchParams(query), { signal }) as Promise<ChangesAnswer>
  return { clock, timeline, ask, listener: () => listener }
}

function aChange(...commands: string[]): RecordedChange {
  return {
    family: 4,
    why: 'event',
    objects: [],
    moreObjects: 0,
    ports: [],
    morePorts: 0,
    beganMs: 1,
    doneMs: 2,
    operations: commands.length,
    bytes: 0,
    commands,
    moreCommands: 0,
  }
}

test('nothing listens before the first client, nor after the last', async () => {
  const { ask, listener, timeline } = open()
  expect(listener()).toBeUndefined()
  const [first, second] = [new AbortController(), new AbortController()]
  await ask(first.signal)
  await ask(second.signal)
  expect(listener()).toBeDefined()
  first.abort()
  expect(timeline.isOn).toBe(true)
  second.abort()
  expect([timeline.isOn, listener()]).toEqual([false, undefined])
})

test('a client that does not ask any more is forgotten after a while', async () => {
  const { ask, listener, clock } = open()
  const { signal } = new AbortController()
  await ask(signal)
  await clock.advance(14_000)
  await ask(signal)
  await clock.advance(14_000)
  expect(listener()).toBeDefined()
  await clock.advance(2000)
  expect(listener()).toBeUndefined()
})

test('changes are given once, the last comparison first; a client waits for the next', async () => {
  const { ask, listener } = open()
  const { signal } = new AbortController()
  const first = await ask(signal)
  expect(first).toMatchObject({ nodeName: 'n', changes: [{ number: 1, commands: ['all of it'] }], last: 1 })
  const waiting = ask(signal, 'after=1&wait=5000')
  listener()!(aChange('add element'))
  await expect(waiting).resolves.toMatchObject({ changes: [{ number: 2, commands: ['add element'] }], missed: 0 })
  await expect(ask(signal, 'after=2')).resolves.toMatchObject({ changes: [], last: 2 })
})

test('who waits in vain gets an answer that says so', async () => {
  const { ask, clock } = open()
  const waiting = ask(new AbortController().signal, 'after=1&wait=60000')
  await clock.advance(10_000)
  await expect(waiting).resolves.toMatchObject({ changes: [] })
})

test('what is remembered has a limit, and what is missing is counted', async () => {
  const { ask, listener } = open()
  const { signal } = new AbortController()
  await ask(signal)
  for (let i = 0; i < 150; i++) listener()!(aChange(`command ${i}`))
  const { changes, missed, last } = await ask(signal, 'after=1')
  expect([changes.length, missed, last]).toEqual([100, 50, 151])
  for (let i = 0; i < 20; i++) listener()!(aChange('x'.repeat(100_000)))
  expect((await ask(signal, 'after=151')).changes).toHaveLength(10)
})

test('an argument that is no number is refused', async () => {
  await expect(open().ask(new AbortController().signal, 'after=-1')).rejects.toThrow(/must be a number/)
})
