import { patience } from '../../test/support/patience.ts'
import { afterEach, describe, expect, test } from 'vitest'
import { TestApiServer, type ApiServerOptions } from '../../test/support/api-server/api-server.ts'
import { STATUS } from '../../test/support/api-server/faults.ts'
import { RESOURCES, type ApiObject } from '../../test/support/api-server/objects.ts'
import { quietLog, type QuietLog } from '../../test/support/api-server/quiet-log.ts'
import { RecordingHandler, until } from '../../test/support/api-server/recording-handler.ts'
import { systemClock, type Clock } from '../lib/clock.ts'
import { services } from './objects/service.ts'
import type { ReflectorTiming } from './reflector-timing.ts'
import { runReflector, type ReflectorOptions } from './reflector.ts'
import { Transport } from './transport.ts'
import type { Service } from './types.ts'
import { JSON_TYPE, PROTOBUF } from './encoding/codec.ts'

const SERVICES = RESOURCES[0]

/** Impatient, so that a test of ten retries takes a tenth of a second. */
const TIMING: Partial<ReflectorTiming> = { backoffMs: 4, maxBackoffMs: 16, random: () => 0.5, shortWatchMs: 0 }

function aService(name: string, fields: Record<string, unknown> = {}): ApiObject {
  return { kind: 'Service', metadata: { name }, spec: { clusterIP: '10.0.0.1', ...fields } }
}

interface Rig {
  readonly server: TestApiServer
  readonly handler: RecordingHandler<Service>
  readonly log: QuietLog
  readonly done: Promise<void>
  stop(): Promise<void>
}

const open: Rig[] = []
afterEach(async () => {
  for (const rig of open.splice(0)) await rig.stop()
})

interface RigOptions {
  readonly server?: ApiServerOptions
  readonly objects?: readonly ApiObject[]
  readonly before?: (server: TestApiServer) => void
  readonly reflector?: Partial<ReflectorOptions<Service>>
  readonly timing?: Partial<ReflectorTiming>
  readonly accept?: string
  readonly responseTimeoutMs?: number
}

/** A server, and a reflector of its services. */
async function start(options: RigOptions = {}): Promise<Rig> {
  const server = await TestApiServer.start(options.server)
  server.store.applyAll(options.objects ?? [aService('a'), aService('b')])
  options.before?.(server)
  const log = quietLog()
  const client = new Transport({
    access: {
      server: new URL(server.url),
      tls: { ca: undefined, clientCertificate: undefined, serverName: undefined, verify: true },
      authentication: { type: 'anonymous' },
      impersonation: {},
      proxyUrl: undefined,
    },
    userAgent: 'test',
    accept: options.accept ?? PROTOBUF,
    limits: { qps: -1, burst: 0 },
    log,
    responseTimeoutMs: options.responseTimeoutMs ?? 2000 * patience(),
  })
  const stopping = new AbortController()
  const handler = new RecordingHandler<Service>()
  const timing = { ...TIMING, ...options.timing }
  const settings = { client, resource: services, handler, log, signal: stopping.signal, timing }
  const done = runReflector({ ...settings, ...options.reflector })
  // Awaited by stop(), or by the test itself.
  done.catch(() => {})
  const stop = async (): Promise<void> => {
    stopping.abort()
    await done.catch(() => {})
    client.close()
    await server.stop()
  }
  const rig: Rig = { server, handler, log, done, stop }
  open.push(rig)
  return rig
}

/** The same, with the first list delivered and the watch open. */
async function startWatching(options: RigOptions = {}): Promise<Rig> {
  const rig = await start(options)
  await watching(rig)
  rig.handler.clear()
  rig.server.requests.length = 0
  return rig
}

async function watching({ server, handler }: Rig): Promise<void> {
  await until('the watch is open', () => handler.isSynced && server.watchCount() === 1)
}

function listCount({ server }: Rig): number {
  return server.requests.filter(({ query }) => query['watch'] === undefined).length
}

