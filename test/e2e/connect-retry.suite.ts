// A dead endpoint is not what the client sees: with real packets, in one mode.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Family } from '../../src/lib/ip.ts'
import { node } from '../support/addresses.ts'
import { aService, anExternalIp, aSlice, type ApiService, type ServiceWish } from '../support/builders.ts'
import { Cleanup } from '../support/cleanup.ts'
import { eventually } from '../support/eventually.ts'
import { FailingAddresses, type Fate } from '../support/netns/failing-addresses.ts'
import { tcpProbe, type Answer, type Target } from '../support/netns/probe.ts'
import { patience } from '../support/patience.ts'
import { startProxy, type ProxyProcess, type ProxyRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { Netns } from '../support/netns/netns.ts'

/** What a test of retries has at hand. */
export class RetryRig {
  readonly rig: Rig
  readonly failing: FailingAddresses
  readonly proxy: () => ProxyProcess

  constructor(rig: Rig, proxy: () => ProxyProcess) {
    this.rig = rig
    this.proxy = proxy
    this.failing = new FailingAddresses(rig.network.pods.localC)
  }

  /** A service with so many endpoints, the first of which fail. Its endpoints are no other service's. */
  async serve(wish: ServiceWish & { fates?: readonly (Fate | 'none')[]; healthy?: number; annotation?: string }) {
    const { fates = [], healthy = 0, annotation, ...rest } = wish
    const service = aService(rest)
    const family: Family = service.spec.ipFamilies[0] === 'IPv6' ? 6 : 4
    const addresses = Array.from({ length: fates.length + healthy }, () => anAddress(family))
    for (const [i, fate] of fates.entries()) if (fate !== 'none') this.failing.set(addresses[i]!, fate)
    const slice = aSlice(
      service,
      addresses.map((address) => ({ address, nodeName: node.name })),
    )
    if (annotation !== undefined)
      service.metadata.annotations = { 'service.kube-proxy-ts.io/connect-retry': annotation }
    this.rig.cluster.put(service, slice)
    await this.rig.settled()
    return { service, slice, addresses, target: clusterIpOf(service) }
  }

  async metric(name: string): Promise<number> {
    const page = (await this.proxy().ask('/metrics'))?.body ?? ''
    return page
      .split('\n')
      .filter((line) => line.startsWith(name))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
}

export function clusterIpOf(service: ApiService): Target {
  return { address: service.spec.clusterIP, port: service.spec.ports[0]?.port ?? 0 }
}

let addresses = 0
function anAddress(family: Family): string {
  const n = ++addresses
  return family === 4 ? `10.1.2.${n}` : `fd01:0:0:c::${n.toString(16)}`
}

/** How long it took, too. */
export async function timed(probe: Promise<Answer>): Promise<{ answer: Answer; ms: number }> {
  const startedMs = performance.now()
  return { answer: await probe, ms: performance.now() - startedMs }
}

/** One after the other. */
export async function connectTimes(times: number, from: Netns, to: Target): Promise<Answer['kind'][]> {
  const kinds: Answer['kind'][] = []
  for (let i = 0; i < times; i++) kinds.push((await tcpProbe(from, to, patient())).kind)
  return kinds
}

/** A client that goes on for as long as TCP does: three SYNs more, or four. */
export function patient(): { readonly timeoutMs: number } {
  return { timeoutMs: 12_000 * patience() }
}

/** A client that is refused before its kernel has sent a second SYN; the fastest of some, for a busy machine may be late. */
export async function refusesAtOnce(from: Netns, to: Target): Promise<string | undefined> {
  const results = []
  for (let i = 0; i < 3; i++) results.push(await timed(tcpProbe(from, to, patient())))
  const fastest = results.reduce((a, b) => (a.ms < b.ms ? a : b))
  if (fastest.answer.kind !== 'refused') return `it is ${fastest.answer.kind}`
  return fastest.ms < 900 ? undefined : `it took ${Math.round(fastest.ms)} ms`
}

export const manyAnswered = (times: number): Answer['kind'][] => Array.from({ length: times }, () => 'answered')

export interface RetryCase {
  readonly source: 'localPod' | 'node' | 'external'
  readonly family: Family
  readonly fate: Fate
}

const sources = ['localPod', 'node', 'external'] as const
const everyFate = ['refuse', 'hang', 'unreachable'] as const

/** Each source meets each fate over IPv4, and one over IPv6, whose table is made of the same rules. */
export const everyCase: readonly RetryCase[] = sources.flatMap((source, i) => [
  ...everyFate.map((fate) => ({ source, family: 4 as const, fate })),
  { source, family: 6, fate: everyFate[i]! },
])

/** Each source, each family and each fate, for modes in which the same table does the same. */
export const fewerCases: readonly RetryCase[] = sources.map((source, i) => ({
  source,
  family: i === 1 ? 6 : 4,
  fate: everyFate[i]!,
}))

export interface RigOptions extends ProxyRun {
  /** Before the proxy starts. */
  readonly prepare?: (node: Netns) => void
}

export interface RetryTestOptions extends RigOptions {
  readonly cases?: readonly RetryCase[]
  /** How many of four endpoints are dead. Before they are ejected, a client may meet no more than three. */
  readonly dead?: 1 | 2
  /** The cases alone. */
  readonly only?: 'cases'
}

/** A proxy with retries for the tests of a file, from its start to its end. */
export function openRetryRig(mode: ModeName, { prepare, ...run }: RigOptions = {}): () => RetryRig {
  const cleanup = new Cleanup()
  let retry: RetryRig
  beforeAll(async () => {
    const rig = cleanup.use(await openRig())
    prepare?.(rig.network.node)
    const args = ['--connect-retry', '--nodeport-addresses=primary']
    const { kubeconfig } = rig.cluster
    const proxy = cleanup.use(await startProxy({ netns: rig.network.node, mode, kubeconfig, args, ...run }))
    retry = new RetryRig(rig, () => proxy)
  })
  afterAll(() => cleanup[Symbol.asyncDispose]())
  return () => retry
}

/** What every mode keeps whose connections the kernel carries. */
export function testConnectRetry(mode: ModeName, options: RetryTestOptions = {}): () => RetryRig {
  const { cases = everyCase, dead = 2, only, ...run } = options
  const rigOf = openRetryRig(mode, run)
  let retry: RetryRig
  beforeAll(() => void (retry = rigOf()))

  describe.concurrent('no client sees a dead endpoint', () => {
    test.for(cases)('of IPv$family that it meets from $source: $fate', async ({ source, family, fate }) => {
      const fates = Array.from({ length: dead }, () => fate)
      const outside = source === 'external'
      const balancer = anExternalIp(family)
      const { service, target } = await retry.serve({
        families: [family],
        fates,
        healthy: 4 - dead,
        ...(outside ? { type: 'LoadBalancer', ingress: [{ ip: balancer, ipMode: 'VIP' }] } : {}),
      })
      const from = retry.rig.network.sources[source]
      const nodePort = { address: node.ip[family], port: service.spec.ports[0]?.nodePort ?? 0 }
      const targets = outside ? [nodePort, { address: balancer, port: 80 }] : [target]
      for (const to of targets) expect(await connectTimes(12, from, to)).toEqual(manyAnswered(12))
    })
  })

  if (only === 'cases') return rigOf

  test('clients of a service whose endpoints all refuse are told so within 4 s', async () => {
    const { target } = await retry.serve({ fates: Array.from({ length: 6 }, () => 'refuse' as const) })
    for (let i = 0; i < 2; i++) {
      const { answer, ms } = await timed(tcpProbe(retry.rig.network.sources.localPod, target, patient()))
      expect(answer).toEqual({ kind: 'refused' })
      expect(ms).toBeLessThan(4000 * patience())
    }
  })

  test('a service with one endpoint refuses at once', async () => {
    const { target } = await retry.serve({ fates: ['refuse'] })
    expect(await refusesAtOnce(retry.rig.network.sources.localPod, target)).toBeUndefined()
  })

  test('a client with affinity moves when its endpoint is ejected, and stays where it moved to', async () => {
    const { target, addresses: all } = await retry.serve({ healthy: 3, spec: { sessionAffinity: 'ClientIP' } })
    const from = retry.rig.network.sources.localPod
    const first = await tcpProbe(from, target, patient())
    const at = first.kind === 'answered' ? hostOf(first.greeting.at) : first.kind
    expect(all).toContain(at)
    retry.failing.set(at, 'refuse')
    const where = new Set<string>()
    for (let i = 0; i < 8; i++) {
      const answer = await tcpProbe(from, target, patient())
      where.add(answer.kind === 'answered' ? hostOf(answer.greeting.at) : answer.kind)
    }
    expect(where.size).toBe(1)
    expect([...where][0]).not.toBe(at)
    expect(all).toContain([...where][0])
    retry.failing.clear(at, 'refuse')
  })

  test('an endpoint that answers again gets connections again', async () => {
    const { target, addresses: all } = await retry.serve({ fates: ['refuse'], healthy: 1 })
    const from = retry.rig.network.sources.localPod
    const ejected = await retry.metric('kubeproxyts_connect_retry_ejected_total')
    await eventually('it is ejected', async () => {
      expect(await connectTimes(1, from, target)).toEqual(['answered'])
      return (await retry.metric('kubeproxyts_connect_retry_ejected_total')) > ejected ? undefined : 'not yet'
    })
    const returned = await retry.metric('kubeproxyts_connect_retry_returned_total')
    retry.failing.clear(all[0]!, 'refuse')
    await eventually(
      'it is back',
      async () => {
        const answer = await tcpProbe(from, target, patient())
        return answer.kind === 'answered' && hostOf(answer.greeting.at) === all[0] ? undefined : 'not yet'
      },
      { withinMs: 8000 },
    )
    expect(await retry.metric('kubeproxyts_connect_retry_returned_total')).toBeGreaterThan(returned)
  })
  return rigOf
}

/** Of `address:port`. */
export function hostOf(at: string): string {
  return at.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
}
