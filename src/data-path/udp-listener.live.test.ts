// Real sockets on loopback.

import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { aClosedPort, aUdpBackend } from '../../test/support/backends.ts'
import { eventually } from '../../test/support/eventually.ts'
import { patience } from '../../test/support/patience.ts'
import { InlineDataPath, refuseToWatch } from '../../test/support/inline-data-path.ts'
import { udpLimits } from './udp-listener.ts'

async function aClient(): Promise<Socket & Disposable> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.close() })
}

/** Sends and gives the answer. */
function ask(client: Socket, port: number, message: string | Buffer): Promise<string> {
  return exchange(client, port, { message, withinMs: 5000 * patience() })
}

/** Sends what is not to be answered: what comes all the same, or '' when nothing does for a while. */
function askInVain(client: Socket, port: number, message: string): Promise<string> {
  return exchange(client, port, { message, withinMs: 200 })
}

async function exchange(
  client: Socket,
  port: number,
  { message, withinMs }: { message: string | Buffer; withinMs: number },
): Promise<string> {
  const answered = once(client, 'message') as Promise<[Buffer, { port: number; address: string }]>
  client.send(message, port, '127.0.0.1')
  const answer = await Promise.race([answered, sleep(withinMs, undefined, { ref: false })])
  if (answer === undefined) {
    client.removeAllListeners('message')
    return ''
  }
  const [data, from] = answer
  expect(from).toMatchObject({ address: '127.0.0.1', port })
  return data.toString()
}

const noAffinity = undefined

/** Answers when it is told to. */
async function aPatientUdpBackend() {
  const socket = await aClient()
  const clients: number[] = []
  socket.on('message', (_, { port }) => clients.push(port))
  return {
    ip: '127.0.0.1',
    port: socket.address().port,
    get asked() {
      return clients.length
    },
    /** To the client that asked first. */
    answer: (text: string) => socket.send(text, clients[0], '127.0.0.1'),
    async [Symbol.asyncDispose]() {
      socket.close()
      await once(socket, 'close')
    },
  }
}

