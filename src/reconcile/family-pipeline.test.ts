import { describe, expect, it, test } from 'vitest'
import { aNodeView } from '../../test/support/arbitrary-views.ts'
import { service } from '../../test/support/kube-objects.ts'
import type { EndpointSlice } from '../kube/types.ts'
import { systemClock } from '../lib/clock.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError } from '../lib/errors.ts'
import { silentLogger } from '../lib/log.ts'
import { ProblemLog } from '../model/problems.ts'
import { ServiceModel } from '../model/service-model.ts'
import type { ServicePortView } from '../model/types.ts'
import { ProxyHealth } from '../serve/proxy-health.ts'
import type { Applied } from './applied.ts'
import { FamilyPipeline } from './family-pipeline.ts'
import { modeNamed } from '../modes/all.ts'
import { createMetrics } from '../metrics/metrics.ts'
import type { SyncStats } from './programmer.ts'
import type { RecordedChange } from './recorder.ts'

const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }
const DONE: SyncStats = { transactions: 1, operations: 3, bytes: 5 }

function aSlice(name: string, addresses: readonly string[]): EndpointSlice {
  return {
    namespace: 'default',
    name,
    serviceName: 'web',
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({ address, ready: true, serving: true, terminating: false })),
    ports: [{ name: '', protocol: 'TCP', port: 80 }],
  } as unknown as EndpointSlice
}

/** A pipeline whose programmer takes its time. */
function open() {
  const clock = new ManualClock()
  const metrics = createMetrics({ shown: modeNamed('iptables').metrics, build })
  const node = aNodeView({ family: 4 })
  const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  const calls: { keep(): void; break(): void }[] = []
  let formatted = 0
  const sync = () =>
    new Promise<SyncStats>((resolve, reject) => {
      const commands = () => [`command ${++formatted}`]
      calls.push({ keep: () => resolve({ ...DONE, commands }), break: () => reject(new Error('refused')) })
    })
  const pipeline = new FamilyPipeline({
    node,
    model,
    programmer: { sync, syncAll: sync, close() {} },
    metrics,
    health: new ProxyHealth({ clock, timeoutMs: 1000 }),
    periods: { minMs: 0, maxMs: 60_000, retryMs: 100, maxRetryMs: 1000 },
    clock,
    log: silentLogger,
    subscribers: [],
  })
  const endpoint = (name: string) => {
    model.setSlice({ ...aSlice(name, ['10.1.0.1']), triggerTimeMs: clock.now() - 1000 })
    pipeline.changed()
  }
  const counted = () =>
    Number(/network_programming_duration_seconds_count\{[^}]*\} (\d+)/.exec(metrics.text())?.[1] ?? 0)
  /** Lets everything come to its end that is not waiting for us. */
  const turn = async () => {
    await clock.advance(1)
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(1)
  }
  return { clock, metrics, pipeline, calls, model, endpoint, counted, turn, formatted: () => formatted }
}

describe('FamilyPipeline', () => {
  it('counts trigger times with the sync that programs them, not with one that is under way', async () => {
    const { pipeline, calls, endpoint, counted, turn } = open()
    endpoint('a')
    pipeline.start()
    await turn()
    endpoint('b')
    calls[0]!.keep()
    await turn()
    expect(counted()).toBe(1)
    await turn()
    calls[1]!.keep()
    await turn()
    expect(counted()).toBe(2)
  })

  it('counts them later when a sync fails, and no failure of nftables in another mode', async () => {
    const { clock, metrics, pipeline, calls, endpoint, counted, turn } = open()
    endpoint('a')
    pipeline.start()
    await turn()
    calls[0]!.break()
    await turn()
    expect(counted()).toBe(0)
    await clock.advance(200)
    await turn()
    calls[1]!.keep()
    await turn()
    expect(counted()).toBe(1)
    expect(metrics.nftablesSyncFailures.with('IPv4').value).toBe(0)
    expect(metrics.text()).toContain('kubeproxyts_operations_total{ip_family="IPv4"} 3')
  })
})

