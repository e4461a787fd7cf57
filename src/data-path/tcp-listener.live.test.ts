// Real sockets on loopback; both ends of every connection are in this process.

import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { mustCall } from '../system/libc.ts'
import { aClosedPort, aHangingBackend, anEchoBackend, aTcpBackend } from '../../test/support/backends.ts'
import { patience } from '../../test/support/patience.ts'
import { eventually } from '../../test/support/eventually.ts'
import { InlineDataPath, refuseToWatch } from '../../test/support/inline-data-path.ts'
import type { Resumable } from './event-loop.ts'
import { openSocket } from './sockets.ts'

function dial(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  return socket
}

/** All that comes, until the other side says that there is no more. The socket stays open. */
async function text(socket: Socket): Promise<string> {
  let all = ''
  socket.on('data', (data: Buffer) => (all += data.toString()))
  if (!socket.readableEnded) await once(socket, 'end')
  return all
}

/** Connects, says nothing, and gives all that comes. */
async function greeting(port: number): Promise<string> {
  const socket = dial(port)
  socket.end()
  return (await text(socket)).trim()
}

/** How a connection ended: '' when it ended well. */
async function ending(socket: Socket): Promise<string> {
  let code = ''
  socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code ?? 'error'))
  socket.resume()
  if (!socket.closed) await once(socket, 'close').catch(() => {})
  return code
}

/** A byte that overtakes others, and that is no part of what they are. */
function sendUrgent(socket: Socket): void {
  const MSG_OOB = 1
  const { fd } = (socket as unknown as { _handle: { fd: number } })._handle
  mustCall('send urgent data', 'send', fd, Buffer.from('!'), 1, MSG_OOB)
}

const noAffinity = undefined

