import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { host32 } from '../lib/endian.ts'
import { type Bytes, type Family, asBytes, bytesOf } from '../lib/ip.ts'
import type { Frontend, Route, ServicePortView } from '../model/types.ts'
import { arbitraryView } from '../../test/support/arbitrary-views.ts'
import { aClusterIpView } from '../../test/support/cluster-ip-view.ts'
import {
  backendKey,
  CHOICE,
  choiceValue,
  frontendKey,
  IPPROTO,
  layouts,
  liveKey,
  type ListRange,
  STICKY,
} from './layout.ts'
import { chosenFrontends, ConnectPlan, type Elements, type MapChange } from './plan.ts'

const FAMILY: Family = 4
const EVERYONE = { pods: true, node: true }
const aView = (hosts: readonly string[]) => aClusterIpView('10.96.0.1', hosts)

/** All maps. */
class Kernel {
  readonly frontends = new Map<Bytes, Bytes>()
  readonly backends = new Map<Bytes, Bytes>()
  readonly live = new Map<Bytes, Bytes>()

  apply({ live, frontends, backends }: MapChange): void {
    this.#put(this.live, live.put)
    this.#put(this.backends, backends.put)
    this.#put(this.frontends, frontends.put)
    this.#delete(this.frontends, frontends.deleted)
    this.#delete(this.backends, backends.deleted)
    this.#delete(this.live, live.deleted)
    this.#expectLive()
  }

  /** What each frontend leads to, whatever the places and the numbers of lists. */
  meaning(): Record<string, readonly string[][]> {
    const entries = [...this.frontends].map(([key, value]) => [
      hex(key),
      rangesOf(value).map((each) => this.#list(each)),
    ])
    return Object.fromEntries(entries) as Record<string, readonly string[][]>
  }

  #list({ list, count }: ListRange): string[] {
    if (count === STICKY) return ['sticky']
    return Array.from({ length: count }, (_, i) =>
      hex(this.backends.get(backendKey(list, i + 1)) ?? asBytes('none')),
    ).sort()
  }

  #put(map: Map<Bytes, Bytes>, elements: Elements['put']): void {
    for (const [key, value] of elements) {
      map.set(key, value)
      this.#expectWhole()
    }
  }

  #delete(map: Map<Bytes, Bytes>, keys: readonly Bytes[]): void {
    for (const key of keys) {
      map.delete(key)
      this.#expectWhole()
    }
  }

  /** A flow of UDP may stay with each backend that can be chosen. */
  #expectLive(): void {
    for (const [key, value] of this.frontends) {
      if (key.charCodeAt(layouts[FAMILY].protocol) !== IPPROTO.UDP) continue
      for (const { list, count } of rangesOf(value)) {
        if (count === STICKY) continue
        for (let place = 1; place <= count; place++) {
          const live = asBytes(host32(list) + this.backends.get(backendKey(list, place))!)
          if (!this.live.has(live)) expect.fail(`place ${place} of list ${list} is not live`)
        }
      }
    }
  }

  /** Whoever looks, at any moment, finds a backend at each place that may be chosen. */
  #expectWhole(): void {
    for (const value of this.frontends.values()) {
      for (const { list, count } of rangesOf(value)) {
        if (count === STICKY) continue
        for (let place = 1; place <= count; place++) {
          if (!this.backends.has(backendKey(list, place))) expect.fail(`place ${place} of ${count} of list ${list}`)
        }
      }
    }
  }
}

const hex = (bytes: Bytes) => Buffer.from(bytes, 'latin1').toString('hex')

function rangesOf(value: Bytes): ListRange[] {
  const word = (at: number) => Buffer.from(value, 'latin1').readUInt32LE(at)
  return [
    { list: word(CHOICE.podsList), count: word(CHOICE.podsCount) },
    { list: word(CHOICE.nodeList), count: word(CHOICE.nodeCount) },
  ]
}

const key = frontendKey(FAMILY, { address: asBytes('\x0a\x60\0\x01'), port: 80, protocol: IPPROTO.TCP })

const views = (index: number) => fc.option(arbitraryView(FAMILY, index), { nil: undefined })