it('what concerns the other family, or says nothing new, costs no sync', async () => {
  const { clock, metrics, pipeline, calls, model } = open()
  const told = async (slice: EndpointSlice) => {
    model.setSlice(slice)
    pipeline.changed()
    await clock.advance(1)
    for (const call of calls) call.keep()
    await clock.advance(1)
  }
  pipeline.start()
  await told(aSlice('web', ['10.1.0.1']))
  expect(calls.length).toBe(1)
  await told(aSlice('web', ['10.1.0.1']))
  await told({ ...aSlice('web6', ['fd00::1']), addressType: 'IPv6' })
  expect(calls.length).toBe(1)
  expect(metrics.text()).toContain('kubeproxy_sync_proxy_rules_endpoint_changes_total 2')
  await told(aSlice('web', ['10.1.0.2']))
  expect(calls.length).toBe(2)
})

describe('FamilyPipeline compares with the kernel', () => {
  const MINUTE = 60_000

  /** What is called in so many minutes, with a change at each of these seconds of every minute. */
  async function callsWithin(minutes: number, stats: SyncStats, changesAt: readonly number[] = []) {
    const clock = new ManualClock()
    const node = aNodeView({ family: 4 })
    const calls: { kind: 'all' | 'changes'; minute: number }[] = []
    const call = (kind: 'all' | 'changes') => () => {
      calls.push({ kind, minute: Math.floor(clock.monotonicNow() / MINUTE) })
      return Promise.resolve(stats)
    }
    const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
    const pipeline = new FamilyPipeline({
      node,
      model,
      programmer: { sync: call('changes'), syncAll: call('all'), close() {} },
      metrics: createMetrics({ shown: [], build }),
      health: new ProxyHealth({ clock, timeoutMs: 1000 }),
      periods: { minMs: 0, maxMs: MINUTE, retryMs: 100, maxRetryMs: 1000 },
      clock,
      log: silentLogger,
      subscribers: [],
    })
    pipeline.start()
    for (let minute = 0; minute < minutes; minute++) {
      for (const second of changesAt) {
        clock.setTimeout(() => {
          model.setSlice(aSlice('web', [`10.1.${minute}.${second}`]))
          pipeline.changed()
        }, second * 1000)
      }
      await clock.advance(MINUTE)
    }
    return calls.filter(({ kind }) => kind === 'all').map(({ minute }) => minute)
  }

  it('once an hour', async () => {
    expect(await callsWithin(150, DONE)).toEqual([0, 60, 120])
  })

  it('each period while the rules of a service are refused', async () => {
    expect(await callsWithin(4, { ...DONE, refused: 1 })).toEqual([0, 1, 2, 3, 4])
  })

  it('half as often when changes leave no time for it', async () => {
    expect(await callsWithin(250, DONE, [10, 40])).toEqual([0, 120, 240])
    expect(await callsWithin(5, { ...DONE, refused: 1 }, [10, 40])).toEqual([0, 2, 4])
  })
})

test('stop() closes the programmer when rules that are being restored are in place, and not before', async () => {
  const node = aNodeView()
  const happened: string[] = []
  let finish: () => void = () => {}
  const programmer = {
    sync: () => Promise.resolve(DONE),
    syncAll: () => {
      happened.push('begun')
      return new Promise<SyncStats>((resolve) => {
        finish = () => {
          happened.push('restored')
          resolve(DONE)
        }
      })
    },
    close: () => void happened.push('closed'),
  }
  const pipeline = new FamilyPipeline({
    node,
    model: new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 }),
    programmer,
    metrics: createMetrics({ shown: [], build }),
    health: new ProxyHealth({ clock: systemClock, timeoutMs: 60_000 }),
    periods: { minMs: 0, maxMs: 60_000, retryMs: 1000, maxRetryMs: 1000 },
    clock: systemClock,
    log: silentLogger,
    subscribers: [],
  })
  pipeline.start()
  await new Promise((resolve) => setTimeout(resolve, 5))
  finish()
  await new Promise((resolve) => setTimeout(resolve, 5))
  pipeline.heal()
  await new Promise((resolve) => setTimeout(resolve, 70))
  const stopped = pipeline.stop()
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(happened).toEqual(['begun', 'restored', 'begun'])
  finish()
  await stopped
  expect(happened).toEqual(['begun', 'restored', 'begun', 'restored', 'closed'])
})

