// Reading our table while other programs are busy with theirs, or with ours.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { KernelError } from '../../src/lib/errors.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { eventually } from '../support/eventually.ts'
import { addressField } from '../../src/nftables/fields.ts'
import { isRoot, loadWithNft, nft } from '../support/nft.ts'

const COUNT = 30_000

describe.skipIf(!isRoot)('NftablesDriver among busy programs (needs root)', () => {
  let driver: NftablesDriver
  let busy: ChildProcess | undefined

  beforeAll(() => {
    unshareNetwork()
    driver = new NftablesDriver({ family: 'ip', table: 't' })
    return () => driver.close()
  })

  afterEach(async () => {
    busy?.kill('SIGKILL')
    if (busy?.exitCode === null) await once(busy, 'exit')
    nft('flush', 'ruleset')
  })

  /** One transaction after the other, without end, from a single process. */
  async function makeBusy(table: string): Promise<void> {
    loadWithNft(`add table ip ${table}\nadd set ip ${table} busy { type ipv4_addr; }`)
    busy = spawn('nft', ['-i'], { stdio: ['pipe', 'ignore', 'ignore'] })
    const add = `add element ip ${table} busy { 10.0.0.1 }\n`
    const feed = `${add}${add.replace('add', 'delete')}`.repeat(200_000)
    busy.stdin!.on('error', () => {})
    busy.stdin!.end(feed)
    const before = driver.generation()
    await eventually('the other program is busy', () => (driver.generation() > before + 10 ? undefined : 'idle'))
  }

  function fill(): void {
    const elements = Array.from({ length: COUNT }, (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
    loadWithNft(
      `add table ip t\nadd set ip t s { type ipv4_addr; }\nadd chain ip t c\nadd element ip t s { ${elements.join(', ')} }`,
    )
  }

  it('read() comes to its end while other tables change all the time', async () => {
    fill()
    await makeBusy('other')
    await eventually('the other program changes its table during a read', () => {
      const before = driver.generation()
      const table = driver.read()!
      expect(table.elements.get('s')?.size).toBe(COUNT)
      expect(table.elements.get('s')?.has(addressField('10.0.0.9'))).toBe(true)
      expect([...table.chains.keys()]).toEqual(['c'])
      return driver.generation() > before + 1 ? undefined : 'it did not'
    })
  })

  // Whether the other program gets to run in each attempt of a read is up to the scheduler: some read will find none quiet.
  it('read() says so when our own table changes all the time', async () => {
    fill()
    await makeBusy('t')
    await eventually('a read gives up', () => {
      try {
        expect(driver.read()!.elements.get('s')?.size).toBe(COUNT)
        return 'it read the whole table'
      } catch (error) {
        if (!(error instanceof KernelError)) throw error
        expect(error.message).toContain('it keeps changing')
        return undefined
      }
    })
  })
})
