// Against an HTTP server that stands for a collector.

import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { FlowRecord } from './flow-record.ts'
import { encodeLogs, otlpSink } from './otlp.ts'

const record: FlowRecord = {
  timeMs: 1_700_000_000_123,
  event: 'ended',
  service: 'shop/web:http',
  protocol: 'TCP',
  client: { ip: '10.244.0.7', port: 40000, pod: 'shop/client', node: 'node-1' },
  frontend: { ip: '10.96.0.1', port: 80 },
  backend: { ip: '10.244.1.3', port: 8080, pod: 'shop/web-1', node: 'node-2' },
  end: 'closed',
  durationMs: 12.5,
  sentBytes: 400,
}

interface LogRecord {
  readonly timeUnixNano: string
  readonly severityText: string
  readonly body: { readonly stringValue: string }
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[]
}
interface Logs {
  readonly resourceLogs: readonly { readonly scopeLogs: readonly { readonly logRecords: readonly LogRecord[] }[] }[]
}
const recordsOf = (logs: unknown) => (logs as Logs).resourceLogs[0]!.scopeLogs[0]!.logRecords

const received: { headers: IncomingHttpHeaders; path: string | undefined; body: unknown }[] = []
let status: number
const collector = createServer((request, response) => {
  let text = ''
  request.on('data', (chunk) => (text += String(chunk)))
  request.on('end', () => {
    received.push({ headers: request.headers, path: request.url, body: JSON.parse(text) })
    response.writeHead(status).end('{}')
  })
})
let url: URL

beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  url = new URL(`http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/logs`)
})
beforeEach(() => {
  received.length = 0
  status = 200
})
afterAll(() => collector.close())

test('records as OpenTelemetry encodes them', async () => {
  await otlpSink({ url, node: 'node-1', version: 'v1' }).send([record], 0)
  const [{ headers, path, body }] = received as [(typeof received)[number]]
  expect([path, headers['content-type']]).toEqual(['/v1/logs', 'application/json'])
  const [sent] = recordsOf(body)
  expect(sent).toMatchObject({
    timeUnixNano: '1700000000123000000',
    severityText: 'INFO',
    body: { stringValue: 'shop/client -> shop/web:http -> shop/web-1: closed' },
  })
  const values = Object.fromEntries(sent!.attributes.map(({ key, value }) => [key, value]))
  expect(values).toMatchObject({
    'event.name': { stringValue: 'kube_proxy.flow.ended' },
    'client.port': { intValue: '40000' },
    'k8s.service.name': { stringValue: 'web' },
    'kube_proxy.flow.backend.pod': { stringValue: 'shop/web-1' },
    'kube_proxy.flow.duration_ms': { doubleValue: 12.5 },
    'kube_proxy.flow.sent_bytes': { intValue: '400' },
  })
  expect(values).not.toHaveProperty(['kube_proxy.flow.received_bytes'])
})

test('what was left out is a record of its own', () => {
  const [only] = recordsOf(encodeLogs([], 7, { node: 'node-1', version: 'v1' }))
  expect(only).toMatchObject({ severityText: 'WARN', body: { stringValue: expect.stringContaining('7 connections') } })
})

test('a collector that is busy or gone gets them later', async () => {
  status = 503
  await expect(otlpSink({ url, node: 'n', version: 'v1' }).send([record], 0)).rejects.toThrow('status 503')
  const gone = new URL('http://127.0.0.1:1/v1/logs')
  await expect(otlpSink({ url: gone, node: 'n', version: 'v1' }).send([record], 0)).rejects.toThrow('ECONNREFUSED')
})

test('what a collector refuses for good is dropped, and counted', async () => {
  status = 400
  await otlpSink({ url, node: 'n', version: 'v1' }).send([record], 2)
  expect(recordsOf(received[1]!.body)[0]!.body.stringValue).toContain('3 connections')
})
