import { expect, test } from 'vitest'
import type { FlowRecord } from '../flows/flow-record.ts'
import { formatFlow } from './flows-view.ts'

const flow: FlowRecord = {
  timeMs: Date.UTC(2026, 0, 1, 4, 5, 12, 44),
  event: 'ended',
  service: 'shop/web:http',
  protocol: 'TCP',
  client: { ip: '10.244.0.7', port: 40000, pod: 'shop/client', node: 'node-1' },
  frontend: { ip: '10.96.0.1', port: 80 },
  backend: { ip: '10.244.1.3', port: 8080, pod: 'shop/web-1', node: 'node-2' },
  end: 'closed',
  durationMs: 12.3,
  sentBytes: 420,
  receivedBytes: 1234,
}

test('a connection is one line', () => {
  expect(formatFlow(flow)).toBe(
    '04:05:12.044 shop/client 10.244.0.7:40000 on node-1 -> shop/web:http (10.96.0.1:80/tcp) -> shop/web-1 10.244.1.3:8080 on node-2: closed after 12.3 ms, sent 420 B, received 1.23k B',
  )
})

test('what is not known is left out', () => {
  const { backend: _, sentBytes: __, receivedBytes: ___, durationMs: ____, ...rest } = flow
  const client = { ip: 'fd00::7', port: 1 }
  const frontend = { ip: 'fd00::1', port: 53 }
  expect(formatFlow({ ...rest, client, frontend, protocol: 'UDP', end: 'expired' })).toBe(
    '04:05:12.044 [fd00::7]:1 -> shop/web:http ([fd00::1]:53/udp): expired',
  )
  const node = { ip: '172.18.0.2', port: 1, node: 'node-1' }
  expect(formatFlow({ ...rest, client: node, event: 'unanswered', durationMs: 3400 })).toMatch(
    / 172\.18\.0\.2:1 on node-1 -> .*: no answer yet after 3\.4 s$/,
  )
})

test('no name can do anything to a terminal', () => {
  expect(formatFlow({ ...flow, service: 'a/\u001b[2J' })).not.toContain('\u001b')
})