describe.each([JSON_TYPE, PROTOBUF])('runReflector() over %s', (accept) => {
  test('delivers the list, then says once that it is synced, then changes as they come', async () => {
    const rig = await start({ accept })
    await watching(rig)
    expect(rig.handler.events).toEqual(['set default/a', 'set default/b'])
    expect(rig.handler.notices).toEqual(['available', 'synced'])
    rig.server.store.apply(aService('c'))
    rig.server.store.delete(SERVICES, 'default/a')
    rig.server.store.apply(aService('b', { clusterIP: '10.0.0.2' }))
    await until('b has changed', () => rig.handler.objects.get('default/b')?.clusterIPs[0] === '10.0.0.2')
    expect(rig.handler.keys).toEqual(['default/b', 'default/c'])
    expect(rig.server.requests[0]?.headers.accept).toBe(accept)
  })

  test('lists again after 410 in the stream, and delivers only the difference', async () => {
    const rig = await startWatching({ accept, objects: [aService('a'), aService('b'), aService('c')] })
    rig.server.silenceWatches()
    rig.server.store.delete(SERVICES, 'default/a')
    rig.server.store.apply(aService('b', { clusterIP: '10.0.0.9' }))
    rig.server.store.apply(aService('d'))
    rig.server.store.compact()
    rig.server.dropConnections()
    await until('the difference is there', () => rig.handler.batches.length > 0 && rig.server.watchCount() === 1)
    expect(rig.handler.events.sort()).toEqual(['delete default/a', 'set default/b', 'set default/d'])
    expect(listCount(rig)).toBe(1)
    expect(rig.handler.notices).toEqual([])
  })

  test('reports a malformed frame, keeps what came before it, and lists again', async () => {
    const rig = await startWatching({ accept })
    rig.server.fail({ on: 'watch', what: { type: 'garbage', bytes: Buffer.from('\0\0\0\x04garb\n') } })
    rig.server.endWatches()
    await until('the watch is open again', () => listCount(rig) === 1 && rig.server.watchCount() === 1)
    expect(rig.log.messages('error')).toEqual(['Failed to watch'])
    expect(rig.handler.events).toEqual([])
    rig.server.store.apply(aService('c'))
    await until('c is there', () => rig.handler.objects.has('default/c'))
  })

  test('survives a frame that is cut in the middle without losing the event', async () => {
    const rig = await startWatching({ accept })
    const changed = rig.server.store.apply(aService('a', { clusterIP: '10.0.0.7' }))
    await until('a has changed', () => rig.handler.events.length === 1)
    rig.server.sendTruncated(changed)
    await until('the watch is open again', () => rig.server.requests.length > 0 && rig.server.watchCount() === 1)
    rig.server.store.apply(aService('c'))
    await until('c is there', () => rig.handler.objects.has('default/c'))
    expect(rig.handler.events).toEqual(['set default/a', 'set default/c'])
    expect(listCount(rig)).toBe(0)
  })

  test('delivers a burst in one batch', async () => {
    const rig = await startWatching({ accept })
    for (let i = 0; i < 50; i++) rig.server.store.apply(aService(`burst-${i}`))
    await until('all are there', () => rig.handler.objects.size === 52)
    expect(rig.handler.batches.length).toBeLessThan(5)
  })
})

describe('runReflector() selects', () => {
  test('by label and field; an object that stops matching is deleted', async () => {
    const rig = await startWatching({
      objects: [
        aService('a'),
        aService('headless', { clusterIP: 'None' }),
        { ...aService('other'), metadata: { name: 'other', labels: { skip: '' } } },
      ],
      reflector: { labelSelector: '!skip', fieldSelector: 'spec.clusterIP!=None' },
    })
    expect(rig.handler.keys).toEqual(['default/a'])
    rig.server.store.apply({ ...aService('a'), metadata: { name: 'a', labels: { skip: '' } } })
    await until('a is gone', () => rig.handler.events.includes('delete default/a'))
    rig.server.store.apply(aService('a'))
    await until('a is back', () => rig.handler.objects.has('default/a'))
  })
})

