// The figures of the sandbox's API server: lists of a large cluster, and writes with watchers. The server is a process of
// its own; the client and the watchers share this one.
//
//   npx tsc -p tsconfig.bench.json --noCheck && node .cache/bench/test/bench/sandbox-api.js

import { fork } from 'node:child_process'
import { Agent, request } from 'node:https'
import { median, table } from './figures.ts'
import { startApiServer } from '../../packages/sandbox/src/apiserver/start-api-server.ts'
import type { ChildProcess } from 'node:child_process'
import type { IncomingMessage } from 'node:http'

const slices = 10_000
const endpointsPerSlice = 10
const watchers = 10
const writeSeconds = 5
const writersAtOnce = 8

const limits = { listMs: 1000, writesPerSecond: 1000 } as const

interface Access {
  readonly url: string
  readonly token: string
  readonly certificateAuthority: string
}

async function serve(): Promise<void> {
  const server = await startApiServer()
  const { url, token, certificateAuthority } = server
  process.send?.({ url, token, certificateAuthority })
  process.on('disconnect', () => void server.close().then(() => process.exit()))
}

async function measure(): Promise<void> {
  const { child, access } = await startServer()
  const client = new Client(access)
  const fillMs = await timed(() => fill(client))
  const rows = [
    [
      `create ${slices} EndpointSlices of ${endpointsPerSlice} endpoints`,
      `${Math.round(slices / (fillMs / 1000))} writes/s`,
      '',
    ],
  ]
  const path = '/apis/discovery.k8s.io/v1/endpointslices'
  let slowestMs = 0
  for (const [name, accept] of [
    ['JSON', 'application/json'],
    ['protobuf', 'application/vnd.kubernetes.protobuf'],
  ] as const) {
    const times: number[] = []
    let bytes = 0
    for (let i = 0; i < 5; i++) times.push(await timed(async () => (bytes = await client.drain(path, accept))))
    slowestMs = Math.max(slowestMs, ...times)
    const size = `${(bytes / 2 ** 20).toFixed(1)} MiB`
    rows.push([
      `list them in ${name} (${size}), first / median`,
      `${times[0]!.toFixed(0)} / ${median(times).toFixed(0)} ms`,
      `${limits.listMs} ms`,
    ])
  }
  const { writesPerSecond, lagMs, seen } = await writeWithWatchers(client)
  rows.push([
    `updates with ${watchers} watchers`,
    `${Math.round(writesPerSecond)} writes/s`,
    `${limits.writesPerSecond} writes/s`,
  ])
  rows.push(['events seen by the watchers, of those written', seen, '100%'])
  rows.push(['answer to a write until the last watcher has it, median', `${lagMs.toFixed(1)} ms`, ''])
  child.disconnect()
  console.log(table(['what', 'measured', 'wanted'], rows))
  const missed = slowestMs > limits.listMs || writesPerSecond < limits.writesPerSecond || seen !== '100%'
  if (missed) process.exitCode = 1
}

async function startServer(): Promise<{ child: ChildProcess; access: Access }> {
  const child = fork(new URL(import.meta.url), ['serve'])
  const access = await new Promise<Access>((resolve) => child.once('message', (message) => resolve(message as Access)))
  return { child, access }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

class Client {
  readonly #access: Access
  readonly #agent = new Agent({ keepAlive: true })

  constructor(access: Access) {
    this.#access = access
  }

  open(method: string, path: string, options: { body?: object; accept?: string } = {}): Promise<IncomingMessage> {
    const { url, token, certificateAuthority } = this.#access
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        accept: options.accept ?? 'application/json',
        ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      }
      const sent = request(`${url}${path}`, { method, headers, ca: certificateAuthority, agent: this.#agent }, resolve)
      sent.on('error', reject)
      sent.end(options.body === undefined ? undefined : JSON.stringify(options.body))
    })
  }

  /** Reads an answer to its end; how many bytes it had. */
  async drain(path: string, accept: string): Promise<number> {
    const response = await this.open('GET', path, { accept })
    let bytes = 0
    for await (const chunk of response as AsyncIterable<Buffer>) bytes += chunk.length
    return bytes
  }

  async write(method: string, path: string, body: object): Promise<number> {
    const response = await this.open(method, path, { body })
    let text = ''
    for await (const chunk of response as AsyncIterable<Buffer>) text += chunk.toString()
    if ((response.statusCode ?? 500) >= 300) throw new Error(`Cannot ${method} ${path}: ${text}`)
    return Number((JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion)
  }
}

const folder = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'

function slice(number: number, round: number): object {
  return {
    metadata: { name: `slice-${number}`, labels: { 'kubernetes.io/service-name': `service-${number}` } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 + (round % 1000), protocol: 'TCP' }],
    endpoints: Array.from({ length: endpointsPerSlice }, (_, i) => ({
      addresses: [`10.${number >> 8}.${number & 255}.${i + 1}`],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-${i}`,
      zone: `zone-${i % 3}`,
      targetRef: { kind: 'Pod', namespace: 'default', name: `pod-${number}-${i}`, uid: `${number}-${i}` },
    })),
  }
}

async function fill(client: Client): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let n = next++; n < slices; n = next++) await client.write('POST', folder, slice(n, 0))
  }
  await Promise.all(Array.from({ length: writersAtOnce }, worker))
}

interface WriteFigures {
  readonly writesPerSecond: number
  readonly lagMs: number
  readonly seen: string
}

async function writeWithWatchers(client: Client): Promise<WriteFigures> {
  const { metadata } = JSON.parse(await textOf(await client.open('GET', `${folder}?limit=1`))) as {
    metadata: { resourceVersion: string }
  }
  const answered = new Map<number, number>()
  const seenAt = new Map<number, number>()
  let events = 0
  const open = await Promise.all(
    Array.from({ length: watchers }, async () => {
      const response = await client.open('GET', `${folder}?watch=1&resourceVersion=${metadata.resourceVersion}`)
      watchVersions(response, (version) => {
        events++
        seenAt.set(version, performance.now())
      })
      return response
    }),
  )
  const end = performance.now() + writeSeconds * 1000
  let written = 0
  const writer = async (index: number): Promise<void> => {
    for (let round = 1; performance.now() < end; round++) {
      const version = await client.write('PUT', `${folder}/slice-${index}`, slice(index, round))
      answered.set(version, performance.now())
      written++
    }
  }
  const took = await timed(() => Promise.all(Array.from({ length: writersAtOnce }, (_, i) => writer(i))))
  await settled(() => events === written * watchers)
  for (const response of open) response.destroy()
  const lags = [...answered].map(([version, at]) => (seenAt.get(version) ?? Infinity) - at)
  return {
    writesPerSecond: written / (took / 1000),
    lagMs: median(lags),
    seen: `${Math.round((100 * events) / (written * watchers))}%`,
  }
}

/** Waits until it is so, for two seconds at most. */
async function settled(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 200 && !isSo(); i++) await new Promise((resolve) => setTimeout(resolve, 10))
}

/** Calls back with the version of each object, without parsing the rest: the watchers are not what is measured. */
function watchVersions(response: IncomingMessage, seen: (version: number) => void): void {
  let rest = ''
  response.on('error', () => {})
  response.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('latin1')).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) seen(Number(/"resourceVersion":"(\d+)"/.exec(line)?.[1]))
  })
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response as AsyncIterable<Buffer>) text += chunk.toString()
  return text
}

if (process.argv[2] === 'serve') await serve()
else await measure()
