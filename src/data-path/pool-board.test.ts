import { describe, expect, test } from 'vitest'
import {
  ACTIVE,
  type BackendHealth,
  CONNECTIONS,
  countersOf,
  createCounters,
  HealthBoard,
  totalsOf,
} from './pool-board.ts'

describe('counters', () => {
  test('totalsOf() adds up what the threads have counted', () => {
    const memory = createCounters(3)
    countersOf(memory, 0)[CONNECTIONS]! += 5
    countersOf(memory, 2)[CONNECTIONS]! += 7
    countersOf(memory, 2)[ACTIVE]! -= 1
    expect(totalsOf(memory)).toMatchObject({ connections: 12, active: -1, retries: 0 })
  })
})

describe('HealthBoard', () => {
  const rest = ({ restsForMs }: BackendHealth) => Math.round(restsForMs / 100) * 100

  test('a backend that has not failed may always be tried', () => {
    const board = HealthBoard.create(2)
    for (let i = 0; i < 3; i++) expect(board.mayTry(0, i)).toBe(true)
  })

  test('one that failed rests for a second, and twice as long after each further failure, up to a minute', () => {
    const board = HealthBoard.create(1)
    const rests: number[] = []
    let nowMs = 5000
    for (let i = 0; i < 9; i++) {
      expect(board.mayTry(0, nowMs)).toBe(true)
      board.failed(0, nowMs + 250, nowMs)
      rests.push(rest(board.health(0, nowMs + 250)))
      nowMs += 250 + rests.at(-1)!
    }
    expect(rests).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
  })

  test('many connections that tried it before it was known to fail count once', () => {
    const board = HealthBoard.create(1)
    for (let i = 0; i < 20; i++) board.failed(0, 250 + i, i)
    expect(board.health(0, 270)).toMatchObject({ failures: 1 })
    // Refused, all within the same moment.
    expect(board.mayTry(0, 1300)).toBe(true)
    for (let i = 0; i < 20; i++) board.failed(0, 1300, 1300)
    expect(board.health(0, 1300)).toMatchObject({ failures: 2, restsForMs: 2000 })
  })

  test('afterwards one client may try it, and the others when that went well', () => {
    const board = HealthBoard.create(1)
    board.failed(0, 0)
    expect(board.mayTry(0, 990)).toBe(false)
    expect(board.mayTry(0, 1000)).toBe(true)
    expect(board.mayTry(0, 1000)).toBe(false)
    board.forgive(0)
    expect(board.mayTry(0, 1000)).toBe(true)
    expect(board.health(0, 1000)).toEqual({ failures: 0, restsForMs: 0 })
  })

  test('a client that never says how it went does not keep the others away for ever', () => {
    const board = HealthBoard.create(1)
    board.failed(0, 0)
    expect(board.mayTry(0, 1000)).toBe(true)
    expect(board.mayTry(0, 1500)).toBe(false)
    expect(board.mayTry(0, 2000)).toBe(true)
  })

  test('other backends are not concerned', () => {
    const board = HealthBoard.create(2)
    board.failed(0, 0)
    expect(board.mayTry(1, 0)).toBe(true)
  })

  test('times may run over 32 bits', () => {
    const board = HealthBoard.create(1)
    const nearlyOverMs = 2 ** 31 * 10 - 100
    board.failed(0, nearlyOverMs)
    expect(board.mayTry(0, nearlyOverMs + 500)).toBe(false)
    expect(board.mayTry(0, nearlyOverMs + 1000)).toBe(true)
  })

  test('grownTo() keeps what is known, and has room for more', () => {
    const board = HealthBoard.create(1)
    board.nextTurn()
    board.failed(0, 0)
    const grown = board.grownTo(3)
    expect(grown.slots).toBe(3)
    expect(grown.nextTurn()).toBe(1)
    expect(grown.health(0, 0).failures).toBe(1)
    expect(grown.health(2, 0).failures).toBe(0)
  })

  test('all threads that share the memory share the turns', () => {
    const board = HealthBoard.create(1)
    const other = new HealthBoard(board.memory)
    expect([board.nextTurn(), other.nextTurn(), board.nextTurn()]).toEqual([0, 1, 2])
  })
})
