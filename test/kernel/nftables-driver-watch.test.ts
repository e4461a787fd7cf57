// Being told of foreign changes, and not of our own.

import { bytesOf } from '../../src/lib/ip.ts'
import { spawn } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { type NftablesChange, type NftablesWatch, watchNftables } from '../../src/nftables/watch.ts'
import type { Op } from '../../src/nftables/types.ts'
import { eventually } from '../support/eventually.ts'
import { isRoot, loadWithNft, nft } from '../support/nft.ts'
import { makeSet } from '../../src/nftables/make-set.ts'

const set = makeSet('s', ['ipv4_addr'])
const create: Op[] = [
  { op: 'addTable', comment: undefined },
  { op: 'addSet', set },
]
const many = (count: number): Op => ({
  op: 'addElements',
  set,
  elements: Array.from({ length: count }, (_, i) => ({
    key: bytesOf(10, i >> 16, (i >> 8) & 255, i & 255),
  })),
})

/** The kernel names processes as its first pid namespace does. In a container that number cannot be known. */
function pidForKernel(pid: number | undefined): unknown {
  return readlinkSync('/proc/self/ns/pid') === 'pid:[4026531836]' ? pid : expect.any(Number)
}

describe.skipIf(!isRoot)('watchNftables() (needs root)', () => {
  let driver: NftablesDriver
  let watch: NftablesWatch
  let changes: NftablesChange[]

  beforeAll(() => {
    unshareNetwork()
    driver = new NftablesDriver({ family: 'ip', table: 'kube-proxy' })
    return () => driver.close()
  })

  beforeEach(() => {
    driver.apply(create)
    changes = []
    watch = watchNftables((change) => changes.push(change), { ignore: [driver] })
  })

  afterEach(() => {
    watch.close()
    nft('flush', 'ruleset')
  })

  /** All that was reported until now: notifications come in order, so a last one of ours shows that they are all there. */
  async function reported(): Promise<readonly NftablesChange[]> {
    nft('add', 'table', 'ip', 'last-one')
    const isLast = (change: NftablesChange) => change.kind === 'changed' && change.table === 'last-one'
    await eventually('the last change is reported', () => (changes.some(isLast) ? undefined : JSON.stringify(changes)))
    return changes.filter((change) => !isLast(change))
  }

  it('reports a table that another process touched, with its process id, within a fraction of a second', async () => {
    const child = spawn('nft', ['add', 'chain', 'ip', 'kube-proxy', 'c'])
    await new Promise((resolve) => child.once('exit', resolve))
    expect(await reported()).toEqual([
      { kind: 'changed', family: 'ip', table: 'kube-proxy', pid: pidForKernel(child.pid), port: child.pid },
    ])
  })

  it('reports each table of a transaction once, and none of other families', async () => {
    const chains = ['ip kube-proxy a', 'ip kube-proxy b', 'ip6 x a', 'inet y a']
    const tables = ['ip6 x', 'inet y'].map((name) => `add table ${name}`)
    loadWithNft([...tables, ...chains.map((name) => `add chain ${name}`)].join('\n'))
    const touched = (await reported()).map((change) =>
      change.kind === 'changed' ? `${change.family} ${change.table}` : change.kind,
    )
    expect(touched.sort()).toEqual(['ip kube-proxy', 'ip6 x'])
  })

  it('reports the flush of the whole ruleset', async () => {
    nft('flush', 'ruleset')
    expect(await reported()).toMatchObject([{ kind: 'changed', family: 'ip', table: 'kube-proxy' }])
  })

  it('does not report transactions of ignored drivers, of any size', async () => {
    driver.apply([many(1)])
    driver.apply([many(20_000)])
    expect(await reported()).toEqual([])
  })

  it('reports those of a driver that is not ignored', async () => {
    const other = new NftablesDriver({ family: 'ip', table: 'kube-proxy' })
    other.apply([many(1)])
    expect(await reported()).toMatchObject([{ kind: 'changed', family: 'ip', table: 'kube-proxy' }])
    other.close()
  })

  it('says that notifications were lost when there were too many', async () => {
    const other = new NftablesDriver({ family: 'ip', table: 'kube-proxy' })
    other.apply([many(100_000)])
    await eventually('it says so', () => (changes.length > 0 ? undefined : 'it says nothing'))
    expect(changes[0]).toEqual({ kind: 'lost' })
    await reported()
    other.close()
  })

  it('quietly() reports nothing when no other program was there', async () => {
    watch.quietly(() => driver.apply([many(50_000)]))
    expect(await reported()).toEqual([])
    changes = []
    nft('flush', 'ruleset')
    expect(await reported()).toMatchObject([{ kind: 'changed' }])
  })

  it('quietly() reports that something was lost when another program was there', async () => {
    watch.quietly(() => {
      driver.apply([many(3)])
      nft('add', 'table', 'ip', 'other')
    })
    expect(await reported()).toEqual([{ kind: 'lost' }])
  })

  it('reports nothing after close()', async () => {
    watch.close()
    const others: NftablesChange[] = []
    const second = watchNftables((change) => others.push(change))
    nft('flush', 'ruleset')
    await eventually('another watch is told', () => (others.length > 0 ? undefined : 'it is not'))
    expect(changes).toEqual([])
    second.close()
  })

  it('leaves another watch alone that has its file descriptor, when it is closed twice', async () => {
    watch.close()
    const others: NftablesChange[] = []
    const second = watchNftables((change) => others.push(change))
    watch.close()
    nft('flush', 'ruleset')
    await eventually('the other watch is told', () => (others.length > 0 ? undefined : 'it is not'))
    second.close()
  })

  it('tells two watches at the same time', async () => {
    const others: NftablesChange[] = []
    const second = watchNftables((change) => others.push(change))
    driver.apply([many(1)])
    nft('add', 'chain', 'ip', 'kube-proxy', 'c')
    expect(await reported()).toHaveLength(1)
    await eventually('both are told', () => (others.length === 3 ? undefined : JSON.stringify(others)))
    second.close()
  })
})
