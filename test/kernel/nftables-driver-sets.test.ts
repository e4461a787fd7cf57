// Sets and maps of every kind: listed like nft's own, and read back as they were written.

import * as fc from 'fast-check'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { ipBytes, asBytes } from '../../src/lib/ip.ts'
import { elementKey, type Element, type NftSet, type Op } from '../../src/nftables/types.ts'
import { arbitraryElement, arbitrarySet } from '../support/arbitrary-nftables.ts'
import { isRoot, listJsonWithNft, listWithNft, loadWithNft, nft, opsToCreate, withoutHandles } from '../support/nft.ts'
import { makeSet } from '../../src/nftables/make-set.ts'

const WRITTEN_BY_NFT = `
table ip t {
  comment "rules for kube-proxy"
  map endpoints {
    typeof ip daddr . meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport
    elements = { 10.0.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080, 10.0.0.1 . tcp . 80 . 1 : 10.1.0.2 . 8080 }
  }
  map numbers { typeof numgen random mod 2 : ip daddr; elements = { 0 : 10.0.0.1, 1 : 10.0.0.2, 4294967295 : 10.0.0.3 }; }
  map to-number { typeof ip daddr : numgen random mod 2; elements = { 10.0.0.1 : 7 }; }
  map affinity { type ipv4_addr : ipv4_addr . inet_service; flags dynamic,timeout; size 1000; timeout 3h; }
  map jumps {
    type ipv4_addr . inet_proto . inet_service : verdict
    comment "where to"
    elements = { 10.0.0.1 . udp . 53 : goto c, 10.0.0.1 . sctp . 53 : jump c }
  }
  map addresses { type ipv4_addr : ipv4_addr; elements = { 10.0.0.1 : 10.0.0.2 }; }
  set ips { type ipv4_addr; comment "Äußerst wichtig"; elements = { 10.0.0.1, 255.255.255.255 }; }
  set ports { type inet_service; size 100; elements = { 80, 65535 }; }
  set protocols { type inet_proto; elements = { tcp, 255 }; }
  set cidrs { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.1, 255.255.255.0/24 }; }
  set adjacent { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 11.0.0.0/8 }; }
  set everything { type ipv4_addr; flags interval; elements = { 0.0.0.0/0 }; }
  set port-ranges { type inet_service; flags interval; elements = { 30000-32767 }; }
  set allowed {
    type ipv4_addr . inet_proto . inet_service . ipv4_addr
    flags interval
    elements = { 10.0.0.1 . tcp . 80 . 192.168.0.0/16, 10.0.0.1 . tcp . 443 . 0.0.0.0/0, 10.0.0.1 . udp . 53-60 . 1.2.3.4 }
  }
  chain c { comment "a chain" ; }
}
table ip6 t {
  map endpoints {
    typeof ip6 daddr . meta l4proto . th dport . numgen random mod 2 : ip6 daddr . th dport
    elements = { fd00::1 . tcp . 80 . 0 : fd00:1::1 . 8080 }
  }
  set cidrs { type ipv6_addr; flags interval; elements = { fd00::/8, ff00::/8, ::1 }; }
  set allowed {
    type ipv6_addr . inet_proto . inet_service . ipv6_addr
    flags interval
    elements = { fd00::1 . tcp . 80 . fd00::/16 }
  }
  map affinity { type ipv6_addr : ipv6_addr . inet_service; flags dynamic,timeout; size 1000; }
}
`

const plain = makeSet('s', ['ipv4_addr'])
const ip = (text: string) => ipBytes(text)
const add = (set: NftSet, ...elements: Element[]): Op => ({ op: 'addElements', set, elements })
const remove = (set: NftSet, ...elements: Element[]): Op => ({ op: 'deleteElements', set, elements })

