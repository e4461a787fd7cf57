import { asBytes } from '../lib/ip.ts'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backendId, BackendList } from '../model/backend-list.ts'
import type { Backend } from '../model/types.ts'
import { inOrder, keepPlaces, Places } from './places.ts'
import { arbitraryView } from '../../test/support/arbitrary-views.ts'

const backend = (host: number, isLocal = false): Backend => ({ ip: `10.0.0.${host}`, port: 80, isLocal })
const all = Array.from({ length: 9 }, (_, i) => backend(i))
const pick = (...hosts: number[]) => BackendList.of(hosts.map((host) => all[host]!))
const at = (...hosts: number[]) => pick(...hosts).allRecords()
const hostsOf = (records: string) => hostList(BackendList.none.rearranged(asBytes(records))).join(' ')
const hostList = (list: BackendList) => list.map(({ ip }) => Number(ip.split('.')[3]))
const byNumber = (a: number, b: number) => a - b

describe('keepPlaces()', () => {
  it.each([
    ['nothing changes', [0, 1, 2], [2, 0, 1], '2 0 1'],
    ['the last moves into the gap', [0, 2, 3], [0, 1, 2, 3], '0 3 2'],
    ['the last goes', [0, 1], [0, 1, 2], '0 1'],
    ['several go', [4, 5], [0, 1, 2, 3, 4, 5], '5 4'],
    ['one comes', [0, 1, 2, 3], [3, 2, 1], '3 2 1 0'],
    ['one takes the place of another', [0, 2, 7], [0, 1, 2], '0 7 2'],
    ['two go, one comes', [2, 3, 7], [0, 1, 2, 3], '7 3 2'],
    ['all others', [4, 5], [0, 1, 2], '4 5'],
    ['none before', [4, 5], [], '4 5'],
    ['none after', [], [1, 2], ''],
  ])('%s', (_, wanted, former, expected) => {
    expect(hostsOf(keepPlaces(pick(...wanted), at(...former)))).toBe(expected)
  })

  it('one of which something else changed stays where it is', () => {
    const local = backend(1, true)
    const placed = keepPlaces(BackendList.of([all[0]!, local, all[2]!]), at(2, 1, 0))
    expect([...BackendList.none.rearranged(placed)]).toEqual([all[2], local, all[0]])
  })

  it('a place that is free, and one that is taken twice, are filled', () => {
    expect(hostsOf(keepPlaces(pick(0, 1, 2), [at(1)[0], undefined, at(1)[0], at(0)[0]]))).toBe('1 2 0')
  })

  it('has each of the wanted once, and moves no more than went or came', () => {
    const hosts = fc.uniqueArray(fc.integer({ min: 0, max: 8 }))
    fc.assert(
      fc.property(hosts, hosts, (wanted, former) => {
        const placed = hostList(BackendList.none.rearranged(keepPlaces(pick(...wanted), at(...former))))
        expect(new Set(placed)).toEqual(new Set(wanted))
        expect(placed).toHaveLength(wanted.length)
        const moved = placed.filter((host, place) => host !== former[place])
        const came = wanted.filter((host) => !former.includes(host))
        const went = former.filter((host) => !wanted.includes(host))
        expect(moved.length).toBeLessThanOrEqual(Math.max(came.length, went.length))
      }),
    )
  })
})

