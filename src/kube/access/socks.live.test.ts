import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { openTunnel } from './proxy.ts'
import { connectThroughSocks } from './socks.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listen(onClient: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => onClient(socket.on('error', () => {})))
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Answers each message with the next of these, and notes the messages. */
async function scripted(asked: string[], ...answers: readonly (readonly number[])[]): Promise<number> {
  return listen((socket) => {
    let next = 0
    socket.on('data', (bytes) => {
      asked.push(bytes.toString('hex'))
      // Byte by byte: where an answer is cut does not matter.
      for (const byte of answers[next] ?? []) socket.write(Uint8Array.of(byte))
      if (answers[next++] === undefined) socket.end()
    })
  })
}

const url = (port: number, user = '') => new URL(`socks5://${user}127.0.0.1:${port}`)
const connected = [5, 0, 0, 1, 127, 0, 0, 1, 1, 2]

describe('connectThroughSocks()', () => {
  test('hands over a connection that speaks to the target, and nothing but that', async () => {
    const target = await listen((socket) => void socket.write('welcome'))
    const proxy = await listen((socket) => {
      socket.once('data', () => {
        socket.write(Uint8Array.of(5, 0))
        socket.once('data', (request) => {
          const to = connect(request.readUInt16BE(8), '127.0.0.1', () => {
            socket.write(Uint8Array.from(connected))
            to.pipe(socket).pipe(to)
          })
        })
      })
    })
    const socket = await connectThroughSocks(url(proxy), { host: '127.0.0.1', port: target }, 5000)
    expect(String((await once(socket, 'data'))[0])).toBe('welcome')
    socket.destroy()
  })

  test.each([
    ['10.1.2.3', '050100010a0102030050'],
    ['fd00::1', '05010004fd0000000000000000000000000000010050'],
    ['api.example', '050100030b6170692e6578616d706c650050'],
  ])('asks for %s in its form', async (host, request) => {
    const asked: string[] = []
    const proxy = await scripted(asked, [5, 0], connected)
    ;(await connectThroughSocks(url(proxy), { host, port: 80 }, 5000)).destroy()
    expect(asked).toEqual(['050100', request])
  })

  test('gives name and password where they are wanted', async () => {
    const asked: string[] = []
    const proxy = await scripted(asked, [5, 2], [1, 0], [5, 0, 0, 3, 2, 97, 98, 1, 2])
    ;(await connectThroughSocks(url(proxy, 'me:p%40ss@'), { host: '1.2.3.4', port: 80 }, 5000)).destroy()
    expect(asked.slice(0, 2)).toEqual(['05020002', '01026d650470407373'])
  })

  test.each([
    ['it does not speak SOCKS5', '', [[72, 84]]],
    ['it wants another way of authentication', '', [[5, 2]]],
    ['it wants another way of authentication', 'me:x@', [[5, 255]]],
    [
      'it refuses name and password',
      'me:x@',
      [
        [5, 2],
        [1, 1],
      ],
    ],
    [
      'connection refused',
      '',
      [
        [5, 0],
        [5, 5, 0, 1, 0, 0, 0, 0, 0, 0],
      ],
    ],
    ['it closed the connection', '', [[5, 0]]],
    ['it does not answer', '', [[5, 0], [5]]],
  ])('says that %s', async (reason, user, answers) => {
    const proxy = await scripted([], ...answers)
    await expect(connectThroughSocks(url(proxy, user), { host: '1.2.3.4', port: 80 }, 300)).rejects.toThrow(reason)
  })

  test('openTunnel() names the target and the proxy', async () => {
    const proxy = await scripted([], [5, 0], [5, 2, 0, 1])
    await expect(openTunnel(url(proxy, 'me:SECRET@'), new URL('https://api.example'), undefined)).rejects.toThrow(
      `Cannot connect to api.example:443 through proxy 127.0.0.1:${proxy}: not allowed by its rules`,
    )
  })
})
