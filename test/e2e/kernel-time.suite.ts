// The largest objects that etcd takes, one for each field that repeats: they come, change in one place and go. Whatever they ask of
// the kernel, the proxy answers meanwhile, another Service follows, and the kernel's own watchdog says nothing.

import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aClusterIp, aName, aNode, anEndpoint, aService, aSlice, type ApiObject } from '../support/builders.ts'
import { Cleanup } from '../support/cleanup.ts'
import { HealthPoller } from '../support/netns/health-poller.ts'
import { patience } from '../support/patience.ts'
import { startProxy, type ProxyProcess, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import type { ModeName } from '../conformance/modes.ts'

const many = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i))
/** Far enough from each other not to be merged. */
const address = (first: number, i: number) => `${first}.${i >> 15}.${(i >> 7) & 255}.${(i << 1) & 255}`

interface Giant {
  readonly field: string
  /** Its objects, first as they come, then changed in one place. */
  readonly objects: (round: 0 | 1) => readonly ApiObject[]
  /** What stays is put back rather than deleted. */
  readonly after?: () => readonly ApiObject[]
}

function giants(): Giant[] {
  const base = { name: aName('giant'), clusterIPs: [aClusterIp(4)] }
  const ofOneBackend = (wish: Parameters<typeof aService>[0]) => (round: 0 | 1) => {
    const service = aService({ ...base, ...wish })
    return [service, aSlice(service, ['localB'], { name: base.name })].slice(0, round === 0 ? 2 : 1)
  }
  const changed = <T>(list: T[], round: 0 | 1, other: T) => (round === 0 ? list : list.with(list.length >> 1, other))
  const ranges = many(80_000, (i) => `${address(20, i * 16)}/28`)
  const ips = many(100_000, (i) => address(30, i))
  const backends = many(30_000, (i) => anEndpoint({ address: address(40, i), nodeName: 'node-b' }, 4))
  const ports = many(40_000, (i) => ({ name: `p${i}`, port: i + 1, targetPort: 8080 }))
  return [
    {
      field: 'source ranges',
      objects: (round) =>
        ofOneBackend({
          type: 'LoadBalancer',
          ports: [{ nodePort: 29_000 }],
          ingress: [{ ip: '10.4.200.1' }],
          spec: { loadBalancerSourceRanges: changed(ranges, round, '90.0.0.0/24') },
        })(round),
    },
    {
      field: 'external IPs',
      objects: (round) => ofOneBackend({ spec: { externalIPs: changed(ips, round, '90.0.0.1') } })(round),
    },
    {
      field: 'load-balancer IPs',
      objects: (round) =>
        ofOneBackend({
          type: 'LoadBalancer',
          ports: [{ nodePort: 29_000 }],
          ingress: changed(ips.slice(0, 70_000), round, '90.0.0.1').map((ip) => ({ ip })),
        })(round),
    },
    {
      field: 'ports',
      objects: (round) => {
        const service = aService({
          ...base,
          ports: changed(ports, round, { name: 'other', port: 65_000, targetPort: 8080 }),
        })
        const slice = aSlice(service, ['localB'], { name: base.name })
        return [service, slice]
      },
    },
    {
      field: 'ports with affinity',
      objects: (round) => {
        const sticky = ports.slice(0, 5000)
        const service = aService({
          ...base,
          ports: changed(sticky, round, { name: 'other', port: 65_000, targetPort: 8080 }),
          spec: { sessionAffinity: 'ClientIP' },
        })
        return [service, aSlice(service, ['localB'], { name: base.name })]
      },
    },
    {
      field: 'frontends with a hash',
      objects: (round) => {
        const service = aService({
          ...base,
          annotations: { 'service.kube-proxy-ts.io/balance': 'hash-client' },
          ports: ports.slice(0, 10),
          spec: { externalIPs: ips.slice(0, 5) },
        })
        return [service, aSlice(service, round === 0 ? ['localA', 'localB'] : ['localB'], { name: base.name })]
      },
    },
    {
      field: 'endpoints with least connections',
      objects: (round) => {
        const service = aService({
          ...base,
          annotations: { 'service.kube-proxy-ts.io/balance': 'least-connections' },
          ports: ports.slice(0, 10),
        })
        const slice = aSlice(service, [], { name: base.name })
        slice.endpoints = changed(
          backends.slice(0, 20_000),
          round,
          anEndpoint({ address: '90.0.0.1', nodeName: 'node-b' }, 4),
        )
        return [service, slice]
      },
    },
    {
      field: 'endpoints',
      objects: (round) => {
        const service = aService(base)
        const slice = aSlice(service, [], { name: base.name })
        slice.endpoints = changed(backends, round, anEndpoint({ address: '90.0.0.1', nodeName: 'node-b' }, 4))
        return [service, slice]
      },
    },
    {
      field: 'node addresses',
      objects: (round) => {
        const self = aNode()
        const more = changed(ips.slice(0, 40_000), round, '90.0.0.1').map((ip) => ({ type: 'InternalIP', address: ip }))
        self.status.addresses.push(...more)
        return [self]
      },
      after: () => [aNode()],
    },
  ]
}

