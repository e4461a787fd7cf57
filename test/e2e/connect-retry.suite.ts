// A dead endpoint is not what the client sees: with real packets, in one mode.

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { joinHostPort, type Family } from '../../src/lib/ip.ts'
import { node } from '../support/addresses.ts'
import { aService, anExternalIp, aSlice, type ApiService, type ServiceWish } from '../support/builders.ts'
import { Cleanup } from '../support/cleanup.ts'
import { eventually } from '../support/eventually.ts'
import { FailingAddresses, type Fate } from '../support/netns/failing-addresses.ts'
import { tcpProbe, type Answer, type Target } from '../support/netns/probe.ts'
import { patience } from '../support/patience.ts'
import { proxyCommand, startProxy, type ProxyProcess, type ProxyRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { Netns } from '../support/netns/netns.ts'

/** What a test of retries has at hand. */
export class RetryRig {
  readonly rig: Rig
  readonly failing: FailingAddresses
  readonly proxy: () => ProxyProcess
  readonly #control: readonly string[]

  constructor(rig: Rig, proxy: () => ProxyProcess, control: readonly string[]) {
    this.rig = rig
    this.#control = control
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

  async isEjected(address: string): Promise<boolean> {
    return ((await this.proxy().ask('/statusz'))?.body ?? '').includes(`${joinHostPort(address, 8080)} ejected`)
  }

  /** What `kube-proxy explain` says on the node. */
  explain({ address, port }: Target): string {
    const [program = '', ...rest] = proxyCommand()
    return this.rig.network.node.run(program, [...rest, 'explain', 'node', `${address}:${port}`, ...this.#control])
  }

  /** The endpoint that a pod of this node is led to, or what becomes of it. */
  async whereTo(target: Target): Promise<string> {
    const answer = await tcpProbe(this.rig.network.sources.localPod, target, patient())
    return answer.kind === 'answered' ? hostOf(answer.greeting.at) : answer.kind
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

/** All at the same time. */
export async function connectAtOnce(times: number, from: Netns, to: Target): Promise<Answer['kind'][]> {
  const answers = await Promise.all(Array.from({ length: times }, () => tcpProbe(from, to, patient())))
  return answers.map(({ kind }) => kind)
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

/** Each source over each family, and each fate twice, for modes in which the same table does the same. */
export const fewerCases: readonly RetryCase[] = sources.flatMap((source, i) => [
  { source, family: 4, fate: everyFate[i]! },
  { source, family: 6, fate: everyFate[(i + 1) % 3]! },
])

export interface RigOptions extends ProxyRun {
  /** Before the proxy starts. */
  readonly prepare?: (node: Netns) => void
  /** What the operator says; unless given, that connections of all services are tried again. */
  readonly flags?: readonly string[]
}

export interface RetryTestOptions extends RigOptions {
  readonly cases?: readonly RetryCase[]
  /** How many of four endpoints are dead. Before they are ejected, a client may meet no more than three. */
  readonly dead?: 1 | 2
}

/** A proxy with retries for the tests of a file, from its start to its end. */
export function openRetryRig(
  mode: ModeName,
  { prepare, flags = ['--connect-retry'], ...run }: RigOptions = {},
): () => RetryRig {
  const cleanup = new Cleanup()
  let retry: RetryRig
  beforeAll(async () => {
    const rig = cleanup.use(await openRig())
    prepare?.(rig.network.node)
    const { kubeconfig, folder } = rig.cluster
    const control = [`--control-socket=${join(folder, 'control.sock')}`]
    const args = [...flags, '--nodeport-addresses=primary', ...control]
    const proxy = cleanup.use(await startProxy({ netns: rig.network.node, mode, kubeconfig, args, ...run }))
    retry = new RetryRig(rig, () => proxy, control)
  })
  afterAll(() => cleanup[Symbol.asyncDispose]())
  return () => retry
}

/** What every mode keeps whose connections the kernel carries. */
export function testConnectRetry(mode: ModeName, options: RetryTestOptions = {}): () => RetryRig {
  const { cases = everyCase, dead = 2, ...run } = options
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

  describe.concurrent('at the same time', () => {
    testRefusals(rigOf)
    testHalf(rigOf)
    testEjections(rigOf, 'kubeproxyts_connect_retry_retried_total')
  })
  return rigOf
}

/** What clients are told when there is no other endpoint, in a mode whose kernel tries again. */
function testRefusals(retry: () => RetryRig): void {
  const localPod = () => retry().rig.network.sources.localPod

  test('clients of a service whose endpoints all refuse are reported so within 4 s', async () => {
    const { target } = await retry().serve({ fates: Array.from({ length: 6 }, () => 'refuse' as const) })
    for (let i = 0; i < 2; i++) {
      const { answer, ms } = await timed(tcpProbe(localPod(), target, patient()))
      expect(answer).toEqual({ kind: 'refused' })
      expect(ms).toBeLessThan(4000 * patience())
    }
  })

  test('a service with one endpoint refuses at once', async () => {
    const { target } = await retry().serve({ fates: ['refuse'] })
    expect(await refusesAtOnce(localPod(), target)).toBeUndefined()
  })
}

/** Half of a list stays in it. (A mode that tries again itself leaves those alone, too, that failed a moment ago.) */
function testHalf(retry: () => RetryRig): void {
  const localPod = () => retry().rig.network.sources.localPod

  test.for([
    { dead: 3, healthy: 1, stay: 1 },
    { dead: 4, healthy: 1, stay: 2 },
  ])('of $dead dead endpoints and $healthy other, $stay dead stay in the list', async ({ dead, healthy, stay }) => {
    const fates = Array.from({ length: dead }, () => 'refuse' as const)
    const { target, addresses: all } = await retry().serve({ fates, healthy })
    const doomed = all.slice(0, dead)
    await eventually(
      'all are found out',
      async () => {
        await connectAtOnce(4, localPod(), target)
        const found = await Promise.all(doomed.map((address) => retry().isEjected(address)))
        return found.includes(false) ? 'not yet' : undefined
      },
      { withinMs: 20_000 },
    )
    // The others meet this node's probes alone: after one, two and four seconds, and so on.
    await eventually('as many as must still get connections', async () => {
      const count = () => doomed.map((address) => retry().failing.attempts('refuse').get(address) ?? 0)
      const before = count()
      await connectAtOnce(30, localPod(), target)
      const met = count().map((now, i) => now - before[i]!)
      return met.filter((times) => times >= 5).length === stay ? undefined : `SYNs: ${met.join(', ')}`
    })
  })
}

/** What becomes of clients and endpoints, in every mode. */
export function testEjections(retry: () => RetryRig, retried: string): void {
  test('a client with affinity moves when its endpoint is ejected, and stays where it moved to', async () => {
    const { target, addresses: all } = await retry().serve({ healthy: 3, spec: { sessionAffinity: 'ClientIP' } })
    const at = await retry().whereTo(target)
    expect(all).toContain(at)
    retry().failing.set(at, 'refuse')
    const where = new Set<string>()
    for (let i = 0; i < 8; i++) where.add(await retry().whereTo(target))
    expect(where.size).toBe(1)
    expect([...where][0]).not.toBe(at)
    expect(all).toContain([...where][0])
    // It is remembered again: the old one is back, and the client stays.
    await eventually('it is ejected', async () => ((await retry().isEjected(at)) ? undefined : 'not yet'))
    retry().failing.clear(at, 'refuse')
    await eventually('it is back', async () => ((await retry().isEjected(at)) ? 'not yet' : undefined), {
      withinMs: 8000,
    })
    for (let i = 0; i < 4; i++) where.add(await retry().whereTo(target))
    expect(where.size).toBe(1)
  })

  test('an endpoint that answers again gets connections again, and Events, metrics and the log tell of it', async () => {
    const { service, target, addresses: all } = await retry().serve({ fates: ['refuse'], healthy: 2 })
    const [dead = ''] = all
    const counted = (what: string) => retry().metric(`kubeproxyts_connect_retry_${what}{`)
    const [ejected, returned] = [await counted('ejected_total'), await counted('returned_total')]
    await eventually('it is ejected', async () => {
      await retry().whereTo(target)
      return (await retry().isEjected(dead)) ? undefined : 'not yet'
    })
    expect(await counted('ejected_total')).toBeGreaterThan(ejected)
    expect(retry().explain(target)).toMatch(new RegExp(`${dead}.*ejected`))
    expect(await counted('ejected_backends')).toBeGreaterThan(0)
    expect(await counted('suspected_total')).toBeGreaterThan(0)
    expect(await retry().metric(`${retried}{`)).toBeGreaterThan(0)
    retry().failing.clear(dead, 'refuse')
    await eventually('it is back', async () => ((await retry().whereTo(target)) === dead ? undefined : 'not yet'), {
      withinMs: 8000,
    })
    expect(await counted('returned_total')).toBeGreaterThan(returned)
    const eventsOf = (reason: string) =>
      retry()
        .rig.cluster.server.requests.filter(({ method, path }) => method === 'POST' && path.includes('/events'))
        .filter(({ body }) => body.includes(reason) && body.includes(`${dead}:8080 (default/${service.metadata.name})`))
    for (const reason of ['BackendEjected', 'BackendReturned'])
      await eventually(`an Event ${reason}`, () => (eventsOf(reason).length > 0 ? undefined : 'not yet'))
    // Those who write EndpointSlices are not to read what this node can connect to.
    const isAbout = [...eventsOf('BackendEjected'), ...eventsOf('BackendReturned')].map(
      ({ body }) => /"kind":"(Node|Service)"/.exec(body)?.[1],
    )
    expect(new Set(isAbout)).toEqual(new Set(['Node']))
    for (const line of ['A backend is ejected', 'A backend is back']) expect(retry().proxy().log()).toContain(line)
  })
}

/** Of `address:port`. */
export function hostOf(at: string): string {
  return at.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
}