describe('runReflector() keeps the watch alive', () => {
  test('from where it was, when the server ends it in time', async () => {
    const rig = await startWatching()
    rig.server.store.apply(aService('c'))
    await until('c is there', () => rig.handler.objects.has('default/c'))
    const version = String(rig.server.store.version)
    await new Promise((resolve) => setTimeout(resolve, 5))
    rig.server.endWatches()
    await until('the watch is open again', () => rig.server.requests.length === 1 && rig.server.watchCount() === 1)
    expect(rig.server.requests[0]?.query).toMatchObject({ watch: 'true', resourceVersion: version })
    expect(rig.handler.notices).toEqual([])
  })

  test('asking for bookmarks, and for an end between once and twice the time', async () => {
    const rig = await start({ timing: { watchSeconds: 100 } })
    await watching(rig)
    const watch = rig.server.requests.find(({ query }) => query['watch'] === 'true')
    expect(watch?.query).toMatchObject({ allowWatchBookmarks: 'true', timeoutSeconds: '150' })
  })

  test('from the last bookmark', async () => {
    const rig = await startWatching()
    rig.server.store.apply({ kind: 'Node', metadata: { name: 'n' } })
    rig.server.sendBookmarks()
    rig.server.store.compact()
    await new Promise((resolve) => setTimeout(resolve, 10))
    rig.server.endWatches()
    await until('the watch is open again', () => rig.server.requests.length === 1 && rig.server.watchCount() === 1)
    expect(rig.server.requests[0]?.query['resourceVersion']).toBe(String(rig.server.store.version))
  })

  test('when the connection is reset, without losing what happened meanwhile', async () => {
    const rig = await startWatching()
    rig.server.dropConnections()
    rig.server.store.apply(aService('c'))
    await until('c is there', () => rig.handler.objects.has('default/c'))
    expect(rig.handler.events).toEqual(['set default/c'])
    expect(listCount(rig)).toBe(0)
    expect(rig.handler.notices).toEqual([])
  })

  test('when the connection is half-open: silence longer than bookmarks take', async () => {
    const rig = await startWatching({ timing: { watchIdleMs: 60 } })
    rig.server.silenceWatches()
    rig.server.store.apply(aService('c'))
    await until('c is there', () => rig.handler.objects.has('default/c'))
    // One object was asked for, to see that the server still counts as it did.
    expect(rig.server.requests.map(({ query }) => query['limit'] ?? 'watch')).toEqual(['1', 'watch'])
  })

  test('and does not take bookmarks for silence', async () => {
    const watchIdleMs = 150 * patience()
    const rig = await startWatching({ server: { bookmarkMs: 20 }, timing: { watchIdleMs } })
    await new Promise((resolve) => setTimeout(resolve, 2.5 * watchIdleMs))
    expect(rig.server.requests).toEqual([])
    expect(rig.server.watchCount()).toBe(1)
  })

  test('backing off from a server that ends each watch at once', async () => {
    const rig = await startWatching({ timing: { backoffMs: 20, maxBackoffMs: 80, shortWatchMs: 1000 } })
    rig.server.fail({ on: 'watch', times: Number.POSITIVE_INFINITY, what: { type: 'end' } })
    rig.server.dropConnections()
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(rig.server.requests.length).toBeLessThan(9)
    rig.server.heal()
    await until('the watch is open again', () => rig.server.watchCount() === 1)
  })
})

test('runReflector() reads nothing while events wait to be written, and goes on before they are', async () => {
  let goOn: (() => void) | undefined
  const clock: Clock = {
    ...systemClock,
    setTimeout(callback, delayMs) {
      if (delayMs !== 180) return systemClock.setTimeout(callback, delayMs)
      goOn = callback
      return { cancel() {} }
    },
  }
  const rig = await start({ timing: { clock }, reflector: { nextWriteMs: () => 200 } })
  await watching(rig)
  rig.server.store.apply(aService('c'))
  await until('it has stopped reading', () => goOn !== undefined)
  rig.server.store.apply(aService('d'))
  rig.server.store.apply(aService('e'))
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(rig.handler.keys).toEqual(['default/a', 'default/b', 'default/c'])
  goOn!()
  await until('all are there', () => rig.handler.objects.has('default/e'))
  expect(rig.handler.events).toEqual([
    'set default/a',
    'set default/b',
    'set default/c',
    'set default/d',
    'set default/e',
  ])
})

