import { beforeEach, describe, expect, test } from 'vitest'
import { aNodeView } from '../../test/support/arbitrary-views.ts'
import { aClusterIpView } from '../../test/support/cluster-ip-view.ts'
import { ERRNOS } from '../../test/support/errnos.ts'
import { MemoryTable } from '../../test/support/memory-table.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError, messageOf } from '../lib/errors.ts'
import type { ServicePortView } from '../model/types.ts'
import { addressField } from '../nftables/fields.ts'
import type { Element, NftSet, Op } from '../nftables/types.ts'
import { nftablesPlanner } from '../modes/nftables/plan/planner.ts'
import { TableProgrammer } from './table-programmer.ts'

/** One that refuses what it is told to refuse. */
class FaultyTable extends MemoryTable {
  errno: string | undefined
  refuses: (ops: readonly Op[]) => boolean = () => false
  refusesToRead: (set: NftSet) => boolean = () => false
  transactions = 0
  readonly destroys = true

  override apply(ops: readonly Op[]): { bytes: number } {
    if (this.errno !== undefined && this.refuses(ops)) throw new KernelError('change a table', this.errno)
    this.transactions++
    return super.apply(ops)
  }

  override readElements(set: NftSet): readonly Element[] {
    if (this.errno !== undefined && this.refusesToRead(set)) throw new KernelError('list elements', this.errno)
    return super.readElements(set)
  }
}

const node = aNodeView()

/** A service port with session affinity. */
function sticky(number: number, hosts: readonly string[]): ServicePortView {
  const view = aClusterIpView(`10.96.0.${number}`, hosts)
  return { ...view, frontends: view.frontends.map((frontend) => ({ ...frontend, affinitySeconds: 60 })) }
}

