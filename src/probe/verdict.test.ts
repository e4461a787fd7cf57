import { expect, test } from 'vitest'
import type { Check, Expected } from './checks.ts'
import { planChecks } from './plan-checks.ts'
import type { Attempt } from './protocol.ts'
import { someFacts } from '../../test/support/probe-facts.ts'
import { judge } from './verdict.ts'

const [some] = planChecks(someFacts(2), 'start')
const aCheck = (expected: Expected): Check => ({ ...some!, expected })
const by = (endpoint: string, more: Partial<Attempt> = {}): Attempt => ({
  outcome: 'answered',
  greeting: { endpoint, client: '10.244.1.2' },
  ...more,
})
const both = ['pod-1:8080', 'pod-2:8080']

test.each<[string, Expected, readonly Attempt[], string]>([
  ['an answer by one of them', { kind: 'answer', by: both }, [by('pod-2:8080')], ''],
  [
    'an answer by another',
    { kind: 'answer', by: both },
    [by('pod-3:8080')],
    'pod-3:8080 answered; only pod-1:8080, pod-2:8080 may',
  ],
  ['no answer', { kind: 'answer', by: both }, [{ outcome: 'no answer' }], 'no answer'],
  [
    'a failure after answers',
    { kind: 'answer', by: both },
    [by('pod-1:8080'), { outcome: 'refused' }],
    'refused, after 1 answer',
  ],
  ['each answers', { kind: 'answer', by: both, spread: 'each' }, [by('pod-1:8080'), by('pod-2:8080')], ''],
  [
    'one is left out',
    { kind: 'answer', by: both, spread: 'each' },
    [by('pod-1:8080'), by('pod-1:8080')],
    'none of 2 connections went to pod-2:8080',
  ],
  ['itself is reached', { kind: 'answer', by: both, spread: { includes: 'pod-2:8080' } }, [by('pod-2:8080')], ''],
  [
    'itself is not reached',
    { kind: 'answer', by: both, spread: { includes: 'pod-2:8080' } },
    [by('pod-1:8080')],
    'none of 1 connections went to pod-2:8080',
  ],
  ['affinity holds', { kind: 'answer', by: both, spread: 'one' }, [by('pod-1:8080'), by('pod-1:8080')], ''],
  [
    'affinity is broken',
    { kind: 'answer', by: both, spread: 'one' },
    [by('pod-1:8080'), by('pod-2:8080')],
    'pod-1:8080, pod-2:8080 answered; affinity asks for one',
  ],
  [
    'the client is seen',
    { kind: 'answer', by: both, keepsClient: true },
    [by('pod-1:8080', { from: '10.244.1.2' })],
    '',
  ],
  [
    'the client is hidden',
    { kind: 'answer', by: both, keepsClient: true },
    [by('pod-1:8080', { from: '172.30.0.1' })],
    'the endpoint sees 10.244.1.2, not the client 172.30.0.1',
  ],
  ['the status', { kind: 'answer', status: 503 }, [{ outcome: 'answered', status: 503 }], ''],
  ['another status', { kind: 'answer', status: 503 }, [{ outcome: 'answered', status: 200 }], 'status 200, not 503'],
  ['a refusal', { kind: 'refusal' }, [{ outcome: 'refused' }], ''],
  ['silence for a refusal', { kind: 'refusal' }, [{ outcome: 'no answer' }], 'no answer; it should be refused at once'],
  [
    'an answer for a refusal',
    { kind: 'refusal' },
    [by('pod-1:8080')],
    'pod-1:8080 answered; the Service has no endpoints',
  ],
  ['silence', { kind: 'nothing' }, [{ outcome: 'no answer' }], ''],
  ['a refusal for silence', { kind: 'nothing' }, [{ outcome: 'refused' }], ''],
  ['an answer for silence', { kind: 'nothing' }, [by('pod-1:8080')], 'pod-1:8080 answered; no endpoint may'],
])('%s', (_, expected, attempts, reason) => {
  expect(judge(aCheck(expected), attempts)).toEqual({ kind: reason === '' ? 'pass' : 'fail', reason })
})

test('what is measured passes, and is counted', () => {
  const verdict = judge(aCheck({ kind: 'measure' }), [by('pod-1:8080'), { outcome: 'refused' }, by('pod-1:8080')])
  expect(verdict).toEqual({ kind: 'pass', reason: '', measured: { failed: 1, of: 3 } })
})

test('what is measured fails where nothing answers, or where there is silence', () => {
  const verdict = (...attempts: Attempt[]) => judge(aCheck({ kind: 'measure' }), attempts)
  expect(verdict({ outcome: 'refused' }, { outcome: 'refused' })).toEqual({ kind: 'fail', reason: 'refused' })
  expect(verdict(by('pod-1:8080'), { outcome: 'no answer' })).toEqual({ kind: 'fail', reason: 'no answer' })
})

test('a node without a route to an address that leads nowhere says nothing about its proxy; elsewhere it is a failure', () => {
  const external = planChecks(someFacts(2), 'start').find(
    ({ row, client }) => row === 'external IP' && client.kind === 'node',
  )
  expect(judge(external!, [{ outcome: 'no route' }]).kind).toBe('not tried')
  expect(judge(aCheck({ kind: 'answer' }), [{ outcome: 'no route' }]).kind).toBe('fail')
  expect(judge(aCheck({ kind: 'answer' }), []).kind).toBe('not tried')
})