describe('a TCP connection through the data path', () => {
  test('carries what both say', async () => {
    using path = new InlineDataPath()
    await using backend = await anEchoBackend('a')
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const socket = dial(port)
    socket.end('hello')
    expect(await text(socket)).toBe('a\nhello')
    await eventually('it is over', () => (pool.totals().active === 0 ? undefined : 'active'))
    expect(pool.totals()).toMatchObject({ connections: 1, bytesToBackends: 5, bytesToClients: 7, retries: 0 })
  })

  test('carries IPv6', async () => {
    using path = new InlineDataPath()
    await using backend = await anEchoBackend('six', '::1')
    const { port } = path.open({ backends: [backend], affinitySeconds: noAffinity }, { family: 6 })
    const socket = connect({ port, host: '::1' })
    socket.end()
    expect(await text(socket)).toBe('six\n')
  })

  test('goes on in one direction when the other has ended', async () => {
    using path = new InlineDataPath()
    await using late = await aTcpBackend((socket) => {
      // Answers only when it knows that there is nothing more to come.
      void text(socket).then((request) => socket.end(`got ${request}`))
    })
    await using early = await aTcpBackend((socket) => {
      socket.end('done')
      void text(socket).then((rest) => (heard = rest))
    })
    let heard = ''
    const one = dial(path.open({ backends: [late], affinitySeconds: noAffinity }).port)
    one.end('all')
    expect(await text(one)).toBe('got all')
    const other = dial(path.open({ backends: [early], affinitySeconds: noAffinity }).port)
    expect(await text(other)).toBe('done')
    other.end('still here')
    await eventually('the backend hears the rest', () => (heard === 'still here' ? undefined : heard))
  })

  test('carries much in both directions at once, unchanged', async () => {
    using path = new InlineDataPath()
    await using backend = await aTcpBackend((socket) => void socket.pipe(socket))
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const data = randomBytes(24 << 20)
    const socket = dial(port)
    const hash = createHash('sha256')
    socket.on('data', (chunk) => hash.update(chunk))
    for (let at = 0; at < data.length; at += 70_001) {
      if (!socket.write(data.subarray(at, at + 70_001))) await once(socket, 'drain')
    }
    socket.end()
    await once(socket, 'end')
    expect(hash.digest('hex')).toBe(createHash('sha256').update(data).digest('hex'))
    expect(pool.totals()).toMatchObject({ bytesToBackends: data.length, bytesToClients: data.length })
  })

  test('makes the sender wait when the receiver does not read', async () => {
    using path = new InlineDataPath()
    let written = 0
    await using backend = await aTcpBackend((socket) => {
      const chunk = Buffer.alloc(1 << 20)
      const go = () => {
        while (written < 200 << 20) {
          written += chunk.length
          if (!socket.write(chunk)) return
        }
        socket.end()
      }
      socket.on('drain', go)
      go()
    })
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const socket = dial(port)
    socket.pause()
    let before = -1
    await eventually(
      'the sender waits',
      async () => {
        before = written
        await sleep(200)
        return written === before ? undefined : `${written}`
      },
      { withinMs: 20_000 },
    )
    expect(written).toBeLessThan(64 << 20)
    let received = 0
    socket.on('data', (data) => (received += data.length))
    socket.resume()
    await once(socket, 'end')
    expect(received).toBe(200 << 20)
    expect(pool.totals().bytesToClients).toBe(200 << 20)
    socket.destroy()
  })

  test('carries what surrounds urgent data, also when there is much of it', async () => {
    using path = new InlineDataPath({ threads: 2 })
    const hash = createHash('sha256')
    let length = 0
    await using backend = await aTcpBackend((socket) => {
      socket.on('data', (chunk) => {
        hash.update(chunk)
        length += chunk.length
      })
      socket.on('end', () => socket.end('got it'))
    })
    const socket = dial(path.open({ backends: [backend], affinitySeconds: noAffinity }).port)
    await once(socket, 'connect')
    const part = randomBytes(3 << 20)
    if (!socket.write(part)) await once(socket, 'drain')
    // One at a time: of two, the first would become a part of the others.
    sendUrgent(socket)
    socket.end(part)
    expect(await text(socket)).toBe('got it')
    expect(length).toBe(2 * part.length)
    const expected = createHash('sha256').update(part).update(part).digest('hex')
    expect(hash.digest('hex')).toBe(expected)
  })

  test('breaks for the client when the backend breaks it, after all that was said', async () => {
    using path = new InlineDataPath()
    await using backend = await aTcpBackend((socket) => {
      socket.write('last words', () => setTimeout(() => socket.resetAndDestroy(), 20))
    })
    const socket = dial(path.open({ backends: [backend], affinitySeconds: noAffinity }).port)
    let heard = ''
    socket.on('data', (data) => (heard += data.toString()))
    expect(await ending(socket)).toBe('ECONNRESET')
    expect(heard).toBe('last words')
  })

  test('breaks for the backend when the client breaks it', async () => {
    using path = new InlineDataPath()
    let broken = ''
    await using backend = await aTcpBackend((socket) => {
      socket.on('error', (error: NodeJS.ErrnoException) => (broken = error.code ?? ''))
      socket.resume()
    })
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const socket = dial(port)
    await once(socket, 'connect')
    await eventually('it is joined', () => (pool.totals().active === 1 ? undefined : 'not yet'))
    socket.resetAndDestroy()
    await eventually('the backend notices', () => (broken === 'ECONNRESET' ? undefined : broken))
    expect(pool.totals().active).toBe(0)
  })
})

