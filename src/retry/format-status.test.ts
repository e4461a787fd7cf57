import { expect, test } from 'vitest'
import { formatRetryStatus } from './format-status.ts'
import type { Suspect } from './suspects.ts'

const dead: Suspect = {
  family: 4,
  ip: '10.1.0.7',
  port: 8080,
  state: 'ejected',
  reason: 'refused',
  sinceMs: 1000,
  failedProbes: 3,
  nextProbeMs: 17_000,
}

test('formatRetryStatus() says nothing where there is nothing to say', () => {
  expect(formatRetryStatus({ covered: () => 0, suspects: () => [] }, 0)).toBe('')
})

test('formatRetryStatus() names each suspect, since when and why', () => {
  const suspected: Suspect = {
    ...dead,
    family: 6,
    ip: 'fd01::7',
    state: 'suspected',
    reason: 'silent',
    sinceMs: 12_000,
  }
  expect(formatRetryStatus({ covered: () => 2, suspects: () => [dead, suspected] }, 13_000)).toBe(
    [
      'Connect retry: service ports=2',
      '  10.1.0.7:8080 ejected for 12s (refused), probes=3, next in 4s',
      '  [fd01::7]:8080 suspected for 1s (silent)',
    ].join('\n'),
  )
})