describe('runReflector() and a server that is away', () => {
  test('says so once, keeps what it has, and delivers the difference when it is back', async () => {
    const rig = await startWatching()
    await rig.server.stop()
    await until('it is unavailable', () => rig.handler.notices.length > 0)
    rig.server.store.delete(SERVICES, 'default/a')
    rig.server.store.apply(aService('c'))
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(rig.handler.notices).toHaveLength(1)
    expect(rig.handler.notices[0]).toMatch(/^unavailable: Cannot reach API server .*ECONNREFUSED/)
    expect(rig.handler.events).toEqual([])
    await rig.server.restart()
    await until('it is available', () => rig.handler.isAvailable)
    await until('the difference is there', () => rig.handler.events.length === 2)
    expect(rig.handler.events.sort()).toEqual(['delete default/a', 'set default/c'])
  })

  test('from the beginning: is unavailable until the first list', async () => {
    const rig = await start({ before: (server) => void server.stop() })
    await until('it is unavailable', () => rig.handler.notices.length > 0)
    expect(rig.handler.isSynced).toBe(false)
    await rig.server.restart()
    await watching(rig)
    expect(rig.handler.notices.slice(1)).toEqual(['available', 'synced'])
  })

  test('after a restart that lost history, notices that versions go backwards, and lists the newest', async () => {
    const rig = await startWatching({ server: { firstVersion: 1000, bookmarkMs: 30 } })
    await rig.server.stop()
    rig.server.store.loseHistory(10)
    rig.server.store.delete(SERVICES, 'default/a')
    await rig.server.restart()
    await until('a is gone', () => rig.handler.events.includes('delete default/a'))
    await until('the watch is open again', () => rig.server.watchCount() === 1)
    rig.server.store.apply(aService('c'))
    await until('c is there', () => rig.handler.objects.has('default/c'))
    expect(rig.handler.keys).toEqual(['default/b', 'default/c'])
  })

  test('after a restart that lost history, does not wait for a bookmark, which the real one would never send', async () => {
    const rig = await startWatching({ server: { firstVersion: 1000 } })
    await rig.server.stop()
    await until('it is unavailable', () => rig.handler.notices.length > 0)
    rig.server.store.loseHistory(10)
    rig.server.store.delete(SERVICES, 'default/a')
    await rig.server.restart()
    await until('a is gone', () => rig.handler.events.includes('delete default/a'))
    await until('the watch is open again', () => rig.server.watchCount() === 1)
    rig.server.store.apply(aService('c'))
    await until('c is there', () => rig.handler.objects.has('default/c'))
  })

  test('after history was lost behind its back, notices it when the watch has been silent for too long', async () => {
    const rig = await startWatching({ server: { firstVersion: 1000 }, timing: { watchIdleMs: 60 } })
    rig.server.silenceWatches()
    rig.server.store.loseHistory(10)
    rig.server.store.apply(aService('c'))
    await until('c is there', () => rig.handler.objects.has('default/c'))
    expect(rig.log.messages('error')).toEqual(['Failed to watch'])
  })

  test('that accepts requests and never answers', async () => {
    const rig = await start({
      before: (server) => server.fail({ on: 'list', what: { type: 'hang' } }),
      responseTimeoutMs: 40,
    })
    await watching(rig)
    expect(rig.handler.notices[0]).toContain('no answer within 0.04 s')
  })

  test('that stalls in the middle of a list', async () => {
    const rig = await start({
      before: (server) => server.fail({ on: 'list', what: { type: 'slow', pieceBytes: 20, pauseMs: 10_000 } }),
      timing: { listIdleMs: 40 },
    })
    await watching(rig)
    expect(rig.handler.notices[0]).toContain('nothing came for 0.04 s')
  })
})