describe.concurrent('the choice of a backend', () => {
  test('goes round, exactly', async () => {
    using path = new InlineDataPath()
    await using a = await anEchoBackend('a')
    await using b = await anEchoBackend('b')
    await using c = await anEchoBackend('c')
    const { port } = path.open({ backends: [a, b, c], affinitySeconds: noAffinity })
    const answers: string[] = []
    for (let i = 0; i < 6; i++) answers.push(await greeting(port))
    expect(answers.join('')).toBe('abcabc')
  })

  test('passes over one that refuses, and leaves it alone for a while', async () => {
    using path = new InlineDataPath()
    const refusing = await aClosedPort()
    await using good = await anEchoBackend('good')
    const { port, pool } = path.open({ backends: [refusing, good], affinitySeconds: noAffinity })
    const startMs = performance.now()
    for (let i = 0; i < 6; i++) expect(await greeting(port)).toBe('good')
    const { retries, failures, ...totals } = pool.totals()
    expect(totals).toMatchObject({ connections: 6, unserved: 0 })
    // Once, and once more after each rest of a second that a busy machine took for the rest.
    expect(failures).toBeGreaterThanOrEqual(1)
    expect(failures).toBeLessThanOrEqual(1 + Math.floor((performance.now() - startMs) / 1000))
    expect(retries).toBe(failures)
    expect(pool.backends()[0]).toMatchObject({ failures })
    expect(pool.backends()[0]!.restsForMs).toBeGreaterThan(0)
    expect(pool.backends()[1]).toMatchObject({ failures: 0, restsForMs: 0 })
  })

  test('tries it again after its rest, and takes it back when it answers', async () => {
    using path = new InlineDataPath()
    const { ip, port: closed } = await aClosedPort()
    await using good = await anEchoBackend('good')
    const { port, pool } = path.open({ backends: [{ ip, port: closed }, good], affinitySeconds: noAffinity })
    await greeting(port)
    await sleep(1050)
    for (let i = 0; i < 4; i++) expect(await greeting(port)).toBe('good')
    expect(pool.backends()[0]!.failures).toBeGreaterThanOrEqual(2)
  })

  test('goes on to the next after 250 ms when one does not answer at all', async () => {
    using path = new InlineDataPath()
    await using hanging = await aHangingBackend()
    await using good = await anEchoBackend('good')
    const { port, pool } = path.open({ backends: [hanging, good], affinitySeconds: noAffinity })
    const startMs = performance.now()
    expect(await greeting(port)).toBe('good')
    expect(performance.now() - startMs).toBeGreaterThan(245)
    expect(performance.now() - startMs).toBeLessThan(1000 * patience())
    const again = performance.now()
    expect(await greeting(port)).toBe('good')
    expect(performance.now() - again).toBeLessThan(200 * patience())
    expect(pool.totals()).toMatchObject({ retries: 1, failures: 1 })
  })

  test('gives up after 250 ms, 500 ms, 1 s and 2 s, and breaks the connection', async () => {
    using path = new InlineDataPath()
    await using hanging = await aHangingBackend()
    const { port, pool } = path.open({ backends: [hanging], affinitySeconds: noAffinity })
    const startMs = performance.now()
    expect(await ending(dial(port))).toBe('ECONNRESET')
    expect(performance.now() - startMs).toBeGreaterThan(3700)
    expect(performance.now() - startMs).toBeLessThan(3750 + 500 * patience())
    expect(pool.totals()).toMatchObject({ retries: 3, failures: 4, unserved: 1, active: 0 })
  })

  test('breaks the connection at once when all refuse, and loses no client when there are no backends', async () => {
    using path = new InlineDataPath()
    const refusing = path.open({ backends: [await aClosedPort()], affinitySeconds: noAffinity })
    const startMs = performance.now()
    expect(await ending(dial(refusing.port))).toBe('ECONNRESET')
    expect(performance.now() - startMs).toBeLessThan(500 * patience())
    const empty = path.open({ backends: [], affinitySeconds: noAffinity })
    expect(await ending(dial(empty.port))).toBe('ECONNRESET')
    expect(empty.pool.totals()).toMatchObject({ connections: 1, failures: 0, unserved: 1 })
  })

  test('stays with one backend for a client that is to come to the same, and moves on with it when that fails', async () => {
    using path = new InlineDataPath()
    const a = await anEchoBackend('a')
    await using b = await anEchoBackend('b')
    const { port } = path.open({ backends: [a, b], affinitySeconds: 60 })
    for (let i = 0; i < 3; i++) expect(await greeting(port)).toBe('a')
    await a[Symbol.asyncDispose]()
    for (let i = 0; i < 3; i++) expect(await greeting(port)).toBe('b')
  })

  test('follows changes: new connections go elsewhere, open ones live on', async () => {
    using path = new InlineDataPath()
    await using a = await anEchoBackend('a')
    await using b = await anEchoBackend('b')
    const { port, pool } = path.open({ backends: [a], affinitySeconds: noAffinity })
    const old = dial(port)
    await once(old, 'data')
    pool.update({ backends: [b], affinitySeconds: noAffinity })
    expect(await greeting(port)).toBe('b')
    old.end('ping')
    expect(await text(old)).toBe('ping')
  })
})

