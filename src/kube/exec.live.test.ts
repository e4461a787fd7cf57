import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { WebSocketServer, type WebSocket } from 'ws'
import { quietLog } from '../../test/support/api-server/quiet-log.ts'
import { ApiError } from './api-error.ts'
import { openExec, parseEnd, type ExecOptions } from './exec.ts'
import { Transport } from './transport.ts'

const opened: { close(): unknown }[] = []
afterEach(() => opened.splice(0).forEach((each) => each.close()))

/** An API server that runs commands, and a client of it. */
async function start(protocols: readonly string[], serve: (socket: WebSocket, request: IncomingMessage) => void) {
  const given = new Set<unknown>()
  const server = createServer(({ socket }, response) => {
    // As an API server does that refused to upgrade a connection: it gives it up.
    if (given.has(socket)) return socket.destroy()
    given.add(socket)
    response.writeHead(403, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'pods "p" is forbidden' }))
  })
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => [...offered].find((each) => protocols.includes(each)) ?? false,
  })
  if (protocols.length > 0) {
    server.on('upgrade', (request, socket, head) => {
      if (request.headers.accept !== '*/*') return socket.end('HTTP/1.1 406 Not Acceptable\r\n\r\n')
      sockets.handleUpgrade(request, socket, head, (webSocket) => serve(webSocket, request))
    })
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.push(server, sockets)
  const client = new Transport({
    access: {
      server: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
      tls: { ca: undefined, clientCertificate: undefined, serverName: undefined, verify: true },
      authentication: { type: 'anonymous' },
      impersonation: {},
      proxyUrl: undefined,
    },
    userAgent: 'test-agent',
    accept: 'application/json',
    limits: { qps: -1, burst: 0 },
    log: quietLog(),
  })
  opened.push(client)
  return client
}

const v5 = ['v5.channel.k8s.io']
const options = (onStdout: ExecOptions['onStdout']): ExecOptions => ({
  namespace: 'ns',
  pod: 'p',
  container: 'c',
  command: ['cat', '-n & co'],
  stdin: true,
  onStdout,
})

test('openExec() carries the streams of a command and says how it ended', async () => {
  let asked = ''
  const client = await start(v5, (socket, { url }) => {
    asked = url ?? ''
    let input = ''
    socket.on('message', (message: Buffer) => {
      if (message[0] === 0) input += message.subarray(1).toString()
      if (message[0] !== 255) return
      socket.send(Buffer.concat([Buffer.of(1), Buffer.from(`got ${input}`)]))
      const details = { causes: [{ reason: 'ExitCode', message: '3' }] }
      const status = { status: 'Failure', reason: 'NonZeroExitCode', message: 'exit 3', details }
      socket.send(Buffer.concat([Buffer.of(3), Buffer.from(JSON.stringify(status))]))
      socket.close(1000)
    })
  })
  let output = ''
  const session = await openExec(
    client,
    options((bytes) => (output += bytes.toString())),
  )
  session.write('one ')
  session.write('two')
  session.endInput()
  expect(await session.ended).toEqual({ exitCode: 3, message: 'exit 3' })
  expect(output).toBe('got one two')
  const { pathname, searchParams } = new URL(asked, 'http://x')
  expect(pathname).toBe('/api/v1/namespaces/ns/pods/p/exec')
  expect(searchParams.getAll('command')).toEqual(['cat', '-n & co'])
  expect(searchParams.get('container')).toBe('c')
})

test('a connection that breaks is no end of the command', async () => {
  const client = await start(['v4.channel.k8s.io'], (socket) => socket.terminate())
  const session = await openExec(
    client,
    options(() => {}),
  )
  expect((await session.ended).exitCode).toBeUndefined()
})

test("the API server's refusal is told", async () => {
  const client = await start([], () => {})
  const refused = await openExec(
    client,
    options(() => {}),
  ).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(ApiError)
  expect((refused as ApiError).message).toContain('pods "p" is forbidden')
  // The next request has a connection of its own.
  const next = await client
    .request({ method: 'DELETE', path: '/api/v1/namespaces/ns' })
    .catch((error: unknown) => error)
  expect((next as Error).message).toContain('pods "p" is forbidden')
})

test('parseEnd() takes what is no Status as the reason', () => {
  expect(parseEnd('{"status":"Success"}')).toEqual({ exitCode: 0, message: '' })
  expect(parseEnd('no such container')).toEqual({ exitCode: undefined, message: 'no such container' })
})
