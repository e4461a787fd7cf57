import { expect, test } from 'vitest'
import type { StateAnswer } from '../serve/control/state.ts'
import { formatAge, formatSlowest, formatStatus, planStatus, slowestOf } from './proxy-status.ts'

const metrics = `
kubeproxyts_change_duration_seconds_bucket{ip_family="IPv4",le="0.01"} 3
kubeproxyts_change_duration_seconds_bucket{ip_family="IPv4",le="0.1"} 5
kubeproxyts_change_duration_seconds_bucket{ip_family="IPv4",le="1"} 5
kubeproxyts_change_duration_seconds_bucket{ip_family="IPv4",le="+Inf"} 5
kubeproxyts_change_duration_seconds_bucket{ip_family="IPv6",le="0.01"} 1
kubeproxyts_change_duration_seconds_bucket{ip_family="IPv6",le="+Inf"} 1
`

function aState(drift: object = {}, sync: object = {}): StateAnswer {
  const family = (number: 4 | 6) => ({
    family: number,
    sync: { hasBegun: true, lastSyncMs: 1, refused: 1, ...sync },
    drift: { holds: true, sinceMs: 1000 * number, times: 2, found: [], ...drift },
  })
  return {
    version: 'v1',
    nodeName: 'node-1',
    mode: { name: 'iptables', asked: 'ipvs', reasons: ['no IPVS'] },
    startedMs: 0,
    nowMs: 126_000,
    families: [family(4), family(6)],
    ejected: [{ backend: '10.1.0.1:80', protocol: 'TCP', reason: 'refused', sinceMs: 0 }],
  } as unknown as StateAnswer
}

test('a proxy in sync', () => {
  const status = planStatus(aState(), { metrics, status: '' })
  expect(status).toMatchObject({ inSyncSinceMs: 6000, driftTimes: 4, refused: 2, slowestChangeSeconds: 0.1 })
  expect(formatStatus(status)).toBe(`\
node            node-1
version         v1
mode            iptables (configured: ipvs)
runs for        2m
in sync         for 2m
drift           4 times, restored
refused         2 service ports
ejected         10.1.0.1:80
slowest change  under 100 ms
`)
})

test('a proxy that is not in sync says why', () => {
  const drifted = planStatus(aState({ holds: false, reason: 'the kernel refused' }), { metrics, status: '' })
  expect(drifted.inSyncSinceMs).toBeNull()
  expect(formatStatus(drifted)).toMatch(/^in sync +NO\n +IPv4: the kernel refused\n/m)
  const young = planStatus(aState({}, { hasBegun: false }), { metrics, status: '' })
  expect(young.problems[0]).toBe('IPv4: not all objects have been listed yet')
  const listed = planStatus(aState({}, { lastSyncMs: undefined }), { metrics, status: '' })
  expect(listed.problems[1]).toBe('IPv6: nothing is programmed yet')
})

test('the slowest change', () => {
  expect(slowestOf('')).toBeNull()
  expect(slowestOf(metrics.replace('le="+Inf"} 1', 'le="+Inf"} 2'))).toBe(Infinity)
  expect([null, 0.0051, 2.5, Infinity].map(formatSlowest)).toEqual([
    '-',
    'under 5.1 ms',
    'under 2.5 s',
    'more than is counted',
  ])
})

test('ages', () => {
  expect([0, 119_000, 3_600_000, 7_300_000, 200_000_000].map(formatAge)).toEqual(['0s', '119s', '60m', '2h', '2d'])
})
