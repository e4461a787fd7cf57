// Being told of foreign changes, and not of our own.

import { setTimeout as delay } from 'node:timers/promises'
import { spawn } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { type NftablesChange, type NftablesWatch, watchNftables } from '../../src/nftables/watch.ts'
import type { NftSet, Op } from '../../src/nftables/types.ts'
import { isRoot, loadWithNft, nft } from '../support/nft.ts'

const set: NftSet = {
  name: 's',
  key: ['ipv4_addr'],
  data: undefined,
  interval: false,
  dynamic: false,
  timeoutMs: undefined,
  size: undefined,
  comment: undefined,
}
const create: Op[] = [
  { op: 'addTable', comment: undefined },
  { op: 'addSet', set },
]
const many = (count: number): Op => ({
  op: 'addElements',
  set,
  elements: Array.from({ length: count }, (_, i) => ({
    key: String.fromCharCode(10, i >> 16, (i >> 8) & 255, i & 255),
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

  it('reports a table that another process touched, with its process id, within a fraction of a second', async () => {
    const child = spawn('nft', ['add', 'chain', 'ip', 'kube-proxy', 'c'])
    await new Promise((resolve) => child.once('exit', resolve))
    await delay(20)
    expect(changes).toEqual([
      { kind: 'changed', family: 'ip', table: 'kube-proxy', pid: pidForKernel(child.pid), port: child.pid },
    ])
  })

  it('reports each table of a transaction once, and none of other families', async () => {
    const chains = ['ip kube-proxy a', 'ip kube-proxy b', 'ip6 x a', 'inet y a']
    const tables = ['ip6 x', 'inet y'].map((name) => `add table ${name}`)
    loadWithNft([...tables, ...chains.map((name) => `add chain ${name}`)].join('\n'))
    await delay(20)
    const touched = changes.map((change) =>
      change.kind === 'changed' ? `${change.family} ${change.table}` : change.kind,
    )
    expect(touched.sort()).toEqual(['ip kube-proxy', 'ip6 x'])
  })

  it('reports the flush of the whole ruleset', async () => {
    nft('flush', 'ruleset')
    await delay(20)
    expect(changes).toMatchObject([{ kind: 'changed', family: 'ip', table: 'kube-proxy' }])
  })

  it('does not report transactions of ignored drivers, of any size', async () => {
    driver.apply([many(1)])
    driver.apply([many(20_000)])
    await delay(20)
    expect(changes).toEqual([])
  })

  it('reports those of a driver that is not ignored', async () => {
    const other = new NftablesDriver({ family: 'ip', table: 'kube-proxy' })
    other.apply([many(1)])
    await delay(20)
    expect(changes).toMatchObject([{ kind: 'changed', family: 'ip', table: 'kube-proxy' }])
    other.close()
  })

  it('says that notifications were lost when there were too many', async () => {
    const other = new NftablesDriver({ family: 'ip', table: 'kube-proxy' })
    other.apply([many(100_000)])
    await delay(50)
    expect(changes[0]).toEqual({ kind: 'lost' })
    const afterwards = changes.length
    nft('flush', 'ruleset')
    await delay(50)
    expect(changes.length).toBeGreaterThan(afterwards)
    other.close()
  })

  it('quietly() reports nothing when nobody else was there', async () => {
    watch.quietly(() => driver.apply([many(50_000)]))
    await delay(20)
    expect(changes).toEqual([])
    nft('flush', 'ruleset')
    await delay(20)
    expect(changes).toMatchObject([{ kind: 'changed' }])
  })

  it('quietly() reports that something was lost when somebody else was there', async () => {
    watch.quietly(() => {
      driver.apply([many(3)])
      nft('add', 'table', 'ip', 'other')
    })
    await delay(20)
    expect(changes).toEqual([{ kind: 'lost' }])
  })

  it('reports nothing after close()', async () => {
    watch.close()
    nft('flush', 'ruleset')
    await delay(20)
    expect(changes).toEqual([])
  })

  it('tells two watches at the same time', async () => {
    const others: NftablesChange[] = []
    const second = watchNftables((change) => others.push(change))
    driver.apply([many(1)])
    nft('add', 'chain', 'ip', 'kube-proxy', 'c')
    await delay(20)
    expect(changes).toHaveLength(1)
    expect(others).toHaveLength(2)
    second.close()
  })
})