describe('finish()', () => {
  let clock: ManualClock
  let driver: FaultyTable
  let programmer: TableProgrammer
  let failedCleanups: number
  let failures: string[]
  let present: Map<number, ServicePortView>

  beforeEach(async () => {
    clock = new ManualClock()
    driver = new FaultyTable(4, nftablesPlanner.table)
    failedCleanups = 0
    failures = []
    programmer = new TableProgrammer({
      planner: nftablesPlanner,
      driver,
      clock,
      affinity: {
        onFailed: (error) => void failures.push(messageOf(error)),
        onMended: () => void failures.splice(0),
      },
      counts: { syncFailed: () => expect.fail('a sync failed'), cleanupFailed: () => failedCleanups++ },
    })
    present = new Map([
      [1, sticky(1, ['10.1.0.1', '10.1.0.2'])],
      [2, sticky(2, ['10.1.0.1', '10.1.0.2'])],
    ])
    await programmer.syncAll(node, present.values())
  })

  const change = async (number: number, hosts: readonly string[] | undefined) => {
    const before = present.get(number)
    const after = hosts && sticky(number, hosts)
    if (after === undefined) present.delete(number)
    else present.set(number, after)
    await programmer.sync(node, [{ name: (after ?? before)!.name, before, after }])
  }
  const dynamic = () => [...driver.table!.sets.values()].filter(({ dynamic: isDynamic }) => isDynamic)
  /** Clients of both services were noted at both endpoints. */
  const note = () => {
    for (const set of dynamic()) {
      const { allowedData } = [...present.values()]
        .flatMap((view) => nftablesPlanner.service(node, view).dynamicMaps)
        .find((each) => each.set.name === set.name)!
      const elements = allowedData.map((data, i) => ({ key: addressField(`192.0.2.${i}`), data }))
      driver.apply([{ op: 'addElements', set, elements }])
    }
  }
  const noted = () => dynamic().map((set) => driver.readElements(set).length)
  const leftChains = () => [...driver.table!.chains.keys()].filter((name) => name.startsWith('stick-'))
  const isForgetting = (ops: readonly Op[]) => ops.some((op) => op.op === 'destroyElements' && op.set.dynamic)
  const isSweeping = (ops: readonly Op[]) => ops.every(({ op }) => op === 'deleteChain')
  /** As the queue does: again when there is more to do. */
  const finish = async () => {
    const { againInMs } = await programmer.finish()
    if (againInMs !== undefined) clock.setTimeout(() => void finish(), againInMs)
  }

  describe.each([
    ['reading what was noted', () => (driver.refusesToRead = ({ dynamic: isDynamic }) => isDynamic)],
    ['deleting it', () => (driver.refuses = isForgetting)],
  ] as const)('%s fails', (_, arrange) => {
    // With ENOENT there is nothing to forget.
    test.each(ERRNOS.filter((errno) => errno !== 'ENOENT'))(
      'with %s: the sync is done, the rest too, and it is done later by itself',
      async (errno) => {
        note()
        await change(3, ['10.1.0.1'])
        await change(3, undefined)
        await clock.advance(1001)
        arrange()
        driver.errno = errno
        await change(1, ['10.1.0.1'])
        await finish()
        expect(leftChains()).toHaveLength(2)
        expect(failures).not.toEqual([])
        expect(failures[0]).toContain(errno)
        // No full sync is needed: changes go on.
        await change(2, ['10.1.0.2', '10.1.0.3'])
        await finish()
        driver.errno = undefined
        expect(noted()).toEqual([2, 2])
        for (let i = 0; i < 40; i++) await clock.advance(100)
        expect(noted()).toEqual([1, 1])
        expect(failures).toEqual([])
      },
    )
  })

  test('one map that cannot be read does not keep another from being read', async () => {
    note()
    const [first] = dynamic()
    driver.errno = 'EINVAL'
    driver.refusesToRead = ({ name }) => name === first!.name
    await change(1, ['10.1.0.1'])
    await change(2, ['10.1.0.1'])
    await finish()
    driver.errno = undefined
    expect(failures).toHaveLength(1)
    expect(noted()).toEqual([2, 1])
  })

  test.each(ERRNOS)('deleting chains that nothing uses fails with %s: it is done later', async (errno) => {
    await change(1, undefined)
    await change(2, undefined)
    expect(leftChains()).toHaveLength(2)
    await clock.advance(1001)
    driver.errno = errno
    driver.refuses = isSweeping
    const isGoneAlready = errno === 'ENOENT'
    if (!isGoneAlready) {
      await expect(finish()).rejects.toThrow(errno)
      expect(failedCleanups).toBe(1)
    } else await finish()
    await change(3, ['10.1.0.1'])
    driver.errno = undefined
    await finish()
    expect(leftChains()).toHaveLength(isGoneAlready ? 3 : 1)
  })

  test('one chain that is still in use does not keep the others', async () => {
    await change(1, undefined)
    await change(2, undefined)
    await clock.advance(1001)
    const [first] = leftChains()
    driver.errno = 'EBUSY'
    driver.refuses = (ops) => ops.some((op) => op.op === 'deleteChain' && op.name === first)
    await expect(finish()).rejects.toThrow('EBUSY')
    expect(leftChains()).toEqual([first])
    driver.errno = undefined
    await finish()
    expect(leftChains()).toEqual([])
  })

  test('shared rules that nothing uses are swept with the change that leaves them, or not at all', async () => {
    // One of these rules for each number of endpoints.
    const many = Array.from({ length: 20 }, (_, i) =>
      aClusterIpView(
        `10.97.0.${i}`,
        Array.from({ length: i + 3 }, (__, host) => `10.1.0.${host}`),
      ),
    )
    const rules = () => [...driver.table!.chains.values()].reduce((sum, chain) => sum + chain.rules.length, 0)
    const before = rules()
    const changes = many.map((after) => ({ name: after.name, before: undefined, after }))
    await programmer.sync(node, changes)
    expect(rules()).toBe(before + 20)
    const { transactions } = driver
    await programmer.sync(
      node,
      changes.map(({ name, after }) => ({ name, before: after, after: undefined })),
    )
    expect(driver.transactions).toBe(transactions + 1)
    expect(rules()).toBe(before)
  })
})