describe('a listener', () => {
  const object = { kind: 'Service', namespace: 'default', name: 'web', verb: 'set' } as const

  it('hears what came, what was done and how long it took; commands are formatted only meanwhile', async () => {
    const { pipeline, calls, endpoint, turn, clock, formatted } = open()
    pipeline.start()
    await turn()
    calls.shift()!.keep()
    await turn()
    const heard: RecordedChange[] = []
    pipeline.recorder.listen((change) => heard.push(change))
    pipeline.recorder.received(object)
    endpoint('web-1')
    await turn()
    await clock.advance(7)
    calls.shift()!.keep()
    await turn()
    expect(heard).toMatchObject([{ family: 4, why: 'event', objects: [object], operations: 3, bytes: 5 }])
    const { receivedMs, beganMs, doneMs } = heard[0]!
    expect(beganMs - receivedMs!).toBeGreaterThanOrEqual(0)
    expect(doneMs - beganMs).toBeGreaterThanOrEqual(7)
    pipeline.recorder.listen(undefined)
    endpoint('web-2')
    await turn()
    calls.shift()!.keep()
    await turn()
    expect(heard).toHaveLength(1)
    // Of the comparison, and of what was listened to.
    expect(formatted()).toBe(2)
  })

  it('hears why the kernel refused, and not of objects that change nothing', async () => {
    const { pipeline, calls, endpoint, turn } = open()
    pipeline.start()
    await turn()
    calls.shift()!.keep()
    await turn()
    const heard: RecordedChange[] = []
    pipeline.recorder.listen((change) => heard.push(change))
    pipeline.recorder.received({ ...object, name: 'of-the-other-family' })
    pipeline.changed()
    endpoint('web-1')
    await turn()
    calls.shift()!.break()
    await turn()
    expect(heard).toMatchObject([{ objects: [], error: 'refused', operations: 0 }])
  })
})