describe('UDP through the data path', () => {
  test('is answered from where it was sent to, each client by its own backend', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000 })
    await using a = await aUdpBackend('a')
    await using b = await aUdpBackend('b')
    using one = await aClient()
    using other = await aClient()
    const { port, pool } = path.open({ backends: [a, b], affinitySeconds: noAffinity }, { protocol: 'UDP' })
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
    const { port } = path.open({ backends: [backend], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    const large = Buffer.alloc(65_000, 'x')
    expect(await ask(client, port, large)).toBe(`a ${large.toString()}`)
    expect(await ask(client, port, '')).toBe('a ')
  })

  test('closes the socket of a client that is silent for the time given, and not before', async () => {
    const udpIdleMs = 200 * patience()
    using path = new InlineDataPath({ udpIdleMs })
    await using a = await aUdpBackend('a')
    await using b = await aUdpBackend('b')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [a, b], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    for (let i = 0; i < 8; i++) {
      expect(await ask(client, port, 'x')).toBe('a x')
      await sleep(udpIdleMs / 5)
    }
    expect(pool.totals().connections).toBe(1)
    await eventually('it is closed', () => (pool.totals().active === 0 ? undefined : 'active'), { withinMs: 1000 })
    // The backend is remembered for longer.
    expect(await ask(client, port, 'x')).toBe('a x')
    expect(pool.totals().connections).toBe(2)
  })

  test('an answer that takes longer than clients may be silent arrives all the same', async () => {
    using path = new InlineDataPath({ udpIdleMs: 20 })
    await using slow = await aPatientUdpBackend()
    using client = await aClient()
    const { port, pool } = path.open({ backends: [slow], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    client.send('x', port, '127.0.0.1')
    await eventually('it is asked', () => (slow.asked === 1 ? undefined : 'not yet'))
    await sleep(200)
    const heard = once(client, 'message') as Promise<[Buffer]>
    slow.answer('late')
    expect(String((await heard)[0])).toBe('late')
    // Then nothing keeps it.
    await eventually('it is closed', () => (pool.totals().active === 0 ? undefined : 'active'))
  })

  test('clients of backends that never answer do not take the room of others by waiting', async () => {
    using path = new InlineDataPath({ udpIdleMs: 20, udpLimits: { perListener: 8, perThread: 8 } })
    await using silent = await aPatientUdpBackend()
    const { port, pool } = path.open({ backends: [silent], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    for (let i = 1; i <= 20; i++) {
      using client = await aClient()
      client.send('x', port, '127.0.0.1')
      await eventually('it is asked', () => (silent.asked === i ? undefined : `${silent.asked}`))
      await sleep(25)
    }
    expect(pool.totals()).toMatchObject({ connections: 20, unserved: 0 })
    await eventually('they have left', () => (pool.totals().active < 8 ? undefined : `${pool.totals().active} wait`))
  })

  test('what was asked of a backend before it was removed is answered', async () => {
    using path = new InlineDataPath({ udpIdleMs: 100 })
    await using old = await aPatientUdpBackend()
    await using fresh = await aUdpBackend('fresh')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [old], affinitySeconds: 60 }, { protocol: 'UDP' })
    client.send('x', port, '127.0.0.1')
    await eventually('it is asked', () => (old.asked === 1 ? undefined : 'not yet'))
    pool.update({ backends: [fresh], affinitySeconds: 60 })
    expect(await ask(client, port, 'next')).toBe('fresh next')
    const heard = once(client, 'message') as Promise<[Buffer]>
    old.answer('of before')
    expect(String((await heard)[0])).toBe('of before')
    expect(await ask(client, port, 'again')).toBe('fresh again')
    await eventually('both are closed', () => (pool.totals().active === 0 ? undefined : 'active'))
  })

  test('a client that pauses stays with its backend while that serves, whichever other clients come', async () => {
    using path = new InlineDataPath({ udpIdleMs: 20 })
    await using a = await aUdpBackend('a')
    await using b = await aUdpBackend('b')
    await using c = await aUdpBackend('c')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [a], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    const pause = () => eventually('its socket is closed', () => (pool.totals().active === 0 ? undefined : 'active'))
    expect(await ask(client, port, 'x')).toBe('a x')
    pool.update({ backends: [b, a, c], affinitySeconds: noAffinity })
    for (let i = 0; i < 3; i++) {
      await pause()
      expect(await ask(client, port, 'x')).toBe('a x')
    }
    pool.update({ backends: [b, c], affinitySeconds: noAffinity })
    const moved = await ask(client, port, 'x')
    expect(moved).toMatch(/^[bc] x$/)
    // Nor does it go back to a backend that it has left.
    pool.update({ backends: [a, b, c], affinitySeconds: noAffinity })
    for (let i = 0; i < 3; i++) {
      await pause()
      expect(await ask(client, port, 'x')).toBe(moved)
    }
  })

  test('a flood of clients has its limit, is said, and passes', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000, udpLimits: { perListener: 2, perThread: 3 } })
    await using backend = await aUdpBackend('a')
    const contents = { backends: [backend], affinitySeconds: noAffinity }
    const flooded = path.open(contents, { protocol: 'UDP' })
    const other = path.open(contents, { protocol: 'UDP' })
    using one = await aClient()
    using two = await aClient()
    using three = await aClient()
    for (const client of [one, two]) expect(await ask(client, flooded.port, 'x')).toBe('a x')
    expect(await askInVain(three, flooded.port, 'x')).toBe('')
    expect(path.warnings.at(-1)).toMatch(/more UDP clients of one service port at once than 2/)
    expect(flooded.pool.totals()).toMatchObject({ unserved: 1, active: 2 })
    // Known clients and other services go on.
    expect(await ask(one, flooded.port, 'x')).toBe('a x')
    expect(await ask(one, other.port, 'x')).toBe('a x')
    expect(await askInVain(two, other.port, 'x')).toBe('')
    expect(path.warnings.at(-1)).toMatch(/more UDP clients of a thread at once than 3/)
    flooded.shut()
    expect(await ask(two, other.port, 'x')).toBe('a x')
  })

  test.each([
    { endFd: 1_048_512, threads: 8, expected: { perListener: 8192, perThread: 65_532 } },
    { endFd: 4032, threads: 4, expected: { perListener: 504, perThread: 504 } },
    { endFd: 192, threads: 2, expected: { perListener: 24, perThread: 48 } },
  ])('of $endFd file descriptors clients take at most half', ({ endFd, threads, expected }) => {
    expect(udpLimits(endFd, threads)).toEqual(expected)
  })

  test('a backend that cannot be reached from here is passed over at once', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000 })
    await using good = await aUdpBackend('good')
    using client = await aClient()
    // Broadcasts are not allowed: connect() refuses this one.
    const backends = [{ ip: '255.255.255.255', port: 9 }, good]
    const { port, pool } = path.open({ backends, affinitySeconds: noAffinity }, { protocol: 'UDP' })
    expect(await ask(client, port, 'x')).toBe('good x')
    expect(pool.totals()).toMatchObject({ failures: 1, retries: 1, unserved: 0, active: 1 })
  })

  test('a client whose socket cannot be watched is turned away, and nothing is held against the backend', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000 })
    await using backend = await aUdpBackend('a')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    const restore = refuseToWatch(path.loop(0))
    expect(await askInVain(client, port, 'x')).toBe('')
    restore()
    expect(pool.totals()).toMatchObject({ unserved: 1, active: 0, failures: 0 })
    expect(path.warnings.join()).toMatch(/max_user_watches/)
    expect(await ask(client, port, 'x')).toBe('a x')
  })

  test('a listener that cannot be watched is opened when there is room', async () => {
    using path = new InlineDataPath()
    await using backend = await aUdpBackend('a')
    using client = await aClient()
    const restore = refuseToWatch(path.loop(0))
    const { port } = path.open({ backends: [backend], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    expect(await askInVain(client, port, 'x')).toBe('')
    restore()
    await eventually('it is open', async () =>
      (await askInVain(client, port, 'y')).endsWith('y') ? undefined : 'closed',
    )
  })

  test('goes elsewhere when no program listens, and leaves that backend alone', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000 })
    const closed = await aClosedPort()
    await using good = await aUdpBackend('good')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [closed, good], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    // The first is lost: only its loss tells.
    expect(await askInVain(client, port, 'lost')).toBe('')
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
    const { port, pool } = path.open({ backends: [a], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    await ask(client, port, 'x')
    pool.update({ backends: [a, b], affinitySeconds: noAffinity })
    for (let i = 0; i < 3; i++) expect(await ask(client, port, 'x')).toBe('a x')
    pool.update({ backends: [b], affinitySeconds: noAffinity })
    expect(await ask(client, port, 'x')).toBe('b x')
    expect(pool.totals()).toMatchObject({ connections: 2 })
    expect(a.seen).toBe(4)
  })

  test('clients are not heard while there are no file descriptors left, which is said', async () => {
    using path = new InlineDataPath({ endFd: 0 })
    await using backend = await aUdpBackend('a')
    using client = await aClient()
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    expect(await askInVain(client, port, 'x')).toBe('')
    expect(path.warnings).toEqual(['Cannot connect to a backend: EMFILE'])
    expect(pool.totals()).toMatchObject({ unserved: 1, active: 0 })
  })

  test('ends with its listener', async () => {
    using path = new InlineDataPath({ udpIdleMs: 5000, threads: 3 })
    await using backend = await aUdpBackend('a')
    using client = await aClient()
    const { port, pool, shut } = path.open({ backends: [backend], affinitySeconds: noAffinity }, { protocol: 'UDP' })
    expect(await ask(client, port, 'x')).toBe('a x')
    shut()
    await eventually('no client is answered', async () => (await askInVain(client, port, 'x')) || undefined)
    await eventually('it is closed', () => (pool.totals().active === 0 ? undefined : 'active'))
  })
})