describe('runReflector() and a server that refuses', () => {
  test.each([STATUS.internal, STATUS.unavailable, STATUS.forbidden, STATUS.unauthorized])(
    'lists again after %j',
    async (status) => {
      const rig = await start({
        before: (server) => server.fail({ on: 'list', times: 3, what: { type: 'status', status } }),
      })
      await watching(rig)
      expect(rig.handler.notices).toHaveLength(3)
      expect(rig.handler.notices[0]).toContain(status.message)
      expect(listCount(rig)).toBe(4)
    },
  )

  test('watches again after an error, without listing', async () => {
    const rig = await startWatching()
    rig.server.fail({ on: 'watch', times: 2, what: { type: 'status', status: STATUS.internal } })
    rig.server.dropConnections()
    await until('it is unavailable', () => rig.handler.notices.length > 0)
    await until('it is available', () => rig.handler.isAvailable)
    expect(listCount(rig)).toBe(0)
  })

  test('waits as long as Retry-After says', async () => {
    const rig = await start({
      before: (server) =>
        server.fail({ on: 'list', what: { type: 'status', status: STATUS.tooManyRequests, retryAfterSeconds: 1 } }),
    })
    await until('it was refused', () => rig.handler.notices.length > 0)
    const line = rig.log.lines.find(({ severity }) => severity === 'error')
    expect(line?.values['retryInMs']).toBeGreaterThanOrEqual(1000)
    expect(rig.handler.isSynced).toBe(false)
    const startMs = performance.now()
    await watching(rig)
    expect(performance.now() - startMs).toBeGreaterThan(800)
  })

  test('lists again after 410 as an answer to the watch, and after an error in the stream', async () => {
    const rig = await startWatching()
    rig.server.fail({ on: 'watch', what: { type: 'status', status: STATUS.expired } })
    rig.server.fail({ on: 'watch', what: { type: 'errorFrame', status: STATUS.internal } })
    rig.server.dropConnections()
    await until('it has listed twice', () => listCount(rig) === 2 && rig.server.watchCount() === 1)
    expect(rig.handler.events).toEqual([])
  })

  test('lists the newest again where the server does not understand the version that it gave itself', async () => {
    const rig = await startWatching()
    rig.server.fail({ on: 'list', what: { type: 'version', version: 'yesterday' } })
    rig.server.store.compact()
    rig.server.sendError(STATUS.expired)
    await until('it has listed twice', () => listCount(rig) === 2 && rig.server.watchCount() === 1)
    const versions = rig.server.requests.map(({ query }) => query['resourceVersion'])
    expect(versions.slice(1)).toEqual(['yesterday', undefined, String(rig.server.store.version)])
    rig.server.store.delete(SERVICES, 'default/a')
    await until('a is gone', () => rig.handler.events.includes('delete default/a'))
  })

  test('waits longer each time the same goes wrong', async () => {
    const rig = await startWatching({ timing: { backoffMs: 5, maxBackoffMs: 1000 } })
    rig.server.fail({ on: 'watch', times: 4, what: { type: 'errorFrame', status: STATUS.internal } })
    rig.server.dropConnections()
    await until('the watch is open again', () => listCount(rig) === 4 && rig.server.watchCount() === 1)
    const waits = rig.log.lines.filter(({ severity }) => severity === 'error').map(({ values }) => values['retryInMs'])
    expect(waits).toEqual([5, 10, 20, 40])
  })

  test('lists soon after a long absence, though it asked more and more seldom meanwhile', async () => {
    const rig = await startWatching({ timing: { backoffMs: 10, maxBackoffMs: 1000 } })
    rig.server.fail({ on: 'watch', times: 5, what: { type: 'status', status: STATUS.unavailable } })
    rig.server.fail({ on: 'watch', what: { type: 'errorFrame', status: STATUS.expired } })
    rig.server.dropConnections()
    await until('it has listed', () => listCount(rig) === 1)
    const index = rig.server.requests.findIndex(({ query }) => query['watch'] === undefined)
    expect(index).toBe(6)
    const [refused, expired, list] = rig.server.requests.slice(index - 2).map(({ atMs }) => atMs)
    // It starts again. Had it gone on as before, it would have waited twice as long as the last time.
    expect(list! - expired!).toBeLessThan(expired! - refused!)
  })

  test('gives up on what it was told to give up on, before the first list only', async () => {
    const rig = await start({
      before: (server) => server.fail({ on: 'list', what: { type: 'status', status: STATUS.forbidden } }),
      reflector: { giveUpOn: () => true },
    })
    await expect(rig.done).rejects.toMatchObject({ status: 403 })
    const later = await startWatching({ reflector: { giveUpOn: () => true } })
    await later.server.restart()
    await until('the watch is open again', () => later.server.watchCount() === 1)
  })
})