describe('places of a hash', () => {
  const hashed = (...hosts: number[]) =>
    BackendList.of(
      hosts.map((host) => all[host]!),
      'hash-client',
    )
  const view = fc.sample(arbitraryView(4, 0), { numRuns: 1, seed: 1 })[0]!

  it('follow from the list alone, whatever came before', () => {
    const places = new Places()
    const [before, after] = [hashed(0, 1, 2, 3), hashed(0, 2, 3)]
    places.keep({ ...view, lists: { Cluster: before } }, { ...view, lists: { Cluster: after } })
    expect(places.of(after).records).toBe(inOrder(hashed(0, 2, 3)).records)
    places.keep({ ...view, lists: { Cluster: after } }, { ...view, lists: { Cluster: pick(0, 2, 3) } })
    expect(hostList(places.of(pick(0, 2, 3)))).toEqual([0, 2, 3])
  })

  it('are as many for many backends, and mostly the same when one goes', () => {
    const [before, after] = [inOrder(hashed(0, 1, 2, 3)), inOrder(hashed(0, 2, 3))]
    expect(before.length).toBe(after.length)
    expect(after.placesUnlike(before).length / after.length).toBeLessThanOrEqual(1 / 4 + 0.02)
  })

  it('lead to the same host on every port of a service', () => {
    const onPort = (port: number) =>
      BackendList.of(
        all.slice(0, 4).map((each) => ({ ...each, port })),
        'hash-client',
      )
    expect(hostList(inOrder(onPort(8443)))).toEqual(hostList(inOrder(onPort(8080))))
  })

  it('have two backends of one host, too', () => {
    const list = BackendList.of(
      [80, 81].map((port) => ({ ...all[0]!, port })),
      'hash-client',
    )
    expect(new Set(inOrder(list).map(({ port }) => port))).toEqual(new Set([80, 81]))
  })
})

describe('Places', () => {
  const weighted = (...weights: number[]) => BackendList.of(weights.map((weight, host) => ({ ...all[host]!, weight })))
  const view = fc.sample(arbitraryView(4, 0), { numRuns: 1, seed: 1 })[0]!
  const follow = (places: Places, before: BackendList, after: BackendList) =>
    places.keep({ ...view, lists: { Cluster: before } }, { ...view, lists: { Cluster: after } })

  it('has a backend as often as it weighs, and none of weight 0', () => {
    expect(hostList(inOrder(weighted(1, 3, 0, 2)))).toEqual([0, 1, 1, 1, 3, 3])
    expect(hostList(inOrder(weighted(2, 2)))).toEqual([0, 1])
  })

  it.each([
    ['more places at the end', [1, 2, 1], [1, 3, 1], [0, 1, 1, 2, 1]],
    ['the last fills the gap', [1, 2, 1], [1, 1, 1], [0, 1, 2]],
    ['one that drains leaves', [1, 2, 1], [1, 0, 1], [0, 2]],
    ['the first weights', [1, 1, 1], [1, 2, 1], [0, 1, 2, 1]],
    ['the last weights', [1, 2, 1], [1, 1, 1], [0, 1, 2]],
  ])('a change of one weight moves only its own places: %s', (_, before, after, expected) => {
    const places = new Places()
    const [former, list] = [weighted(...before), weighted(...after)]
    follow(places, former, list)
    expect(hostList(places.of(list))).toEqual(expected)
  })

  it('has the shares of the last weights, and writes no more than came or went', () => {
    const weights = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 2, maxLength: 9 })
    fc.assert(
      fc.property(fc.array(weights, { minLength: 2, maxLength: 5 }), (steps) => {
        const places = new Places()
        let former: BackendList | undefined
        for (const step of steps) {
          const list = weighted(...step)
          if (list.isWeighted && step.every((weight) => weight === 0)) continue
          if (former !== undefined) follow(places, former, list)
          const [was, is] = [former && places.of(former), places.of(list)]
          expect(hostList(is).toSorted(byNumber)).toEqual(hostList(inOrder(list)).toSorted(byNumber))
          const more = is.allRecords().map(backendId)
          for (const record of was?.allRecords() ?? []) {
            const at = more.indexOf(backendId(record))
            if (at >= 0) more.splice(at, 1)
          }
          const shorter = Math.max(0, (was?.length ?? 0) - is.length)
          expect(is.placesUnlike(was).length).toBeLessThanOrEqual(more.length + shorter)
          former = list
        }
      }),
    )
  })

  it('never moves what the view before has, though the view after has the same list for another policy', () => {
    const places = new Places()
    const [everywhere, here] = [pick(0, 1, 2), pick(2)]
    const before = { ...view, lists: { Cluster: everywhere, Local: here } }
    places.keep(before, { ...before, lists: { Cluster: everywhere, Local: everywhere } })
    expect(places.of(everywhere)).toBe(everywhere)
  })
})
