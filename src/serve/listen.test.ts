import { createServer, get, type IncomingMessage, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterEach, describe, expect, test } from 'vitest'
import { ManualClock, systemClock } from '../lib/clock.ts'
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
