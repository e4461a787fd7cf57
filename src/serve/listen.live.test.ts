import { createServer, get, type IncomingMessage, type Server } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterEach, describe, expect, test } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { systemClock } from '../lib/clock.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { silentLogger, type Logger } from '../lib/log.ts'
import { listen, Listener, parseListenAddress, type ListenOptions } from './listen.ts'

const hasIpv6 = networkInterfaces().lo?.some(({ address }) => address === '::1') ?? false

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

function aListener(options: Partial<ListenOptions>): Listener {
  const listener = new Listener({
    name: 'the test',
    address: '127.0.0.1:0',
    handler: (_request, response) => response.end('hello'),
    whenRefused: 'retry',
    clock: systemClock,
    log: silentLogger,
    ...options,
  })
  open.push(listener)
  return listener
}

async function occupiedPort(): Promise<{ server: Server; port: number }> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(server)
  return { server, port: (server.address() as AddressInfo).port }
}

function statusOf(host: string, port: number): Promise<number | string> {
  return new Promise((resolve) => {
    get({ host, port, agent: false }, (response: IncomingMessage) => {
      response.resume()
      resolve(response.statusCode!)
    }).on('error', (error: NodeJS.ErrnoException) => resolve(error.code!))
  })
}

/** Lets real sockets make progress while a manual clock stands still. */
const turns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))

describe('Listener', () => {
  test('serves on the address it is given', async () => {
    const listener = aListener({})
    await listener.ready
    expect(await statusOf('127.0.0.1', listener.bound!.port)).toBe(200)
  })

  test('close() frees the port at once and ends connections that are still open', async () => {
    const listener = aListener({})
    await listener.ready
    const { port } = listener.bound!
    const socket = connect(port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    const ended = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => {})
    await listener.close()
    await ended
    expect(listener.bound).toBeUndefined()
    const next = aListener({ address: `127.0.0.1:${port}` })
    await next.ready
    expect(await statusOf('127.0.0.1', port)).toBe(200)
  })

  test('close() right after opening leaves nothing bound', async () => {
    const { server, port } = await occupiedPort()
    await new Promise((resolve) => server.close(resolve))
    await aListener({ address: `127.0.0.1:${port}` }).close()
    await turns()
    expect(await statusOf('127.0.0.1', port)).toBe('ECONNREFUSED')
  })

  test('a port that is taken is tried again every 5 seconds, and reported once', async () => {
    const { server, port } = await occupiedPort()
    const clock = new ManualClock()
    const refusals: (string | undefined)[] = []
    const errors: unknown[] = []
    const log: Logger = { ...silentLogger, error: (error) => errors.push(error) }
    const listener = aListener({
      address: `127.0.0.1:${port}`,
      clock,
      log,
      onRefused: (error: NodeJS.ErrnoException) => refusals.push(error.code),
    })
    await turns()
    await clock.advance(5000)
    await turns()
    expect(refusals).toEqual(['EADDRINUSE'])
    expect(errors).toHaveLength(1)
    expect(listener.bound).toBeUndefined()
    await new Promise((resolve) => server.close(resolve))
    await clock.advance(4999)
    await turns()
    expect(listener.bound).toBeUndefined()
    await clock.advance(1)
    await listener.ready
    expect(await statusOf('127.0.0.1', port)).toBe(200)
  })

  test('with "give up" a port that is taken is reported and not tried again', async () => {
    const { port } = await occupiedPort()
    const clock = new ManualClock()
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => {
      aListener({ address: `127.0.0.1:${port}`, whenRefused: 'give up', clock, onRefused: resolve })
    })
    expect(error.code).toBe('EADDRINUSE')
    expect(clock.waiting).toBe(0)
  })

  test('close() while waiting to try again ends the waiting', async () => {
    const { port } = await occupiedPort()
    const clock = new ManualClock()
    const listener = aListener({ address: `127.0.0.1:${port}`, clock })
    await turns()
    expect(clock.waiting).toBe(1)
    await listener.close()
    expect(clock.waiting).toBe(0)
  })

  test.skipIf(!hasIpv6).each([
    ['[::]:0', 'tcp', 200, 200],
    ['0.0.0.0:0', 'tcp', 200, 200],
    ['0.0.0.0:0', 'tcp4', 200, 'ECONNREFUSED'],
    ['[::]:0', 'tcp6', 'ECONNREFUSED', 200],
    ['[::1]:0', 'tcp', 'ECONNREFUSED', 200],
  ] as const)('%s with %s answers IPv4: %s, IPv6: %s', async (address, network, ipv4, ipv6) => {
    const listener = aListener({ address, network })
    await listener.ready
    const { port } = listener.bound!
    expect([await statusOf('127.0.0.1', port), await statusOf('::1', port)]).toEqual([ipv4, ipv6])
  })
})

