import { describe, expect, test } from 'vitest'
import { Workers } from './workers.ts'

/** No thread is woken: the file descriptors do not exist. */
const noFd = -1

function aTeam(size: number): {
  readonly members: readonly Workers[]
  setBusy: (thread: number, busy: number) => void
} {
  const memory = Workers.createMemory(Array.from({ length: size }, () => noFd))
  const board = new Int32Array(memory.board)
  return {
    members: Array.from({ length: size }, (_, index) => new Workers(index, memory)),
    setBusy: (thread, busy) => (board[thread * 2] = busy),
  }
}

describe('Workers', () => {
  test('helper() is undefined while this thread has time', () => {
    const { members, setBusy } = aTeam(3)
    expect(members[0]!.helper()).toBeUndefined()
    setBusy(0, 500)
    expect(members[0]!.helper()).toBeUndefined()
  })

  test('helper() takes those in turn that have more time, and this thread too', () => {
    const { members, setBusy } = aTeam(3)
    setBusy(0, 900)
    expect(Array.from({ length: 6 }, () => members[0]!.helper())).toEqual([undefined, 1, 2, undefined, 1, 2])
    setBusy(1, 950)
    expect(Array.from({ length: 4 }, () => members[0]!.helper())).toEqual([undefined, 2, undefined, 2])
  })

  test('helper() of a workers of one is undefined', () => {
    const { members, setBusy } = aTeam(1)
    setBusy(0, 1000)
    expect(members[0]!.helper()).toBeUndefined()
  })

  test('threadForBulk() spreads large streams evenly', () => {
    const { members } = aTeam(3)
    const keeper = members[0]!
    const threads: number[] = []
    for (let i = 0; i < 6; i++) {
      keeper.countBulk(0, 1)
      const chosen = keeper.threadForBulk()
      threads.push(chosen ?? 0)
      if (chosen === undefined) continue
      keeper.countBulk(0, -1)
      keeper.countBulk(chosen, 1)
    }
    expect([0, 1, 2].map((thread) => threads.filter((each) => each === thread).length)).toEqual([2, 2, 2])
  })

  test('what is sent to a thread is received by that one', () => {
    const { members } = aTeam(2)
    members[0]!.send(1, [1, 42])
    expect(members[0]!.receive()).toBeUndefined()
    expect([...members[1]!.receive()!].slice(0, 2)).toEqual([1, 42])
  })

  test('updateLoad() notes how much of the time this thread has worked', () => {
    const memory = Workers.createMemory([noFd])
    const self = new Workers(0, memory)
    const busy = () => new Int32Array(memory.board)[0]!
    const work = () => {
      const startMs = performance.now()
      while (performance.now() - startMs < 100);
    }
    const rest = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
    /** Other programs may have the processors meanwhile, so one look may not be enough. */
    const looksAfter = (pass: () => void, isNoted: () => boolean) => {
      for (let look = 0; look < 50 && !isNoted(); look++) {
        pass()
        self.updateLoad(performance.now())
      }
      return isNoted()
    }
    self.updateLoad(performance.now())
    expect(looksAfter(work, () => busy() > 50)).toBe(true)
    expect(looksAfter(rest, () => busy() < 50)).toBe(true)
  })
})
