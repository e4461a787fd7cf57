import { expect, test } from 'vitest'
import type { ProxyStatus } from '../diagnose/proxy-status.ts'
import type { ProxyPod } from './proxies.ts'
import { formatStatuses, isHealthy, type NodeStatus } from './status.ts'

const pod: ProxyPod = {
  namespace: 'kube-system',
  name: 'p',
  node: 'node-1',
  container: 'kube-proxy',
  image: 'i',
  isReady: true,
  restarts: 0,
  kind: 'kube-proxy-ts',
}
const status: ProxyStatus = {
  version: 'v1.37.0+ts',
  nodeName: 'node-1',
  mode: 'nftables',
  startedMs: 0,
  nowMs: 60_000,
  inSyncSinceMs: 0,
  problems: [],
  driftTimes: 0,
  refused: 0,
  ejected: [],
  slowestChangeSeconds: 0.005,
}
const good: NodeStatus = { node: 'node-1', pod, status }
const other: NodeStatus = {
  node: 'node-2-with-a-long-name',
  pod: { ...pod, kind: 'kube-proxy' },
  note: 'another kube-proxy: go',
}

test('one line a node', () => {
  const bad = {
    ...good,
    node: 'n3',
    status: { ...status, inSyncSinceMs: null, problems: ['IPv4: x\u001b'], ejected: ['a', 'b', 'c'] },
  }
  expect(formatStatuses([good, other, bad])).toBe(`\
NODE                     MODE      VERSION     IN SYNC       DRIFT  REFUSED  EJECTED  SLOWEST CHANGE
node-1                   nftables  v1.37.0+ts  for 60s       0      0        0        under 5 ms
node-2-with-a-long-name  -         -           another kube-proxy: go
n3                       nftables  v1.37.0+ts  NO: IPv4: x?  0      0        3: a, b  under 5 ms
`)
})

test('a node whose proxy is not in sync, or does not answer, makes the command fail; another kube-proxy does not', () => {
  expect(isHealthy([good, other, { node: 'bare' }])).toBe(true)
  expect(isHealthy([{ ...good, status: { ...status, inSyncSinceMs: null } }])).toBe(false)
  expect(isHealthy([{ ...good, status: { ...status, refused: 1 } }])).toBe(false)
  expect(isHealthy([{ node: 'node-1', pod }])).toBe(false)
})
