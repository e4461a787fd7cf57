// What the kernel takes for source ranges in each kind of set that could hold them: adding, changing, removing, and a packet's lookup.
//   npm run bench:sets -- [kind ...] [count ...]
//
// docs/adr/0013-source-ranges-by-prefix.md has the result, and what follows from it.

import { asBytes } from '../../src/lib/ip.ts'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import * as nft from '../../src/nftables/language.ts'
import { makeSet } from '../../src/nftables/make-set.ts'
import type { Chain, Element, NftSet, Op } from '../../src/nftables/types.ts'
import { median, table } from './figures.ts'
import { enterOwnNetwork } from './netns.ts'

const u32 = (n: number) => String.fromCharCode((n >>> 24) & 255, (n >>> 16) & 255, (n >>> 8) & 255, n & 255)
const FRONTEND = `${u32(0x7f000002)}\x11\0\0\0\x01\xbb\0\0`
const ADDRESS = FRONTEND.slice(0, 4)
const PORT = FRONTEND.slice(8)
/** Addresses of a range: a /28. */
const SIZE = 16

interface Kind {
  readonly name: string
  readonly set: NftSet
  readonly element: (first: number) => Element
  readonly match: nft.Piece
}

const daddr = nft.destinationAddress(4)
const saddr = nft.sourceAddress(4)
const frontend = [daddr, nft.protocol, nft.destinationPort]
const KINDS: readonly Kind[] = [
  {
    name: 'hash',
    set: makeSet('hash', ['ipv4_addr', 'inet_proto', 'inet_service', 'ipv4_addr']),
    element: (first) => ({ key: asBytes(FRONTEND + u32(first)) }),
    match: nft.isIn([...frontend, nft.sourceNetwork(4, 28)], 'hash'),
  },
  {
    name: 'rbtree',
    set: makeSet('rbtree', ['ipv4_addr'], { interval: true }),
    element: (first) => ({ key: asBytes(u32(first)), keyEnd: asBytes(u32(first + SIZE - 1)) }),
    match: nft.isIn([saddr], 'rbtree'),
  },
  {
    name: 'pipapo',
    set: makeSet('pipapo', ['ipv4_addr', 'inet_service', 'ipv4_addr'], { interval: true }),
    element: (first) => ({
      key: asBytes(ADDRESS + PORT + u32(first)),
      keyEnd: asBytes(ADDRESS + PORT + u32(first + SIZE - 1)),
    }),
    match: nft.isIn([daddr, nft.destinationPort, saddr], 'pipapo'),
  },
]
const LAYOUTS = { scattered: 256, touching: SIZE } as const
/** A rule that does not match, so often in the chain of each packet. */
const LOOKUPS = 100
const PACKETS = 3000

function took(work: () => void): number {
  const startMs = performance.now()
  work()
  return performance.now() - startMs
}

/** Nanoseconds of one lookup. */
async function lookupCost(driver: NftablesDriver, { match }: Kind): Promise<number> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const packet = Buffer.alloc(1)
  const send = () => new Promise<void>((resolve) => socket.send(packet, 443, '127.0.0.2', () => resolve()))
  const perPacket = async () => {
    const times: number[] = []
    for (let i = 0; i < PACKETS; i++) {
      const startMs = performance.now()
      await send()
      times.push(performance.now() - startMs)
    }
    return median(times) * 1e6
  }
  const hooked = (rules: number): Chain => ({
    name: 'out',
    comment: undefined,
    hook: { type: 'filter', hook: 'output', priority: 0 },
    rules: Array.from({ length: rules }, () => nft.rule([match, nft.goBack])),
  })
  const costs: number[] = []
  for (const rules of [0, LOOKUPS]) {
    const chain = hooked(rules)
    driver.apply([
      { op: 'addChain', chain },
      ...chain.rules.map((rule): Op => ({ op: 'addRule', chain: chain.name, rule })),
    ])
    costs.push(await perPacket())
    driver.apply([
      { op: 'flushChain', name: chain.name },
      { op: 'deleteChain', name: chain.name },
    ])
  }
  socket.close()
  return (costs[1]! - costs[0]!) / LOOKUPS
}

enterOwnNetwork()
const wanted = process.argv.slice(2)
const counts = wanted.map(Number).filter((count) => count > 0)
const kinds = KINDS.filter(({ name }) => wanted.includes(name) || !KINDS.some((kind) => wanted.includes(kind.name)))
const driver = new NftablesDriver({ family: 'ip', table: 'bench' })
driver.apply([{ op: 'addTable', comment: undefined }])
const rows: string[][] = []
for (const kind of kinds) {
  const { set, element } = kind
  for (const [layout, step] of Object.entries(LAYOUTS)) {
    for (const count of counts.length > 0 ? counts : [100, 1000, 10_000, 40_000]) {
      const at = (i: number) => element(0x0a000000 + i * step)
      const elements = Array.from({ length: count }, (_, i) => at(i))
      const one = elements[count >> 1]!
      const apply = (op: 'addElements' | 'deleteElements', list: readonly Element[], chunk = list.length) => {
        for (let i = 0; i < list.length; i += chunk) driver.apply([{ op, set, elements: list.slice(i, i + chunk) }])
      }
      const make = () => driver.apply([{ op: 'addSet', set }])
      const drop = () => driver.apply([{ op: 'deleteSet', name: set.name }])
      make()
      const addMs = took(() => apply('addElements', elements))
      const changeMs = took(() => {
        driver.apply([
          { op: 'deleteElements', set, elements: [one] },
          { op: 'addElements', set, elements: [at(count + 5)] },
        ])
      })
      const lookupNs = await lookupCost(driver, kind)
      const rest = [...elements.filter((each) => each !== one), at(count + 5)]
      const removeMs = took(() => apply('deleteElements', rest))
      drop()
      make()
      const chunksMs = took(() => apply('addElements', elements, 2000))
      const dropMs = took(drop)
      const cells = [addMs, chunksMs, changeMs, removeMs, dropMs].map((ms) => ms.toFixed(1))
      rows.push([kind.name, layout, String(count), ...cells, lookupNs.toFixed(0)])
      console.error(rows.at(-1)!.join(' | '))
    }
  }
}
driver.apply([{ op: 'deleteTable' }])
const head = [
  'set',
  'ranges',
  'count',
  'add all',
  'in parts',
  'change one',
  'remove all',
  'delete the set',
  'lookup, ns',
]
console.log(table(head, rows))
console.log('Milliseconds of system calls, but for lookups. "In parts": transactions of 2,000 elements.')