describe('ConnectPlan', () => {
  it('makes of changes, step by step, what it makes of all at once, and never leads to nothing meanwhile', () => {
    const states = fc.array(fc.tuple(views(0), views(1), views(2)), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(states, (steps) => {
        const kernel = new Kernel()
        const plan = new ConnectPlan(FAMILY, EVERYONE)
        let before: readonly (ServicePortView | undefined)[] = []
        for (const after of steps) {
          const changes = after.flatMap((view, i) =>
            view === before[i] ? [] : [{ name: `${i}`, before: before[i], after: view }],
          )
          kernel.apply(plan.plan(changes))
          before = after
        }
        const fresh = new Kernel()
        const other = new ConnectPlan(FAMILY, EVERYONE)
        const present = before.filter((view) => view !== undefined)
        fresh.apply(other.plan(present.map((after) => ({ name: after.name, before: undefined, after }))))
        expect(kernel.meaning()).toEqual(fresh.meaning())
        expect(kernel.backends.size).toBe(fresh.backends.size)
        expect(kernel.live.size).toBe(fresh.live.size)
        expect(plan.frontends).toBe(other.frontends)
      }),
    )
  })

  it('writes as little for one endpoint of many as of a few', () => {
    const hosts = Array.from({ length: 500 }, (_, i) => `10.1.${i >> 8}.${i & 0xff}`)
    const [before, after] = [aView(hosts), aView(hosts.filter((_, i) => i !== 7))]
    const plan = new ConnectPlan(FAMILY, EVERYONE)
    plan.plan([{ name: 'a', before: undefined, after: before }])
    const { backends, frontends } = plan.plan([{ name: 'a', before, after }])
    // The last backend at another place, and the number.
    expect(backends.put.map(([key]) => key)).toEqual([backendKey(1, 8)])
    expect(backends.deleted).toEqual([backendKey(1, 500)])
    const range = { list: 1, count: 499 }
    expect(frontends).toEqual({ put: [[key, choiceValue(range, range)]], deleted: [] })
  })

  it('says which backends flows of UDP may stay with, also with affinity', () => {
    const udp = (hosts: readonly string[], affinitySeconds?: number): ServicePortView => {
      const view = aView(hosts)
      const frontends = view.frontends.map((each) => ({ ...each, protocol: 'UDP' as const, affinitySeconds }))
      return { ...view, protocol: 'UDP', frontends }
    }
    for (const affinitySeconds of [undefined, 60]) {
      const plan = new ConnectPlan(FAMILY, EVERYONE)
      const before = udp(['10.1.0.1', '10.1.0.2'], affinitySeconds)
      const after = udp(['10.1.0.2', '10.1.0.3'], affinitySeconds)
      const keyOf = (last: number) => liveKey(1, bytesOf(10, 1, 0, last), 8080)
      const first = plan.plan([{ name: 'a', before: undefined, after: before }]).live
      expect(first.put.map(([each]) => each)).toEqual([keyOf(1), keyOf(2)])
      const { put, deleted } = plan.plan([{ name: 'a', before, after }]).live
      expect(put.map(([each]) => each)).toEqual([keyOf(3)])
      expect(deleted).toEqual([keyOf(1)])
    }
    expect(
      new ConnectPlan(FAMILY, EVERYONE).plan([{ name: 'a', before: undefined, after: aView(['10.1.0.1']) }]).live,
    ).toEqual({ put: [], deleted: [] })
  })

  it('lets an address pass from one service to another', () => {
    const [one, other] = [aView(['10.1.0.1', '10.1.0.2', '10.1.0.3']), aView(['10.1.0.9'])]
    const gone = { name: 'a', before: one, after: undefined }
    const came = { name: 'b', before: undefined, after: other }
    for (const changes of [
      [came, gone],
      [gone, came],
    ]) {
      const kernel = new Kernel()
      const plan = new ConnectPlan(FAMILY, EVERYONE)
      kernel.apply(plan.plan([{ name: 'a', before: undefined, after: one }]))
      kernel.apply(plan.plan(changes))
      expect(kernel.meaning()).toEqual({ [hex(key)]: [['0a0100091f900000'], ['0a0100091f900000']] })
      expect(kernel.backends.size).toBe(1)
    }
  })

  it('has no places for a list with affinity, and says when what was seen of it holds no longer', () => {
    const sticky = (hosts: readonly string[]): ServicePortView => {
      const view = aView(hosts)
      return { ...view, frontends: view.frontends.map((frontend) => ({ ...frontend, affinitySeconds: 60 })) }
    }
    const [before, after] = [sticky(['10.1.0.1', '10.1.0.2']), sticky(['10.1.0.2'])]
    const kernel = new Kernel()
    const plan = new ConnectPlan(FAMILY, EVERYONE)
    kernel.apply(plan.plan([{ name: 'a', before: undefined, after: before }]))
    expect(kernel.meaning()).toEqual({ [hex(key)]: [['sticky'], ['sticky']] })
    expect(kernel.backends.size).toBe(0)
    expect(plan.stickyList(1)).toEqual({ list: before.lists.Cluster, seconds: 60 })
    expect(plan.plan([{ name: 'a', before, after }]).forgotten).toEqual([1])
    expect(plan.stickyList(1)?.list).toBe(after.lists.Cluster)
    expect(plan.plan([{ name: 'a', before: after, after: undefined }]).forgotten).toEqual([1])
    expect(plan.stickyList(1)).toBeUndefined()
  })

  it('has the addresses of the node on which node ports are open', () => {
    const plan = new ConnectPlan(FAMILY, EVERYONE)
    expect(
      plan.planNodeAddresses(['10.0.0.1', '127.0.0.1']).put.map(([key, value]) => hex(key) + hex(value)[1]),
    ).toEqual(['0a000001000000000', '7f000001000000001'])
    const { put, deleted } = plan.planNodeAddresses(['10.0.0.2', '127.0.0.1'])
    expect(put.map(([key]) => hex(key))).toEqual(['0a00000200000000'])
    expect(deleted.map(hex)).toEqual(['0a00000100000000'])
  })
})

