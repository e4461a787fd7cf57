import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bytes, type Family, asBytes } from '../lib/ip.ts'
import type { Frontend, Route, ServicePortView } from '../model/types.ts'
import { arbitraryView } from '../../test/support/arbitrary-views.ts'
import { aClusterIpView } from '../../test/support/cluster-ip-view.ts'
import { countValue, keyOf, layouts } from './layout.ts'
import { chosenFrontends, ConnectPlan, type MapChange } from './plan.ts'

const FAMILY: Family = 4
const aView = (hosts: readonly string[]) => aClusterIpView('10.96.0.1', hosts)

function apply(map: Map<Bytes, Bytes>, { put, deleted }: MapChange): void {
  for (const [key, value] of put) {
    map.set(key, value)
    expectWhole(map)
  }
  for (const key of deleted) map.delete(key)
  expectWhole(map)
}

/** Whoever looks, at any moment, finds a backend at each place that may be chosen. */
function expectWhole(map: ReadonlyMap<Bytes, Bytes>): void {
  for (const [key, value] of map) {
    const frontend = key.slice(0, layouts[FAMILY].place)
    if (key !== frontend + '\0\0') continue
    const count = Buffer.from(value, 'latin1').readUInt32LE()
    for (let place = 1; place <= count; place++) {
      expect(
        map.has(asBytes(frontend + String.fromCharCode(place & 0xff, place >> 8))),
        `place ${place} of ${count}`,
      ).toBe(true)
    }
  }
}

/** What each frontend leads to, whatever the places. */
function meaning(map: ReadonlyMap<Bytes, Bytes>): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  for (const [key, value] of map) {
    const name = Buffer.from(key.slice(0, layouts[FAMILY].place), 'latin1').toString('hex')
    const isCount = key.endsWith('\0\0')
    const list = (found[name] ??= [])
    list.push((isCount ? 'count ' : '') + Buffer.from(value, 'latin1').toString('hex'))
  }
  for (const list of Object.values(found)) list.sort()
  return found
}

const views = (index: number) => fc.option(arbitraryView(FAMILY, index), { nil: undefined })

describe('ConnectPlan', () => {
  it('makes of changes, step by step, what it makes of all at once, and never leads to nothing meanwhile', () => {
    const states = fc.array(fc.tuple(views(0), views(1), views(2)), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(states, (steps) => {
        const map = new Map<Bytes, Bytes>()
        const plan = new ConnectPlan(FAMILY)
        let before: readonly (ServicePortView | undefined)[] = []
        for (const after of steps) {
          const changes = after.flatMap((view, i) =>
            view === before[i] ? [] : [{ name: `${i}`, before: before[i], after: view }],
          )
          apply(map, plan.plan(changes))
          before = after
        }
        const fresh = new Map<Bytes, Bytes>()
        const other = new ConnectPlan(FAMILY)
        const present = before.filter((view) => view !== undefined)
        apply(fresh, other.plan(present.map((after) => ({ name: after.name, before: undefined, after }))))
        expect(meaning(map)).toEqual(meaning(fresh))
        expect(plan.frontends).toBe(other.frontends)
      }),
    )
  })

  it('writes as little for one endpoint of many as of a few', () => {
    const hosts = Array.from({ length: 500 }, (_, i) => `10.1.${i >> 8}.${i & 0xff}`)
    const [before, after] = [aView(hosts), aView(hosts.filter((_, i) => i !== 7))]
    const plan = new ConnectPlan(FAMILY)
    plan.plan([{ name: 'a', before: undefined, after: before }])
    const { put, deleted } = plan.plan([{ name: 'a', before, after }])
    // The last backend at another place, and the number.
    expect(put.map(([key]) => key)).toEqual([
      keyOf(asBytes('\x0a\x60\0\x01'), 80, 8),
      keyOf(asBytes('\x0a\x60\0\x01'), 80, 0),
    ])
    expect(put[1]![1]).toBe(countValue(FAMILY, 499))
    expect(deleted).toEqual([keyOf(asBytes('\x0a\x60\0\x01'), 80, 500)])
  })

  it('lets an address pass from one service to another', () => {
    const [one, other] = [aView(['10.1.0.1', '10.1.0.2', '10.1.0.3']), aView(['10.1.0.9'])]
    const map = new Map<Bytes, Bytes>()
    const plan = new ConnectPlan(FAMILY)
    apply(map, plan.plan([{ name: 'a', before: undefined, after: one }]))
    const gone = { name: 'a', before: one, after: undefined }
    const came = { name: 'b', before: undefined, after: other }
    for (const changes of [
      [came, gone],
      [gone, came],
    ]) {
      const copy = new Map(map)
      const next = new ConnectPlan(FAMILY)
      next.plan([{ name: 'a', before: undefined, after: one }])
      apply(copy, next.plan(changes))
      expect(copy.size).toBe(2)
      expect(copy.get(keyOf(asBytes('\x0a\x60\0\x01'), 80, 1))?.slice(0, 4)).toBe('\x0a\x01\0\x09')
    }
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

  it('takes a cluster IP', () => {
    expect(chosenFrontends(plain)).toHaveLength(1)
    // The node's own connections are masqueraded to an address that they have anyway.
    expect(chosenFrontends(withFrontend({ fromNode: masqueraded }))).toHaveLength(1)
  })

  it.each<[string, ServicePortView]>([
    ['UDP', { ...plain, protocol: 'UDP' }],
    ['retries', { ...plain, connectRetry: true }],
    ['affinity', withFrontend({ affinitySeconds: 60 })],
    ['source ranges', withFrontend({ allowedSources: [] })],
    ['an external IP', withFrontend({ kind: 'externalIP' })],
    ['a node port', withFrontend({ kind: 'nodePort', address: undefined })],
    ['masquerading of all', withFrontend({ fromPods: masqueraded })],
    ['an endpoint that is loopback', aView(['10.1.0.1', '127.0.0.1'])],
    ['a link-local endpoint', aView(['169.254.169.254'])],
    ['an endpoint that is multicast', aView(['224.0.0.1'])],
    ['no endpoints', withFrontend({ fromPods: rejected, fromNode: rejected })],
  ])('leaves %s to the rules', (_, view) => {
    expect(chosenFrontends(view)).toEqual([])
  })
})
