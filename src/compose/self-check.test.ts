import { expect, test } from 'vitest'
import type { RecordedEvent } from '../kube/events.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { silentLogger } from '../lib/log.ts'
import { type Fault, type RunningNode, SelfCheck } from './self-check.ts'

const full: Fault = { code: 'conntrack-full', level: 'warning', message: '9 of 10 are tracked', todo: 'raise it' }
const wrong: Fault = { code: 'node-wrong', level: 'problem', message: 'it cannot work', todo: undefined }
const running = () => ({ node: undefined }) as RunningNode

function open(...answers: (readonly Fault[] | Error)[]) {
  const clock = new ManualClock()
  const events: RecordedEvent[] = []
  const judge = async () => {
    const answer = answers.shift()
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error('it was not to be asked again')
    return answer
  }
  const check = new SelfCheck({ judge, clock, log: silentLogger })
  const begin = async () => {
    check.begin(running, { record: (event) => events.push(event) })
    await clock.advance(3000)
  }
  return { check, events, begin, clock }
}

test('SelfCheck says what is wrong, and what to do', async () => {
  const { check, begin } = open([full, wrong])
  expect(check.status()).toBe('kube-proxy check: not judged yet')
  await begin()
  expect(check.status()).toBe(`kube-proxy check:
  warning  9 of 10 are tracked
           -> raise it
  PROBLEM  it cannot work`)
})

test('SelfCheck tells each fault once in an Event, and forgets in the status what was mended', async () => {
  const { check, events, begin } = open([full], [full, wrong], [])
  await begin()
  expect(events).toMatchObject([{ type: 'Warning', reason: 'KubeProxyCheck', note: '9 of 10 are tracked; raise it' }])
  await begin()
  expect(events.map(({ note }) => note)).toEqual(['9 of 10 are tracked; raise it', 'it cannot work'])
  await begin()
  expect(check.status()).toBe('kube-proxy check: nothing is wrong')
  expect(events).toHaveLength(2)
})

test('SelfCheck leaves to others what they tell, and goes on when it cannot judge', async () => {
  const { check, events, begin } = open(new Error('no'), [{ ...full, code: 'mode-default' }])
  await begin()
  expect(check.status()).toBe('kube-proxy check: not judged yet')
  await begin()
  expect(check.status()).toContain('9 of 10')
  expect(events).toEqual([])
})

test('SelfCheck judges once for several changes at once, and no more when it is stopped', async () => {
  const { check, clock, begin, events } = open([full])
  check.begin(running, { record: () => {} })
  await clock.advance(1000)
  await begin()
  expect(events).toHaveLength(1)
  check.begin(running, { record: (event) => events.push(event) })
  check.stop()
  await clock.advance(10_000)
  expect(events).toHaveLength(1)
})

test('SelfCheck waits for the first rules, but not for ever', async () => {
  const { check, clock } = open([full], [full])
  let isBusy = true
  const begin = () => check.begin(running, { record: () => {} }, () => isBusy)
  begin()
  await clock.advance(60_000)
  expect(check.status()).toContain('not judged yet')
  isBusy = false
  await clock.advance(3000)
  expect(check.status()).toContain('9 of 10')
  const stuck = open([wrong])
  stuck.check.begin(running, { record: () => {} }, () => true)
  await stuck.clock.advance(120_000)
  expect(stuck.check.status()).toContain('it cannot work')
})
