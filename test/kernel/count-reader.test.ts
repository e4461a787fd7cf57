// The counts of thousands of pairs, read from a real kernel while other work goes on.

import { execFileSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { COUNTING_TABLE, planCountingTable } from '../../src/nftables/counting-table.ts'
import { Counting } from '../../src/nftables/open-counting.ts'
import { CounterReader } from '../../src/modes/read-counters.ts'
import { trafficCounters } from '../../src/modes/traffic.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot, listWithNft, loadWithNft } from '../support/nft.ts'

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

/** The longest turn of the event loop while something goes on. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let lastMs = performance.now()
  let longestMs = 0
  let isOver = false
  const turn = () => {
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs)
    lastMs = nowMs
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  isOver = true
  return longestMs
}

describe.runIf(isRoot)('the reader of counts', () => {
  it('has what is counted at once, in turns that are shorter', async () => {
    const counting = new Counting(4, MOST)
    countPairs(MOST)
    const reader = new CounterReader(4, planCountingTable(4, MOST))
    const all = counting.read()
    const { pairs, total } = await reader.read(0)
    const idOf = new Map(pairs.map(({ id, frontend }) => [frontend.address, id]))
    const flat = all.pairs.map(({ sent, received, ...pair }) => ({
      ...pair,
      id: idOf.get(pair.frontend.address),
      sentPackets: sent.packets,
      sentBytes: sent.bytes,
      receivedPackets: received.packets,
      receivedBytes: received.bytes,
    }))
    const byFrontend = (list: readonly { readonly frontend: { readonly address: string } }[]) =>
      new Map(list.map((pair) => [pair.frontend.address, pair]))
    expect(new Set(idOf.values()).size).toBe(MOST)
    expect(byFrontend(pairs)).toEqual(byFrontend(flat))
    expect(total.begun).toBe(all.total.begun)
    // The best of some: others use the machine as well.
    const [atOnce, inTurns]: [number[], number[]] = [[], []]
    for (let round = 0; round < 5; round++) {
      const startMs = performance.now()
      counting.read()
      atOnce.push(performance.now() - startMs)
      inTurns.push(await longestTurn(() => reader.read(round)))
    }
    expect(Math.min(...inTurns)).toBeLessThan(Math.min(...atOnce) / 2)
    reader.close()
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
