// Many transactions, sent by a second thread while the next is made.

import { bytesOf } from '../../src/lib/ip.ts'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { KernelError } from '../../src/lib/errors.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import type { Element, Op } from '../../src/nftables/types.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot, nft } from '../support/nft.ts'
import { makeSet } from '../../src/nftables/make-set.ts'

const set = makeSet('numbers', ['integer'])
const TRANSACTIONS = 200
const EACH = 50

const element = (n: number): Element => ({ key: bytesOf(0, 0, n >> 8, n & 255) })
const elements = (transaction: number) => Array.from({ length: EACH }, (_, i) => element(transaction * EACH + i))

/** The thread takes a moment to begin: until then the caller sends. */
function* slowly(last: number, failing?: number): Generator<readonly Op[]> {
  const clock = new Int32Array(new SharedArrayBuffer(4))
  for (let i = 0; i < last; i++) {
    Atomics.wait(clock, 0, 0, 5)
    yield i === failing
      ? [{ op: 'deleteElements', set, elements: [element(0xffff)] }]
      : [{ op: 'addElements', set, elements: elements(i) }]
  }
}

describe.skipIf(!isRoot)('NftablesDriver.applyEach() (needs root)', () => {
  let driver: NftablesDriver

  beforeAll(() => {
    unshareNetwork()
    driver = new NftablesDriver({ family: 'ip', table: 't' })
    return () => driver.close()
  })
  afterEach(() => void nft('flush', 'ruleset'))

  const create = () =>
    driver.apply([
      { op: 'addTable', comment: undefined },
      { op: 'addSet', set },
    ])

  it('carries out all of them, in order, and tells of each', () => {
    create()
    const before = driver.commits
    const told: number[] = []
    driver.applyEach(slowly(TRANSACTIONS), (ops, bytes) => {
      expect(bytes).toBeGreaterThan(EACH * 8)
      told.push((ops[0] as unknown as { elements: Element[] }).elements[0]!.key.charCodeAt(3))
    })
    expect(driver.commits - before).toBe(TRANSACTIONS)
    expect(told).toEqual(Array.from({ length: TRANSACTIONS }, (_, i) => (i * EACH) & 255))
    expect(driver.readElements(set).length).toBe(TRANSACTIONS * EACH)
  })

  it('waits for each of them, however fast they come', () => {
    create()
    const [first, last] = [50 * EACH, 20_000]
    const transactions = function* (): Generator<readonly Op[]> {
      yield* slowly(50)
      for (let n = first; n < last; n++) yield [{ op: 'addElements', set, elements: [element(n)] }]
    }
    let told = 0
    driver.applyEach(transactions(), () => told++)
    expect(told).toBe(50 + last - first)
    expect(driver.readElements(set).length).toBe(last)
  })

  it('ends with the first that the kernel refuses, and says which it was', () => {
    create()
    const failing = 150
    let told = 0
    const work = () => driver.applyEach(slowly(TRANSACTIONS, failing), () => told++)
    expect(work).toThrow(KernelError)
    expect(told).toBe(failing)
    const present = new Set(driver.readElements(set).map(({ key }) => key))
    expect(present.has(element(failing * EACH - 1).key)).toBe(true)
    expect(present.size).toBe(failing * EACH)
    driver.apply([{ op: 'deleteElements', set, elements: [element(0)] }])
    expect(driver.readElements(set).length).toBe(present.size - 1)
  })

  it('fails with what the transactions fail with, when it has done those before', () => {
    create()
    const work = () =>
      driver.applyEach(
        (function* () {
          yield* slowly(100)
          throw new Error('cannot plan')
        })(),
        () => {},
      )
    expect(work).toThrow('cannot plan')
    expect(driver.readElements(set).length).toBe(100 * EACH)
  })
})