describe('chosenFrontends()', () => {
  const plain = aView(['10.1.0.1'])
  const first = plain.frontends[0]!
  const withFrontend = (change: Partial<Frontend>): ServicePortView => ({
    ...plain,
    frontends: [{ ...first, ...change }],
  })
  const masqueraded: Route = { ...first.fromPods, masquerade: true }
  const rejected: Route = { verdict: { kind: 'reject', reason: 'has no endpoints' }, masquerade: false }

  const chosen = (view: ServicePortView, choosers = EVERYONE) =>
    chosenFrontends(FAMILY, view, choosers).map(({ forPods, forNode }) => [forPods, forNode])

  it('takes a cluster IP', () => {
    expect(chosen(plain)).toEqual([['Cluster', 'Cluster']])
    // The node's own connections are masqueraded to an address that they have anyway.
    expect(chosen(withFrontend({ fromNode: masqueraded }))).toEqual([['Cluster', 'Cluster']])
    expect(chosen(plain, { pods: false, node: true })).toEqual([[undefined, 'Cluster']])
  })

  it.each<[string, Partial<Frontend>]>([
    ['an external IP', { kind: 'externalIP', fromPods: masqueraded, fromNode: masqueraded }],
    ['a load-balancer IP', { kind: 'loadBalancerIP', fromPods: masqueraded, fromNode: masqueraded }],
    ['a node port', { kind: 'nodePort', address: undefined, fromPods: masqueraded, fromNode: masqueraded }],
  ])('takes %s', (_, change) => {
    expect(chosen(withFrontend(change))).toEqual([['Cluster', 'Cluster']])
  })

  it('knows that pods and the node may get different lists, or none', () => {
    const dropped: Route = { verdict: { kind: 'drop', reason: 'has no local endpoints' }, masquerade: false }
    expect(chosen(withFrontend({ fromPods: dropped }))).toEqual([[undefined, 'Cluster']])
    expect(chosen(withFrontend({ fromPods: masqueraded }))).toEqual([[undefined, 'Cluster']])
  })

  it.each<[string, ServicePortView]>([
    ['SCTP', { ...plain, protocol: 'SCTP' }],
    ['retries', { ...plain, connectRetry: true }],
    ['source ranges', withFrontend({ allowedSources: [] })],
    ['an endpoint that is loopback', aView(['10.1.0.1', '127.0.0.1'])],
    ['a link-local endpoint', aView(['169.254.169.254'])],
    ['an endpoint that is multicast', aView(['224.0.0.1'])],
    ['no endpoints', withFrontend({ fromPods: rejected, fromNode: rejected })],
  ])('leaves %s to the rules', (_, view) => {
    expect(chosen(view)).toEqual([])
  })
})