describe.skipIf(!isRoot)('sets in the kernel (needs root)', () => {
  const drivers = {} as Record<'ip' | 'ip6', NftablesDriver>

  beforeAll(() => {
    unshareNetwork()
    for (const family of ['ip', 'ip6'] as const) drivers[family] = new NftablesDriver({ family, table: 't' })
    return () => Object.values(drivers).forEach((driver) => driver.close())
  })

  afterEach(() => {
    nft('flush', 'ruleset')
  })

  const createWith = (set: NftSet): void => {
    drivers.ip.apply([
      { op: 'addTable', comment: undefined },
      { op: 'addSet', set },
    ])
  }

  it.each(['ip', 'ip6'] as const)('of family %s that we copied from nft are listed as nft lists its own', (family) => {
    loadWithNft(WRITTEN_BY_NFT)
    const [table, listed, json] = [drivers[family].read()!, listWithNft(), listJsonWithNft()]
    drivers[family].apply(opsToCreate(table))
    expect(withoutHandles(drivers[family].read())).toEqual(withoutHandles(table))
    expect(sorted(listWithNft())).toEqual(sorted(listed))
    expect(byName(listJsonWithNft())).toEqual(byName(json))
  })

  it('of nft are read as they are meant', () => {
    loadWithNft(WRITTEN_BY_NFT)
    const table = drivers.ip.read()!
    expect(table.comment).toBe('rules for kube-proxy')
    expect(table.chains.get('c')!.comment).toBe('a chain')
    expect(table.sets.get('ips')!.comment).toBe('Äußerst wichtig')
    expect(table.sets.get('affinity')).toEqual({
      ...plain,
      name: 'affinity',
      data: ['ipv4_addr', 'inet_service'],
      dynamic: true,
      timeoutMs: 10_800_000,
      size: 1000,
    })
    expect([...table.elements.get('cidrs')!.values()]).toEqual([
      { key: ip('10.0.0.0'), keyEnd: ip('10.255.255.255') },
      { key: ip('192.168.0.1'), keyEnd: ip('192.168.0.1') },
      { key: ip('255.255.255.0'), keyEnd: ip('255.255.255.255') },
    ])
    expect(table.elements.get('adjacent')!.size).toBe(2)
    expect([...table.elements.get('everything')!.values()]).toEqual([
      { key: ip('0.0.0.0'), keyEnd: ip('255.255.255.255') },
    ])
    const codes = new Set(Array.from(table.elements.get('jumps')!.values(), ({ verdict }) => verdict?.code))
    expect(codes).toEqual(new Set(['goto', 'jump']))
  })

  it('with fields or verdicts that we never write are read as such', () => {
    loadWithNft(`table ip t {
      chain c { }
      set hosts { type ether_addr; elements = { 02:00:00:00:00:01 }; }
      map to-host { type ipv4_addr : ether_addr; elements = { 10.0.0.1 : 02:00:00:00:00:01 }; }
      map verdicts { type ipv4_addr : verdict; elements = { 10.0.0.1 : drop, 10.0.0.2 : goto c }; }
    }`)
    const table = drivers.ip.read()!
    expect(table.sets.get('hosts')!.key).toEqual([])
    expect(table.sets.get('to-host')!.data).toEqual([])
    expect([...table.elements.keys()]).toEqual(['verdicts'])
    expect(table.elements.get('verdicts')!.get(ip('10.0.0.1'))).toEqual({ key: ip('10.0.0.1') })
  })

  it('of any kind are read back as they were written, and nft lists them', () => {
    const kinds = arbitrarySet
      // What the kernel has no structure for, and what nft itself refuses.
      .filter(({ interval, dynamic, data }) => !(interval && (dynamic || data !== undefined)))
      .filter(({ dynamic, data }) => !(dynamic && data === 'verdict'))
      .map((set) => (set.dynamic ? set : { ...set, timeoutMs: undefined }))
      // Timeouts are kept in jiffies.
      .map((set) => (set.timeoutMs === undefined ? set : { ...set, timeoutMs: set.timeoutMs * 1000 }))
      .map((set) => (set.dynamic && set.size === undefined ? { ...set, size: 1000 } : set))
    const withElements = kinds.chain((set) =>
      fc.tuple(fc.constant(set), fc.array(arbitraryElement(set), { maxLength: 5 }).map(onePerKey)),
    )
    fc.assert(
      fc.property(withElements, ([set, list]) => {
        const elements = list.filter((_, i) => !set.interval || i === 0).slice(0, set.size ?? list.length)
        const chains = new Set(elements.flatMap(({ verdict }) => (verdict === undefined ? [] : [verdict.chain])))
        drivers.ip.apply([
          { op: 'deleteTable' },
          { op: 'addTable', comment: undefined },
          { op: 'addSet', set },
          ...Array.from(chains, (name): Op => ({
            op: 'addChain',
            chain: { name, comment: undefined, hook: undefined, rules: [] },
          })),
          add(set, ...elements),
        ])
        const read = drivers.ip.read({ dynamicElements: true })!
        expect(read.sets.get(set.name)).toEqual(set)
        expect(read.elements.get(set.name) ?? new Map()).toEqual(
          new Map(elements.map((element) => [elementKey(element), element])),
        )
        expect(listWithNft()).toContain(`${set.data === undefined ? 'set' : 'map'} ${set.name} {`)
      }),
      { numRuns: 60 },
    )
  })

  it('of ranges lose a range and keep the others', () => {
    const cidrs = { ...plain, interval: true }
    const ranges = [
      { key: ip('10.0.0.0'), keyEnd: ip('10.255.255.255') },
      { key: ip('172.16.0.0'), keyEnd: ip('172.31.255.255') },
      { key: ip('240.0.0.0'), keyEnd: ip('255.255.255.255') },
    ]
    createWith(cidrs)
    drivers.ip.apply([add(cidrs, ...ranges)])
    drivers.ip.apply([remove(cidrs, ranges[0]!)])
    expect(drivers.ip.readElements(cidrs)).toEqual(ranges.slice(1))
    expect(listWithNft()).toContain('elements = { 172.16.0.0/12, 240.0.0.0/4 }')
    drivers.ip.apply([remove(cidrs, ranges[2]!), add(cidrs, ranges[0]!)])
    expect(drivers.ip.readElements(cidrs)).toEqual(ranges.slice(0, 2))
  })

  it('give the elements of dynamic sets only on request', () => {
    const affinity: NftSet = { ...plain, data: ['ipv4_addr', 'inet_service'], dynamic: true, size: 100 }
    const element = { key: ip('10.0.0.1'), data: asBytes(`${ip('10.1.0.1')}\x1f\x90\0\0`) }
    createWith(affinity)
    drivers.ip.apply([add(affinity, element)])
    expect(drivers.ip.read()!.elements.size).toBe(0)
    expect(drivers.ip.read({ dynamicElements: true })!.elements.get('s')).toEqual(new Map([[element.key, element]]))
  })
})

function onePerKey(elements: readonly Element[]): Element[] {
  return [...new Map(elements.map((element) => [element.key, element])).values()]
}

/** nft lists tables in the order in which they were made, and elements in that of the kernel. */
function sorted(listing: string): string[] {
  return listing
    .split(/[\n,]/)
    .map((line) => line.replace('elements = {', '').replace('}', '').trim())
    .sort()
}

function byName(objects: readonly object[]): object[] {
  const text = (value: unknown) => JSON.stringify(value)
  const sortElements = (key: string, value: unknown) =>
    key === 'elem' && Array.isArray(value) ? value.map(text).sort() : value
  return objects
    .map((object) => JSON.parse(JSON.stringify(object, sortElements)) as object)
    .sort((a, b) => (text(a) < text(b) ? -1 : 1))
}