describe('a listener', () => {
  test('that is shut lets no client in, and open connections live on', async () => {
    using path = new InlineDataPath()
    await using backend = await anEchoBackend('a')
    const { port, pool, shut } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const open = dial(port)
    await once(open, 'data')
    shut()
    await eventually('it lets no client in', async () => {
      const client = dial(port)
      client.end()
      const code = await ending(client)
      return code === 'ECONNREFUSED' ? undefined : `the client ended with ${JSON.stringify(code)}`
    })
    open.end('ping')
    expect(await text(open)).toBe('ping')
    await eventually('it is over', () => (pool.totals().active === 0 ? undefined : 'active'))
  })

  test('keeps clients waiting while there are no file descriptors left, and turns none away', async () => {
    using path = new InlineDataPath({ endFd: 0 })
    await using backend = await anEchoBackend('a')
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const socket = dial(port)
    await once(socket, 'connect')
    await eventually('it is said', () => (path.warnings.length > 1 ? undefined : 'nothing'))
    expect(new Set(path.warnings)).toEqual(new Set(['Cannot accept connections for the moment: EMFILE']))
    expect(pool.totals()).toMatchObject({ connections: 0, unserved: 0, failures: 0 })
    expect(socket.closed).toBe(false)
    socket.destroy()
  })

  test('serves a thousand at once', async () => {
    using path = new InlineDataPath()
    await using backend = await anEchoBackend('a')
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const sockets = Array.from({ length: 1000 }, () => dial(port))
    await Promise.all(sockets.map((socket) => once(socket, 'data')))
    expect(pool.totals()).toMatchObject({ connections: 1000, active: 1000 })
    const answers = sockets.map((socket, i) => {
      socket.end(`${i}`)
      return text(socket)
    })
    expect(await Promise.all(answers)).toEqual(sockets.map((_, i) => `${i}`))
    expect(pool.totals()).toMatchObject({ active: 0, failures: 0, unserved: 0 })
  })
})

describe('several threads', () => {
  test('share large streams evenly, and these arrive whole', async () => {
    using path = new InlineDataPath({ threads: 2 })
    await using backend = await aTcpBackend((socket) => void socket.pipe(socket))
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const data = randomBytes(4 << 20)
    const sockets = Array.from({ length: 4 }, () => dial(port))
    const received = sockets.map((socket) => {
      const hash = createHash('sha256')
      socket.on('data', (chunk) => hash.update(chunk))
      return hash
    })
    for (const socket of sockets) socket.write(data)
    await eventually('all are large', () => (path.bulkStreams.join() === '2,2' ? undefined : path.bulkStreams.join()))
    for (const socket of sockets) socket.end(data)
    await Promise.all(sockets.map((socket) => once(socket, 'end')))
    const expected = createHash('sha256').update(data).update(data).digest('hex')
    for (const hash of received) expect(hash.digest('hex')).toBe(expected)
    expect(pool.totals()).toMatchObject({ bytesToClients: 4 * 2 * data.length })
    await eventually('all are over', () => (pool.totals().active === 0 ? undefined : 'active'))
    expect(path.bulkStreams).toEqual([0, 0])
  })

  test('help the one that lets clients in when it is busy', async () => {
    using path = new InlineDataPath({ threads: 2 })
    await using backend = await anEchoBackend('a')
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    for (let i = 0; i < 20; i++) {
      path.setBusy(0, 1000)
      expect(await greeting(port)).toBe('a')
    }
    expect(pool.totals()).toMatchObject({ connections: 20, unserved: 0 })
    await eventually('all are over', () => (pool.totals().active === 0 ? undefined : 'active'))
  })

  test('leave clients with affinity where they are known', async () => {
    using path = new InlineDataPath({ threads: 2 })
    await using a = await anEchoBackend('a')
    await using b = await anEchoBackend('b')
    const { port } = path.open({ backends: [a, b], affinitySeconds: 60 })
    for (let i = 0; i < 10; i++) {
      path.setBusy(0, 1000)
      expect(await greeting(port)).toBe('a')
    }
  })
})

