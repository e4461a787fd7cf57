// Clients that are to be forgotten, in a real kernel: their entries expire while that goes on.

import { asBytes } from '../../src/lib/ip.ts'
import { execFileSync } from 'node:child_process'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { atOnce } from '../../src/lib/steps.ts'
import { affinityMap } from '../../src/modes/nftables/plan/schema.ts'
import { deletingStaleEntries } from '../../src/table-sync/delete-stale-entries.ts'
import { WriteLog } from '../../src/reconcile/write-log.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import type { TableDriver } from '../../src/nftables/table-driver.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot, nft } from '../support/nft.ts'
import { patience } from '../support/patience.ts'

const CLIENTS = 20_000
const TIMEOUT_MS = 20_000
const set = affinityMap(4, 'affinity')
const gone = '10.244.0.5 . 8080'
const here = '10.244.0.6 . 8080'

describe.skipIf(!isRoot)('forgetting clients in the kernel (needs root)', () => {
  let driver: NftablesDriver

  beforeAll(() => unshareNetwork())

  beforeEach(() => {
    driver = new NftablesDriver({ family: 'ip', table: 'kube-proxy' })
  })

  afterEach(() => {
    driver.close()
    nft('flush', 'ruleset')
  })

  /** Every second client has the endpoint that goes; one of 1000 expires in each 20 ms. */
  const remember = () => {
    const entries = Array.from({ length: CLIENTS }, (_, i) => {
      const expires = 1 + Math.floor((((i * 7919) % CLIENTS) / CLIENTS) * TIMEOUT_MS)
      const client = `10.0.${i >> 8}.${i & 255}`
      return `${client} timeout ${TIMEOUT_MS}ms expires ${expires}ms : ${i % 2 === 0 ? gone : here}`
    })
    const input = `table ip kube-proxy { map affinity {
      type ipv4_addr : ipv4_addr . inet_service; flags dynamic,timeout; size 65535; elements = { ${entries.join(', ')} }; }
    }`
    execFileSync('nft', ['-f', '-'], { input })
  }

  const allowed = '\x0a\xf4\x00\x06\x1f\x90\0\0'
  const stale = () => driver.readElements(set).filter(({ data }) => data !== allowed)

  it('knows what its kernel can do', () => {
    expect(driver.destroys).toBe(true)
    nft('add', 'table', 'ip', 'kube-proxy')
    expect(new NftablesDriver({ family: 'ip', table: 'kube-proxy' }).destroys).toBe(true)
  })

  it('has room for as many clients as a map of nft', () => {
    driver.apply([
      { op: 'addTable', comment: undefined },
      { op: 'addSet', set },
    ])
    expect(driver.read()?.sets.get('affinity')).toEqual(set)
    nft('add', 'chain', 'ip', 'kube-proxy', 'c')
    nft('add', 'rule', 'ip', 'kube-proxy', 'c', 'update', '@affinity', '{ ip saddr : ip daddr . tcp dport }')
    expect(nft('list', 'map', 'ip', 'kube-proxy', 'affinity')).toContain('size 65535')
    expect(driver.read()?.sets.get('affinity')).toEqual(set)
  })

  it.each(['destroy what is there', 'refuse to delete what is not there'])('kernels that %s', (kernel) => {
    const older: TableDriver = {
      apply: (ops) => driver.apply(ops),
      read: () => driver.read(),
      readElements: (map) => driver.readElements(map),
      close: () => {},
    }
    const used = kernel.startsWith('destroy') ? driver : older
    for (let round = 0; round < 3; round++) {
      remember()
      expect(stale().length).toBeGreaterThan(CLIENTS / 4)
      const startMs = performance.now()
      atOnce(deletingStaleEntries(used, [{ set, allowedData: [asBytes(allowed)] }], new WriteLog()))
      expect(performance.now() - startMs).toBeLessThan(1000 * patience())
      expect(stale()).toEqual([])
      expect(driver.readElements(set).length).toBeGreaterThan(CLIENTS / 4)
      nft('flush', 'ruleset')
    }
  })
})