describe('a Listener whose clients open connections and send nothing', () => {
  /** So many silent connections from this address. */
  async function silent(port: number, count: number, localAddress: string): Promise<Socket[]> {
    const sockets = Array.from({ length: count }, () => {
      const socket = connect({ port, host: '127.0.0.1', localAddress })
      socket.on('error', () => {})
      return socket
    })
    open.push({ close: () => sockets.forEach((socket) => socket.destroy()) })
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    return sockets
  }

  test('still answers probes, whatever the number of connections from one client', async () => {
    const listener = aListener({})
    await listener.ready
    const { port } = listener.bound!
    const sockets = await silent(port, 700, '127.0.0.2')
    const answers = await Promise.all(Array.from({ length: 40 }, () => statusOf('127.0.0.1', port)))
    expect(answers).toEqual(answers.map(() => 200))
    const left = () => sockets.filter(({ destroyed }) => !destroyed).length
    await eventually('the others are closed', () => (left() === 128 ? undefined : `${left()} are open`))
  })

  test('still answers probes when there are many such clients', async () => {
    const listener = aListener({})
    await listener.ready
    const { port } = listener.bound!
    for (let i = 2; i < 10; i++) await silent(port, 100, `127.0.0.${i}`)
    for (let i = 0; i < 40; i++) expect(await statusOf('127.0.0.1', port)).toBe(200)
  })

  test('does not cut off a client whose question is being answered', async () => {
    let answer: (() => void) | undefined
    const handler: ListenOptions['handler'] = (request, response) => {
      if (request.url === '/slow') answer = () => response.end('hello')
      else response.end('hello')
    }
    const listener = aListener({ handler })
    await listener.ready
    const { port } = listener.bound!
    const slow = new Promise((resolve) => {
      get({ host: '127.0.0.1', port, path: '/slow', agent: false }, ({ statusCode }) => resolve(statusCode)).on(
        'error',
        resolve,
      )
    })
    await eventually('the question arrives', () => (answer === undefined ? 'it has not' : undefined))
    await silent(port, 300, '127.0.0.1')
    answer!()
    expect(await slow).toBe(200)
  })

  test('ends a connection that sends half a question', async () => {
    const listener = aListener({})
    await listener.ready
    const [socket] = await silent(listener.bound!.port, 1, '127.0.0.2')
    socket!.write('GET / HTTP/1.1\r\nX-A: ')
    await new Promise((resolve) => socket!.once('close', resolve).resume())
  })
})

test('listen() with an empty address listens nowhere', () => {
  const options = { name: 'x', address: '', handler: () => {}, whenRefused: 'retry', clock: systemClock } as const
  expect(listen({ ...options, log: silentLogger })).toBeUndefined()
})

test.each([
  ['0.0.0.0:10256', { host: '0.0.0.0', port: 10256 }],
  ['[::]:10256', { host: '::', port: 10256 }],
  ['[fd00::1]:80', { host: 'fd00::1', port: 80 }],
  [':80', { host: '::', port: 80 }],
  ['10.0.0.1', undefined],
  ['::1:80', undefined],
  ['localhost:80', undefined],
  ['10.0.0.1:65536', undefined],
  ['10.0.0.1:', undefined],
  ['', undefined],
])('parseListenAddress(%j) is %o', (text, expected) => {
  expect(parseListenAddress(text)).toEqual(expected)
})