describe('what follows a sync fails', () => {
  const MINUTE = 60_000

  /** One of these fails, whichever: the programmer's own end, the flows, a subscriber, a listener, metrics. */
  function openFailing(broken: { name: string | undefined }) {
    const clock = new ManualClock()
    const node = aNodeView({ family: 4 })
    const metrics = createMetrics({ shown: [], build })
    const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
    const health = new ProxyHealth({ clock, timeoutMs: 1000 })
    const done: string[] = []
    const calls: string[] = []
    const step = (name: string) => {
      if (broken.name === name) throw new KernelError(name, 'ENOBUFS')
      done.push(name)
    }
    const sync = (full: boolean) => () => {
      calls.push(full ? 'all' : 'changes')
      return Promise.resolve(DONE)
    }
    const pipeline = new FamilyPipeline({
      node,
      model,
      programmer: {
        sync: sync(false),
        syncAll: sync(true),
        finish: () => Promise.resolve().then(() => step('cleanup')),
        close() {},
      },
      metrics,
      health,
      periods: { minMs: 0, maxMs: 2 * MINUTE, retryMs: 100, maxRetryMs: 1000 },
      clock,
      log: silentLogger,
      subscribers: [
        { name: 'udp_flows', follow: () => step('udp_flows') },
        { name: 'health_ports', follow: () => step('health_ports') },
        { name: 'rest', follow: () => step('rest') },
      ],
    })
    pipeline.recorder.listen(() => step('changes'))
    return { clock, model, pipeline, health, metrics, calls, done }
  }

  test.each(['cleanup', 'udp_flows', 'health_ports', 'rest', 'changes'])(
    '%s: the sync counts, the others follow it, and it is tried again without a sync',
    async (name) => {
      const broken = { name: undefined as string | undefined }
      const { clock, model, pipeline, health, metrics, calls, done } = openFailing(broken)
      pipeline.start()
      await clock.advance(10)
      broken.name = name
      done.length = 0
      model.setSlice(aSlice('web', ['10.1.0.1']))
      pipeline.changed()
      await clock.advance(10)
      const others = ['changes', 'cleanup', 'health_ports', 'rest', 'udp_flows'].filter((each) => each !== name)
      expect([...done].sort()).toEqual(others)
      expect(health.health().healthy).toBe(true)
      expect(metrics.transactions.with('IPv4', 'committed').value).toBe(2)
      expect(metrics.transactions.with('IPv4', 'refused').value).toBe(0)
      expect(metrics.subscriberBehind.with('IPv4', name).value).toBe(1)
      // Nothing is synced for it, and health stays what it is.
      await clock.advance(MINUTE)
      expect(calls).toEqual(['all', 'changes'])
      expect(health.health().healthy).toBe(true)
      broken.name = undefined
      done.length = 0
      await clock.advance(30_000)
      // What is only told is told with the next sync.
      if (name === 'changes') return
      expect(done).toEqual([name])
      expect(metrics.subscriberBehind.with('IPv4', name).value).toBe(0)
      expect(calls).toEqual(['all', 'changes'])
      await pipeline.stop()
    },
  )

  test('metrics that cannot be written are in the way of nothing', async () => {
    const { clock, model, pipeline, health, metrics, calls, done } = openFailing({ name: undefined })
    pipeline.start()
    await clock.advance(10)
    metrics.syncDuration.with = () => {
      throw new Error('no such metric')
    }
    done.length = 0
    model.setSlice(aSlice('web', ['10.1.0.1']))
    pipeline.changed()
    await clock.advance(MINUTE)
    expect([...done].sort()).toEqual(['changes', 'cleanup', 'health_ports', 'rest', 'udp_flows'])
    expect(calls).toEqual(['all', 'changes'])
    expect(health.health().healthy).toBe(true)
  })
})

test('what the kernel refused comes again, with what came meanwhile, and subscribers hear of it once', async () => {
  const clock = new ManualClock()
  const node = aNodeView({ family: 4 })
  const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  let isRefused = false
  const applied: Applied[] = []
  const sync = () => (isRefused ? Promise.reject(new Error('refused')) : Promise.resolve(DONE))
  const pipeline = new FamilyPipeline({
    node,
    model,
    programmer: { sync, syncAll: sync, close() {} },
    metrics: createMetrics({ shown: [], build }),
    health: new ProxyHealth({ clock, timeoutMs: 1000 }),
    periods: { minMs: 0, maxMs: 60_000, retryMs: 100, maxRetryMs: 1000 },
    clock,
    log: silentLogger,
    subscribers: [{ name: 'rest', follow: (each) => void applied.push(each) }],
  })
  const put = async (host: string) => {
    model.setService(service({ name: 'web', clusterIPs: ['10.96.0.1'] }))
    model.setSlice(aSlice('web', [host]))
    pipeline.changed()
    await clock.advance(10)
  }
  const namesOf = (views: Iterable<ServicePortView>) =>
    Array.from(views, ({ backends }) => [...backends].map(({ ip }) => ip).join())
  pipeline.start()
  await put('10.1.0.1')
  isRefused = true
  await put('10.1.0.2')
  await put('10.1.0.3')
  expect(applied).toHaveLength(1)
  expect(namesOf(pipeline.views())).toEqual(['10.1.0.1'])
  isRefused = false
  await clock.advance(2000)
  expect(applied).toHaveLength(2)
  const [change] = applied[1]!.changes
  expect(namesOf([change!.before!, change!.after!])).toEqual(['10.1.0.1', '10.1.0.3'])
  expect(applied[1]).toMatchObject({ cause: 'retry', isComparison: true })
  expect(namesOf(pipeline.views())).toEqual(['10.1.0.3'])
})