describe('runReflector() and lists', () => {
  const many = Array.from({ length: 25 }, (_, index) => aService(`s${index}`))

  test('asks for any version at first, without a limit', async () => {
    const rig = await start({ objects: many })
    await watching(rig)
    expect(rig.server.requests[0]?.query).toEqual({ resourceVersion: '0' })
  })

  test('reads every page where the server insists on pages', async () => {
    const rig = await start({ objects: many, server: { maxPage: 10 } })
    await watching(rig)
    expect(rig.handler.objects.size).toBe(25)
    expect(listCount(rig)).toBe(3)
  })

  test('asks for the newest version, whole, when the one that it wants has expired', async () => {
    const rig = await start({
      before: (server) => server.fail({ on: 'list', what: { type: 'status', status: STATUS.expired } }),
    })
    await watching(rig)
    const lists = rig.server.requests.filter(({ query }) => query['watch'] === undefined)
    expect(lists.map(({ query }) => query)).toEqual([{ resourceVersion: '0' }, {}])
  })

  test('asks for the newest version when the server has not come as far as the last one', async () => {
    const rig = await startWatching({ server: { firstVersion: 1000 } })
    const seen = String(rig.server.store.version)
    await rig.server.stop()
    rig.server.store.loseHistory(10)
    rig.server.store.delete(SERVICES, 'default/a')
    rig.server.fail({ on: 'watch', what: { type: 'errorFrame', status: STATUS.expired } })
    await rig.server.restart()
    await until('a is gone', () => rig.handler.events.includes('delete default/a'))
    const lists = rig.server.requests.filter(({ query }) => query['watch'] === undefined)
    expect(lists.map(({ query }) => query['resourceVersion'])).toEqual([seen, undefined])
  })

  test('reads pages where the newest version is needed', async () => {
    const rig = await startWatching({
      objects: many,
      server: { firstVersion: 1000, bookmarkMs: 20 },
      timing: { pageSize: 10 },
    })
    await rig.server.stop()
    rig.server.store.loseHistory(10)
    await rig.server.restart()
    await until('the watch is open again', () => listCount(rig) >= 3 && rig.server.watchCount() === 1)
    const lists = rig.server.requests.filter(({ query }) => query['watch'] === undefined)
    expect(lists.map(({ query }) => [query['limit'], query['continue'] !== undefined])).toEqual([
      ['10', false],
      ['10', true],
      ['10', true],
    ])
    expect(rig.handler.objects.size).toBe(25)
  })

  test('a page that has expired means a whole list', async () => {
    const rig = await startWatching({
      objects: many,
      server: { firstVersion: 1000, bookmarkMs: 20 },
      timing: { pageSize: 10 },
    })
    await rig.server.stop()
    rig.server.store.loseHistory(10)
    // The first page is answered, the second is not.
    rig.server.fail({ on: 'list', what: { type: 'delay', ms: 0 } })
    rig.server.fail({ on: 'list', what: { type: 'status', status: STATUS.expired } })
    await rig.server.restart()
    await until('the watch is open again', () => listCount(rig) >= 3 && rig.server.watchCount() === 1)
    const lists = rig.server.requests.filter(({ query }) => query['watch'] === undefined)
    expect(lists.map(({ query }) => [query['limit'], query['continue'] !== undefined])).toEqual([
      ['10', false],
      ['10', true],
      [undefined, false],
    ])
    expect(rig.handler.objects.size).toBe(25)
  })

  test.each(['cut', 'garbage'] as const)(
    'a list that is %s is asked for again, and nothing is deleted',
    async (type) => {
      const what = type === 'cut' ? { type, afterBytes: 200 } : { type, bytes: Buffer.from('k8s\0\xff\xff') }
      const rig = await startWatching({ objects: many })
      rig.server.store.compact()
      rig.server.store.apply(aService('new'))
      rig.server.store.compact()
      rig.server.fail({ on: 'list', what })
      await until('new is there', () => rig.handler.objects.has('default/new'))
      rig.server.silenceWatches()
      rig.server.store.apply(aService('newer'))
      rig.server.store.compact()
      rig.server.dropConnections()
      await until('newer is there', () => rig.handler.objects.has('default/newer'))
      await until('the watch is open again', () => rig.server.watchCount() === 1)
      expect(rig.handler.events).toEqual(['set default/new', 'set default/newer'])
      expect(rig.handler.notices.map((notice) => notice.split(':')[0])).toEqual(['unavailable', 'available'])
    },
  )

  test('a slow list is waited for', async () => {
    const rig = await start({
      objects: many,
      before: (server) => server.fail({ on: 'list', what: { type: 'slow', pieceBytes: 100, pauseMs: 2 } }),
      timing: { listIdleMs: 500 },
    })
    await watching(rig)
    expect(rig.handler.notices).toEqual(['available', 'synced'])
    expect(rig.handler.objects.size).toBe(25)
  })

  test('an answer of another type than JSON and protobuf is an error', async () => {
    const rig = await start({
      before: (server) => server.fail({ on: 'list', what: { type: 'garbage', bytes: Buffer.from('<html>') } }),
    })
    await watching(rig)
    expect(rig.handler.notices[0]).toMatch(/^unavailable: Cannot decode/)
  })
})

describe('runReflector() ends', () => {
  test('at once when the signal is aborted', async () => {
    const rig = await startWatching()
    const startMs = performance.now()
    await rig.stop()
    expect(performance.now() - startMs).toBeLessThan(500 * patience())
    await expect(rig.done).resolves.toBeUndefined()
  })

  test('with what the handler throws', async () => {
    const failing = {
      onEvents: () => {
        throw new RangeError('cannot take it')
      },
    }
    const rig = await start({ reflector: { handler: failing } })
    await expect(rig.done).rejects.toThrow(RangeError)
  })
})
