// The counts of thousands of pairs, read from a real kernel while other work goes on.

import { execFileSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { COUNTING_TABLE } from '../../src/traffic/counting-table.ts'
import { Counting } from '../../src/traffic/open-counting.ts'
import { trafficCounters } from '../../src/modes/traffic.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot, listWithNft, loadWithNft } from '../support/nft.ts'
import { turnsDuring } from '../support/turns.ts'

const MOST = 8192

beforeAll(() => {
  if (!isRoot) return
  unshareNetwork()
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
})

/** As packets do: an element for each pair in every set. */
function countPairs(count: number): void {
  const key = (i: number) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255} . 80 . tcp . 10.200.0.${i & 127} . 8080`
  const elements = (packets: number) =>
    Array.from({ length: count }, (_, i) => `${key(i)} counter packets ${packets + i} bytes ${100 * (packets + i)}`)
  const sets = [
    ['sent', 2],
    ['received', 1],
    ['begun', 3],
  ] as const
  for (const [set, packets] of sets) {
    loadWithNft(`add element ip ${COUNTING_TABLE} ${set} { ${elements(packets).join(', ')} }`)
  }
}

describe.runIf(isRoot)('the reader of counts', () => {
  it('has all pairs, and works in turns', async () => {
    const counting = new Counting(4, MOST)
    countPairs(MOST)
    const { pairs } = await counting.read()
    const counted = new Map(pairs.map(({ id: _id, ...pair }) => [pair.frontend.address, pair]))
    expect(counted.size).toBe(MOST)
    expect(new Set(pairs.map(({ id }) => id)).size).toBe(MOST)
    for (const i of [0, 1, MOST - 1]) {
      const frontend = { address: `10.0.${i >> 8}.${i & 255}`, port: 80 }
      expect(counted.get(frontend.address)).toEqual({
        protocol: 'TCP',
        frontend,
        backend: { address: `10.200.0.${i & 127}`, port: 8080 },
        begun: 3 + i,
        sentPackets: 2 + i,
        sentBytes: 100 * (2 + i),
        receivedPackets: 1 + i,
        receivedBytes: 100 * (1 + i),
      })
    }
    // The best of some: others use the machine as well.
    const parts: number[] = []
    for (let round = 0; round < 5; round++) {
      const startMs = performance.now()
      const { longestMs } = await turnsDuring(() => counting.read())
      parts.push(longestMs / (performance.now() - startMs))
    }
    expect(Math.min(...parts)).toBeLessThan(1 / 3)
    counting.close()
  })

  it('says so when it is closed meanwhile, and leaves nothing', async () => {
    const counter = trafficCounters([4])(4)
    const reading = counter.read([])
    counter.close()
    await expect(reading).rejects.toThrow('counting has ended')
    expect(listWithNft()).not.toContain(COUNTING_TABLE)
  })
})