/** On an idle machine: how long a system call of the main thread may last, an answer of /livez, and the wait of another Service. */
interface Limits {
  readonly callMs: number
  readonly answerMs: number
  readonly followsMs: number
}

const LIMITS: Limits = { callMs: 50, answerMs: 250, followsMs: 1000 }
/** Half a million elements of the kernel are more than a second's work, and a plan of a hundred thousand frontends takes its time. */
const MULTIPLIED: Limits = { ...LIMITS, answerMs: 1000, followsMs: 3000 }
const FIELD_LIMITS: Readonly<Record<string, Limits>> = {
  'external IPs': MULTIPLIED,
  'load-balancer IPs': MULTIPLIED,
  ports: MULTIPLIED,
  'ports with affinity': MULTIPLIED,
  'frontends with a hash': MULTIPLIED,
  'endpoints with least connections': MULTIPLIED,
}
/** iptables-restore is another process, and reads all rules of a chain again when one of them changes. */
const OTHER_PROGRAM: Limits = { ...LIMITS, answerMs: 1000, followsMs: 10_000 }
/** All parts of a change are one turn there. */
const IN_ONE_TURN: Limits = { ...LIMITS, answerMs: 1000 }

/**
 * These tests keep the kernel busy for seconds, beside other tests that do. The load tells how many programs share the processors, and
 * not what a User Mode Linux among them costs: up to 1.3 times more was measured.
 */
function stretch(): number {
  return 1.6 * patience()
}

function limitsOf(mode: ModeName, field: string): Limits {
  if (mode === 'nftables') return FIELD_LIMITS[field] ?? LIMITS
  return mode === 'iptables' ? OTHER_PROGRAM : IN_ONE_TURN
}

export function keepsTime(mode: ModeName, fields?: readonly string[]): void {
  const reason = whyNotRun(mode)
  if (reason !== undefined) {
    test('the largest objects', ({ skip }) => skip(reason))
    return
  }
  const cleanup = new Cleanup()
  let rig: Rig
  let proxy: ProxyProcess
  let poller: HealthPoller

  beforeAll(async () => {
    rig = cleanup.use(await openRig())
    proxy = cleanup.use(await startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig }))
    await rig.settled()
    poller = cleanup.use(new HealthPoller(rig.network.node))
  })
  afterAll(() => cleanup[Symbol.asyncDispose]())

  const chosen = giants().filter(({ field }) => fields?.includes(field) !== false)
  test.each(chosen)('$field: a giant comes, changes in one place and goes', async ({ field, objects, after }) => {
    const limits = limitsOf(mode, field)
    const steps = {
      comes: () => rig.cluster.put(...objects(0)),
      changes: () => rig.cluster.put(...objects(1)),
      goes: () => (after === undefined ? rig.cluster.remove(...objects(0)) : rig.cluster.put(...after())),
    }
    for (const [step, act] of Object.entries(steps)) {
      poller.take()
      let busiest = stretch()
      act()
      const startMs = performance.now()
      await rig.settled(20_000)
      const followedMs = performance.now() - startMs
      busiest = Math.max(busiest, stretch())
      expect(followedMs, `another Service when it ${step}`).toBeLessThan(limits.followsMs * busiest)
      expect(Math.max(0, ...poller.take()), `/livez when it ${step}`).toBeLessThan(limits.answerMs * busiest)
    }
    const answer = await proxy.ask('/metrics')
    const call = /^kubeproxyts_longest_system_call_seconds (\S+)$/m.exec(answer?.body ?? '')?.[1]
    expect(Number(call) * 1000, 'the longest system call').toBeLessThan(limits.callMs * stretch())
    expect(lockupsOf(proxy.pid)).toEqual([])
  })
}

/** The kernel's log is that of the whole machine, and names the process that it had to wait for. */
function lockupsOf(pid: number): string[] {
  const log = execFileSync('dmesg', { encoding: 'utf8', maxBuffer: 1 << 28 })
  return log.split('\n').filter((line) => line.includes('soft lockup') && line.includes(`:${pid}]`))
}
