// The flow log as OpenTelemetry log records: OTLP over HTTP, in JSON.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp

import type { IncomingMessage } from 'node:http'
import { request as requestPlain, secure } from '../lib/http.ts'
import { joinHostPort } from '../lib/ip.ts'
import type { FlowRecord } from './flow-record.ts'
import type { FlowSink } from './flow-queue.ts'

export interface OtlpOptions {
  readonly url: URL
  readonly node: string
  readonly version: string
}

const PATIENCE_MS = 5000
const INFO = 9
const WARN = 13

/** The collector said that it will never take these. */
class RefusedRecordsError extends Error {}

export function otlpSink(options: OtlpOptions): FlowSink {
  return {
    name: options.url.href,
    async send(records, leftOut) {
      try {
        await post(options.url, JSON.stringify(encodeLogs(records, leftOut, options)))
      } catch (error) {
        // The specification: what is refused for good is dropped. Sent again it would be refused again.
        if (!(error instanceof RefusedRecordsError)) throw error
        if (records.length > 0)
          await post(options.url, JSON.stringify(encodeLogs([], leftOut + records.length, options))).catch(() => {})
      }
    },
  }
}

type Value = { readonly stringValue: string } | { readonly intValue: string } | { readonly doubleValue: number }
interface KeyValue {
  readonly key: string
  readonly value: Value
}

/** ExportLogsServiceRequest */
export function encodeLogs(
  records: readonly FlowRecord[],
  leftOut: number,
  { node, version }: Omit<OtlpOptions, 'url'>,
): object {
  const logRecords = records.map(encodeRecord)
  if (leftOut > 0) {
    const text = `${leftOut} connections were left out, because there were too many`
    logRecords.push(logRecord(Date.now(), WARN, text, attributes({ 'kube_proxy.flow.left_out': leftOut })))
  }
  const resource = { attributes: attributes({ 'service.name': 'kube-proxy', 'k8s.node.name': node }) }
  return { resourceLogs: [{ resource, scopeLogs: [{ scope: { name: 'kube-proxy-ts/flows', version }, logRecords }] }] }
}

function encodeRecord(record: FlowRecord): object {
  const { service, protocol, client, frontend, backend, event, end } = record
  const [servicePort = '', portName] = service.split(':')
  const [namespace = '', name = ''] = servicePort.split('/')
  const to = backend === undefined ? '' : ` -> ${backend.pod ?? joinHostPort(backend.ip, backend.port)}`
  const text = `${client.pod ?? joinHostPort(client.ip, client.port)} -> ${service}${to}: ${end ?? event}`
  const isBad = event === 'unanswered' || end === 'refused by the backend' || end === 'no answer'
  const values = attributes({
    'event.name': `kube_proxy.flow.${event}`,
    'network.transport': protocol.toLowerCase(),
    'network.type': client.ip.includes(':') ? 'ipv6' : 'ipv4',
    'client.address': client.ip,
    'client.port': client.port,
    'server.address': frontend.ip,
    'server.port': frontend.port,
    'k8s.namespace.name': namespace,
    'k8s.service.name': name,
    'kube_proxy.flow.service_port': portName,
    'kube_proxy.flow.client.pod': client.pod,
    'kube_proxy.flow.client.node': client.node,
    'kube_proxy.flow.backend.address': backend?.ip,
    'kube_proxy.flow.backend.port': backend?.port,
    'kube_proxy.flow.backend.pod': backend?.pod,
    'kube_proxy.flow.backend.node': backend?.node,
    'kube_proxy.flow.end': end,
    'kube_proxy.flow.duration_ms': record.durationMs === undefined ? undefined : { doubleValue: record.durationMs },
    'kube_proxy.flow.sent_bytes': record.sentBytes,
    'kube_proxy.flow.received_bytes': record.receivedBytes,
    'kube_proxy.flow.sent_packets': record.sentPackets,
    'kube_proxy.flow.received_packets': record.receivedPackets,
  })
  return logRecord(record.timeMs, isBad ? WARN : INFO, text, values)
}

function logRecord(timeMs: number, severityNumber: number, text: string, values: readonly KeyValue[]): object {
  const timeUnixNano = (BigInt(Math.round(timeMs * 1000)) * 1000n).toString()
  return {
    timeUnixNano,
    observedTimeUnixNano: timeUnixNano,
    severityNumber,
    severityText: severityNumber === WARN ? 'WARN' : 'INFO',
    body: { stringValue: text },
    attributes: values,
  }
}

function attributes(values: Readonly<Record<string, string | number | Value | undefined>>): KeyValue[] {
  return Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return []
    if (typeof value === 'string') return [{ key, value: { stringValue: value } }]
    // 64 bits are written as text.
    return [{ key, value: typeof value === 'number' ? { intValue: String(value) } : value }]
  })
}

function post(url: URL, body: string): Promise<void> {
  const send = url.protocol === 'https:' ? secure.http.request : requestPlain
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
    const outgoing = send(url, { method: 'POST', headers, timeout: PATIENCE_MS }, (response: IncomingMessage) => {
      response.resume()
      response.once('error', reject)
      response.once('end', () => {
        const { statusCode: status = 0 } = response
        if (status >= 200 && status < 300) resolve()
        else if (status === 429 || status >= 500) reject(new Error(`the collector answers with status ${status}`))
        else reject(new RefusedRecordsError(`the collector refuses them with status ${status}`))
      })
    })
    outgoing.once('timeout', () => outgoing.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)))
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}
