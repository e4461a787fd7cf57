import { describe, expect, it } from 'vitest'
import { aPod } from '../../../../../test/support/sandbox-objects.ts'
import { formatReady, formatReason, formatRestarts } from './pod-columns.ts'
import type { ContainerState, Pod } from '../objects/pod.ts'

function podWith(state: ContainerState, options: { ready?: boolean; restarts?: number; deleting?: boolean } = {}): Pod {
  const pod = aPod({ deleting: options.deleting ?? false })
  pod.status.containerStatuses = [
    {
      name: 'c',
      image: 'i',
      imageID: '',
      state,
      lastState:
        options.restarts === undefined ? {} : { terminated: { exitCode: 1, finishedAt: '2026-01-01T00:00:00Z' } },
      ready: options.ready ?? false,
      restartCount: options.restarts ?? 0,
    },
  ]
  return pod
}

describe('formatReason()', () => {
  it.each<[string, Pod]>([
    ['Running', podWith({ running: {} }, { ready: true })],
    ['CrashLoopBackOff', podWith({ waiting: { reason: 'CrashLoopBackOff' } })],
    ['Completed', podWith({ terminated: { exitCode: 0, reason: 'Completed' } })],
    ['ExitCode:3', podWith({ terminated: { exitCode: 3 } })],
    ['Signal:9', podWith({ terminated: { exitCode: 137, signal: 9 } })],
    ['Terminating', podWith({ running: {} }, { deleting: true })],
    ['Pending', aPod({ phase: 'Pending' })],
    ['Failed', aPod({ phase: 'Failed', deleting: true })],
  ])('says %s', (reason, pod) => expect(formatReason(pod)).toBe(reason))
})

describe('formatReady() and formatRestarts()', () => {
  it('count', () => {
    expect(formatReady(podWith({ running: {} }, { ready: true }))).toBe('1/1')
    expect(formatReady(podWith({ running: {} }))).toBe('0/1')
    const now = Date.UTC(2026, 0, 1, 0, 0, 7)
    expect(formatRestarts(podWith({ running: {} }), now)).toBe('0')
    expect(formatRestarts(podWith({ running: {} }, { restarts: 2 }), now)).toBe('2 (7s ago)')
  })
})
