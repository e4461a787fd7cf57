// What runs in probe pods, over loopback.

import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { runDials } from './dial.ts'
import type { Dial, Protocol } from './protocol.ts'
import { serveProbe } from './serve.ts'
import { answerDialRequests } from './session.ts'

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const aDial = (port: number, protocol: Protocol, more: Partial<Dial> = {}): Dial => ({
  address: '127.0.0.1',
  port,
  protocol,
  times: 1,
  wait: 'greeting',
  timeoutMs: 5000,
  ...more,
})

test('a probe greets by TCP and UDP, and a dial tells who answered and whom it saw', async () => {
  const port = await freePort()
  await serveProbe('pod-1', [port])
  const dials = [aDial(port, 'TCP', { times: 2 }), aDial(port, 'UDP'), aDial(port, 'UDP', { socket: 'kept' })]
  const kept = new Map()
  const answer = {
    outcome: 'answered',
    from: '127.0.0.1',
    greeting: { endpoint: `pod-1:${port}`, client: '127.0.0.1' },
  }
  expect(await runDials(dials, kept)).toEqual([[answer, answer], [answer], [answer]])
  // The same socket again.
  expect(await runDials([dials[2]!], kept)).toEqual([[answer]])
  for (const socket of kept.values()) socket.close()
})

test('refusals, silence and other servers are reported apart', async () => {
  const closed = await freePort()
  const other = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 503 no\r\n\r\n')).listen(0)
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const attempts = await runDials(
    [
      aDial(closed, 'TCP'),
      aDial(closed, 'UDP'),
      aDial(closed, 'TCP', { times: 3, evenIfRefused: true }),
      aDial(port, 'TCP'),
      aDial(port, 'TCP', { wait: 'connect' }),
      aDial(port, 'TCP', { wait: 'http' }),
    ],
    new Map(),
  )
  other.close()
  expect(attempts.map((each) => each.map(({ outcome }) => outcome))).toEqual([
    ['refused'],
    ['refused'],
    ['refused', 'refused', 'refused'],
    ['failed'],
    ['answered'],
    ['answered'],
  ])
  expect(attempts[3]?.[0]?.error).toContain('something else answered')
  expect(attempts[5]?.[0]?.status).toBe(503)
})

test('requests come as lines, however they are cut, and each gets its reply', async () => {
  const port = await freePort()
  const text = [1, 2].map((id) => `${JSON.stringify({ id, dials: [aDial(port, 'TCP')] })}\n`).join('')
  const pieces = async function* () {
    for (let at = 0; at < text.length; at += 7) yield Buffer.from(text.slice(at, at + 7))
  }
  const replies: { id: number; attempts: { outcome: string }[][] }[] = []
  await answerDialRequests(pieces(), (line) => replies.push(JSON.parse(line)))
  expect(replies.map(({ id, attempts }) => [id, attempts[0]?.[0]?.outcome])).toEqual([
    [1, 'refused'],
    [2, 'refused'],
  ])
})