describe('when there is no room to watch another socket', () => {
  test.each([
    { what: "the backend's", after: 0 },
    { what: "the client's", after: 1 },
  ])('of $what connection, the client is reset, and only that one', async ({ after }) => {
    using path = new InlineDataPath()
    await using backend = await anEchoBackend('a')
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const before = dial(port)
    await once(before, 'data')
    const restore = refuseToWatch(path.loop(0), after)
    expect(await ending(dial(port))).toBe('ECONNRESET')
    restore()
    expect(path.warnings).toEqual([expect.stringMatching(/max_user_watches/)])
    expect(pool.totals()).toMatchObject({ active: 1, failures: 0 })
    before.end('still here')
    expect(await text(before)).toBe('still here')
    expect(await greeting(port)).toBe('a')
  })

  test('a stream that was to change threads is reset', async () => {
    using path = new InlineDataPath({ threads: 2 })
    await using backend = await anEchoBackend('a')
    const { port, pool } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const kept = dial(port)
    kept.write(Buffer.alloc(1 << 20))
    kept.resume()
    await eventually('one stream is known to be large', () => (path.bulkStreams[0] === 1 ? undefined : 'not yet'))
    const restore = refuseToWatch(path.loop(1))
    const moved = dial(port)
    moved.write(Buffer.alloc(1 << 20))
    expect(await ending(moved)).toBe('ECONNRESET')
    restore()
    expect(path.bulkStreams).toEqual([1, 0])
    expect(pool.totals().active).toBe(1)
    kept.destroy()
  })

  test('of a listener, it is opened later', async () => {
    using path = new InlineDataPath()
    await using backend = await anEchoBackend('a')
    const restore = refuseToWatch(path.loop(0))
    const { port } = path.open({ backends: [backend], affinitySeconds: noAffinity })
    const served = greeting(port)
    await eventually('it was tried', () => (path.warnings.length > 0 ? undefined : 'not yet'))
    restore()
    expect(await served).toBe('a')
  })
})

describe('between threads', () => {
  test('a client that was reset on its way is not served, least of all as the one before', async () => {
    using path = new InlineDataPath({ threads: 2 })
    await using backend = await anEchoBackend('a')
    const listener = path.open({ backends: [backend], affinitySeconds: noAffinity })
    expect(await greeting(listener.port)).toBe('a')
    await eventually('it is over', () => (listener.pool.totals().active === 0 ? undefined : 'active'))
    // A socket without a peer, as it is after a reset.
    path.handClient(1, openSocket(4, 'TCP'), listener)
    expect(await greeting(listener.port)).toBe('a')
    expect(backend.seen).toBe(2)
    expect(listener.pool.totals().connections).toBe(2)
  })
})

test('a stream waits for its turn once, however much happens meanwhile', async () => {
  using path = new InlineDataPath()
  await using backend = await anEchoBackend('a')
  const loop = path.loop(0)
  const again = loop.again.bind(loop)
  const waiting = new Set<Resumable>()
  let turns = 0
  let twice = 0
  loop.again = (resumable) => {
    turns++
    if (waiting.has(resumable)) twice++
    waiting.add(resumable)
    again({
      resume() {
        waiting.delete(resumable)
        resumable.resume()
      },
    })
  }
  const { port } = path.open({ backends: [backend], affinitySeconds: noAffinity })
  const socket = dial(port)
  const size = 64 << 20
  let received = -2
  socket.on('data', (data: Buffer) => (received += data.length))
  socket.end(Buffer.alloc(size))
  await once(socket, 'end')
  expect(received).toBe(size)
  expect(turns).toBeGreaterThan(0)
  expect(twice).toBe(0)
})
