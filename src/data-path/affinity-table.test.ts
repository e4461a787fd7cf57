import { describe, expect, test } from 'vitest'
import { AffinityTable } from './affinity-table.ts'

describe('AffinityTable', () => {
  test('find() gives the backend that was remembered, until the client has been away for the timeout', () => {
    const table = new AffinityTable(1000)
    table.remember(1, 'a', 0)
    expect(table.find(1, 999)).toBe('a')
    expect(table.find(2, 0)).toBeUndefined()
    expect(table.find(1, 1000)).toBeUndefined()
  })

  test('findAffinity() says how long that will be', () => {
    const table = new AffinityTable(1000)
    table.remember(1, 'a', 100)
    expect(table.findAffinity(1, 400)).toEqual({ backend: 'a', leftMs: 700 })
    expect(table.findAffinity(1, 1100)).toBeUndefined()
    expect(table.findAffinity(2, 400)).toBeUndefined()
  })

  test('remember() starts the time again', () => {
    const table = new AffinityTable(1000)
    table.remember(1, 'a', 0)
    table.remember(1, 'a', 900)
    expect(table.find(1, 1800)).toBe('a')
  })

  test('a shorter timeout counts for clients that are known already', () => {
    const table = new AffinityTable(1000)
    table.remember(1, 'a', 0)
    table.timeoutMs = 100
    expect(table.find(1, 500)).toBeUndefined()
  })

  test('it forgets a client that has not come for long', () => {
    const table = new AffinityTable(1000)
    for (let client = 0; client < 100; client++) table.remember(client, 'a', 0)
    table.remember(1000, 'b', 1000)
    table.remember(1001, 'b', 2000)
    expect(table.size).toBe(2)
  })

  test('it never forgets a client that came within the timeout, and soon forgets one that did not', () => {
    const table = new AffinityTable(1000)
    for (let nowMs = 0; nowMs < 20_000; nowMs += 10) {
      table.remember(nowMs, 'a', nowMs)
      if (nowMs >= 990) expect(table.find(nowMs - 990, nowMs)).toBe('a')
      expect(table.size).toBeLessThanOrEqual(201)
    }
  })

  test('it remembers 65,535 clients, and not twice as many', () => {
    const table = new AffinityTable(1e9)
    for (let client = 0; client < 300_000; client++) table.remember(client, 'a', client)
    expect(table.find(300_000 - 65_535, 300_000)).toBe('a')
    expect(table.size).toBeLessThanOrEqual(2 * 65_535)
  })

  test('forget() forgets', () => {
    const table = new AffinityTable(1000)
    table.remember(1, 'a', 0)
    table.forget(1)
    expect(table.find(1, 0)).toBeUndefined()
  })
})
