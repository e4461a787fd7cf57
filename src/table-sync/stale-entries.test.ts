import { asBytes } from '../lib/ip.ts'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError } from '../lib/errors.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { atOnce } from '../lib/steps.ts'
import type { DynamicMap } from '../nftables/fragment.ts'
import { makeSet } from '../nftables/make-set.ts'
import type { TableDriver } from '../nftables/table-driver.ts'
import type { Element, Op } from '../nftables/types.ts'
import { StaleEntries } from './stale-entries.ts'

const set = makeSet('affinity', ['ipv4_addr'], { data: ['ipv4_addr'], dynamic: true })
const dynamicMap = (...allowedData: string[]): DynamicMap => ({ set, allowedData: allowedData.map(asBytes) })

/** A map of the kernel: from clients to endpoints. */
class Clients implements TableDriver {
  readonly entries = new Map<string, string>()
  looks = 0
  destroys = false
  failure: KernelError | undefined
  beforeRead = () => {}
  afterRead = () => {}
  onRead = () => {}

  apply(ops: readonly Op[]): { bytes: number } {
    const entries = new Map(this.entries)
    for (const op of ops) {
      for (const { key, data = '' } of 'elements' in op ? op.elements : []) {
        if (op.op === 'addElements' && (entries.get(key) ?? data) !== data) throw new KernelError('add', 'EEXIST')
        if (op.op === 'deleteElements' && !entries.has(key)) throw new KernelError('delete', 'ENOENT')
        if (op.op === 'addElements') entries.set(key, data)
        else entries.delete(key)
      }
    }
    this.entries.clear()
    for (const [key, data] of entries) this.entries.set(key, data)
    return { bytes: 1 }
  }

  readElements(): readonly Element[] {
    if (this.failure !== undefined) throw this.failure
    this.looks++
    this.beforeRead()
    const read = Array.from(this.entries, ([key, data]) => ({ key: asBytes(key), data: asBytes(data) }))
    this.afterRead()
    return read
  }

  read(): undefined {}
  close(): void {}
}

function open() {
  const clock = new ManualClock()
  const clients = new Clients()
  const failures: [unknown, number][] = []
  const mended: number[] = []
  const reports = {
    onFailed: (error: unknown, inMs: number) => failures.push([error, inMs]),
    onMended: () => mended.push(failures.length),
  }
  const stale = new StaleEntries({ driver: clients, clock, reports })
  /** As the queue does: at once, and again when it is time. */
  const clean = () => {
    const againInMs = atOnce(stale.cleaning())
    if (againInMs !== undefined) clock.setTimeout(clean, againInMs)
  }
  const shrinkTo = (...allowed: string[]) => {
    stale.changed([dynamicMap('gone')], [dynamicMap(...allowed)], [dynamicMap(...allowed)])
    clean()
  }
  /** What is due is done in turns of the event loop. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1000) {
      await clock.advance(1000)
      for (let turn = 0; turn < 5; turn++) await nextTurn()
    }
  }
  return { pass, clean, clock, clients, stale, failures, mended, shrinkTo }
}

describe('StaleEntries', () => {
  it('deletes at once what is no longer true, and looks again for what a packet was about to note', async () => {
    const { clock, clients, shrinkTo, pass } = open()
    clients.entries.set('a', 'gone').set('b', 'here')
    shrinkTo('here')
    expect([...clients.entries]).toEqual([['b', 'here']])
    clients.entries.set('late', 'gone')
    await pass(1000)
    expect([...clients.entries]).toEqual([['b', 'here']])
    // Something was found, so it looks once more, and then no longer.
    await pass(60_000)
    expect([clients.looks, clock.waiting]).toEqual([3, 0])
  })

  it('ends though somebody goes on to write what is wrong', async () => {
    const { clock, clients, shrinkTo, pass } = open()
    clients.beforeRead = () => clients.entries.set('wrong', 'gone')
    shrinkTo('here')
    await pass(60_000)
    expect([clients.looks, clock.waiting]).toEqual([11, 0])
  })

  it('goes by what is true when it looks again', async () => {
    const { clock, clients, stale, shrinkTo, pass } = open()
    shrinkTo('here')
    stale.changed([dynamicMap('here')], [dynamicMap('here', 'gone')], [])
    clients.entries.set('a', 'gone')
    await pass(60_000)
    expect([...clients.entries]).toEqual([['a', 'gone']])
    shrinkTo('here')
    stale.changed([dynamicMap('here')], [], [])
    await pass(60_000)
    expect(clock.waiting).toBe(0)
  })

  it('tries again what failed, more and more slowly, and nobody else fails with it', async () => {
    const { clock, clients, failures, mended, shrinkTo, pass } = open()
    clients.entries.set('a', 'gone')
    clients.failure = new KernelError('read', 'ENOMEM')
    shrinkTo('here')
    await pass(100_000)
    expect(failures.map(([, inMs]) => inMs).slice(0, 7)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
    expect(mended).toEqual([])
    clients.failure = undefined
    await pass(60_000)
    expect(mended.length).toBeGreaterThan(0)
    expect([clients.entries.size, clock.waiting]).toEqual([0, 0])
  })

  it('takes it that a map is gone', async () => {
    const { clock, clients, failures, shrinkTo } = open()
    clients.failure = new KernelError('read', 'ENOENT')
    shrinkTo('here')
    expect([failures, clock.waiting]).toEqual([[], 0])
  })

  it('after a comparison, looks again where something was found, or had changed', async () => {
    const { clients, stale, pass, clean } = open()
    const compare = async (isChanged: boolean) => {
      clients.looks = 0
      stale.compared([dynamicMap('here')], { isChanged })
      clean()
      await pass(60_000)
      return clients.looks
    }
    expect(await compare(false)).toBe(1)
    expect(await compare(true)).toBe(2)
    clients.entries.set('a', 'gone')
    expect(await compare(false)).toBe(2)
  })

  it.each(['destroy what is there', 'refuse to delete what is not there'])(
    'kernels that %s: no matter what expires',
    (kernel) => {
      const { clients, shrinkTo } = open()
      clients.destroys = kernel.startsWith('destroy')
      for (let i = 0; i < 12_000; i++) clients.entries.set(String(i), 'gone')
      clients.afterRead = () => [0, 17, 1999, 2000, 2001, 11_999].forEach((i) => clients.entries.delete(String(i)))
      shrinkTo('here')
      expect(clients.entries.size).toBe(0)
    },
  )

  it('older kernels: a client that has got another endpoint meanwhile keeps it', async () => {
    const { clients, shrinkTo, pass } = open()
    clients.entries.set('a', 'gone').set('b', 'gone')
    clients.afterRead = () => clients.entries.set('b', 'here')
    shrinkTo('here')
    await pass(1000)
    expect([...clients.entries]).toEqual([['b', 'here']])
  })
})
