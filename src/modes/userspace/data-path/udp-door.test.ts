// Real sockets on loopback.

import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { aClosedPort, aUdpBackend } from '../../../../test/support/backends.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { InlineDataPath } from '../../../../test/support/inline-data-path.ts'

async function aClient(): Promise<Socket & Disposable> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.close() })
}

/** Sends and gives the answer, '' when there is none for a while. */
async function ask(client: Socket, port: number, message: string | Buffer): Promise<string> {
  const answered = once(client, 'message') as Promise<[Buffer, { port: number; address: string }]>
  client.send(message, port, '127.0.0.1')
  const answer = await Promise.race([answered, sleep(200)])
  if (answer === undefined) {
    client.removeAllListeners('message')
    return ''
  }
  const [data, from] = answer
  expect(from).toMatchObject({ address: '127.0.0.1', port })
  return data.toString()
}

const never = undefined

describe('UDP through the data path', () => {
  test('is answered from where it was sent to, each client by its own backend', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000 })
    await using a = await aUdpBackend('a')
    await using b = await aUdpBackend('b')
    using one = await aClient()
    using other = await aClient()
    const { port, pool } = path.open({ backends: [a, b], affinitySeconds: never }, { protocol: 'UDP' })
    for (let i = 0; i < 3; i++) {
      expect(await ask(one, port, `${i}`)).toBe(`a ${i}`)
      expect(await ask(other, port, `${i}`)).toBe(`b ${i}`)
    }
    expect(pool.totals()).toMatchObject({ connections: 2, active: 2, bytesToBackends: 6, bytesToClients: 18 })
  })

  test('carries the largest datagrams, and empty ones', async () => {
    using path = new InlineDataPath()
    await using backend = await aUdpBackend('a')
    using client = await aClient()
    const { port } = path.open({ backends: [backend], affinitySeconds: never }, { protocol: 'UDP' })
    const large = Buffer.alloc(65_000, 'x')
    expect(await ask(client, port, large)).toBe(`a ${large.toString()}`)
    expect(await ask(client, port, '')).toBe('a ')
  })

  test('forgets a client that is silent for the time given, and not before', async () => {
    using path = new InlineDataPath({ udpIdleMs: 200 })
    await using a = await aUdpBackend('a')
    await using b = await aUdpBackend('b')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [a, b], affinitySeconds: never }, { protocol: 'UDP' })
    for (let i = 0; i < 5; i++) {
      expect(await ask(client, port, 'x')).toBe('a x')
      await sleep(80)
    }
    await eventually('it is forgotten', () => (pool.totals().active === 0 ? undefined : 'active'), { withinMs: 1000 })
    expect(await ask(client, port, 'x')).toBe('b x')
  })

  test('goes elsewhere when nobody listens, and leaves that backend alone', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000 })
    const closed = await aClosedPort()
    await using good = await aUdpBackend('good')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [closed, good], affinitySeconds: never }, { protocol: 'UDP' })
    // The first is lost: only its loss tells.
    expect(await ask(client, port, 'lost')).toBe('')
    for (let i = 0; i < 3; i++) expect(await ask(client, port, 'x')).toBe('good x')
    expect(pool.totals()).toMatchObject({ failures: 1 })
    expect(pool.backends()[0]!.restsForMs).toBeGreaterThan(0)
  })

  test('with affinity all sockets of a client come to the same backend, also after a pause', async () => {
    using path = new InlineDataPath({ udpIdleMs: 50 })
    await using a = await aUdpBackend('a')
    await using b = await aUdpBackend('b')
    const { port } = path.open({ backends: [a, b], affinitySeconds: 60 }, { protocol: 'UDP' })
    for (let i = 0; i < 4; i++) {
      using client = await aClient()
      expect(await ask(client, port, 'x')).toBe('a x')
      await sleep(120)
    }
  })

  test('known clients stay with their backend when others come, and leave it when it goes', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000, threads: 2 })
    await using a = await aUdpBackend('a')
    await using b = await aUdpBackend('b')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [a], affinitySeconds: never }, { protocol: 'UDP' })
    await ask(client, port, 'x')
    pool.update({ backends: [a, b], affinitySeconds: never })
    for (let i = 0; i < 3; i++) expect(await ask(client, port, 'x')).toBe('a x')
    pool.update({ backends: [b], affinitySeconds: never })
    expect(await ask(client, port, 'x')).toBe('b x')
    expect(pool.totals()).toMatchObject({ connections: 2, active: 1 })
  })

  test('clients are not heard while there are no file descriptors left, which is said', async () => {
    using path = new InlineDataPath({ endFd: 0 })
    await using backend = await aUdpBackend('a')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: never }, { protocol: 'UDP' })
    expect(await ask(client, port, 'x')).toBe('')
    expect(path.warnings).toEqual(['Cannot open a socket for a client: EMFILE'])
    expect(pool.totals()).toMatchObject({ unserved: 1, active: 0 })
  })

  test('ends with its door', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000, threads: 3 })
    await using backend = await aUdpBackend('a')
    using client = await aClient()
    const { port, pool, shut } = path.open({ backends: [backend], affinitySeconds: never }, { protocol: 'UDP' })
    expect(await ask(client, port, 'x')).toBe('a x')
    shut()
    await sleep(20)
    expect(await ask(client, port, 'x')).toBe('')
    expect(pool.totals().active).toBe(0)
  })
})
