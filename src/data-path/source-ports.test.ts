import { describe, expect, test, vi } from 'vitest'
import { SourcePorts } from './source-ports.ts'

const range = { first: 100, last: 109 }

describe('SourcePorts', () => {
  test('take() gives each port once, then ports that are shared', () => {
    const ports = new SourcePorts(SourcePorts.createMemory(), range)
    const taken = Array.from({ length: 10 }, () => ports.take()!)
    expect(taken.every(({ isExclusive }) => isExclusive)).toBe(true)
    expect(new Set(taken.map(({ port }) => port)).size).toBe(10)
    expect(ports.take()).toMatchObject({ isExclusive: false })
  })

  test('reserved ports are not given out, not even to share', () => {
    const reserved = new Set([100, 101, 102, 103, 104, 105, 106, 108])
    const ports = new SourcePorts(SourcePorts.createMemory(reserved), range)
    const taken = Array.from({ length: 40 }, () => ports.take()!.port)
    expect(new Set(taken)).toEqual(new Set([107, 109]))
    const none = new SourcePorts(SourcePorts.createMemory([...reserved, 107, 109]), range)
    expect(none.take()).toBeUndefined()
  })

  test('threads do not take the same', () => {
    const memory = SourcePorts.createMemory()
    const threads = [new SourcePorts(memory, range), new SourcePorts(memory, range)]
    const taken = Array.from({ length: 10 }, (_, i) => threads[i % 2]!.take()!.port)
    expect(new Set(taken).size).toBe(10)
  })

  test('a port that was given back is used again after all others', () => {
    const ports = new SourcePorts(SourcePorts.createMemory(), range)
    const first = ports.take()!.port
    ports.giveBack(first)
    const next = Array.from({ length: 10 }, () => ports.take()!)
    expect(next.map(({ port }) => port).indexOf(first)).toBe(9)
    expect(next.every(({ isExclusive }) => isExclusive)).toBe(true)
  })

  test('all threads know to which backend the last connection from a port went', () => {
    const memory = SourcePorts.createMemory()
    const [one, other] = [new SourcePorts(memory, range), new SourcePorts(memory, range)]
    const [backend, another] = [Uint8Array.of(1, 2, 3), Uint8Array.of(1, 2, 4)]
    expect(other.hasServed(100, backend)).toBe(false)
    one.noteBackend(100, backend)
    expect([backend, another].map((each) => other.hasServed(100, each))).toEqual([true, false])
    one.noteBackend(100, another)
    expect([backend, another].map((each) => other.hasServed(100, each))).toEqual([false, true])
  })

  test('thousands in a row that others keep do not hide those that are free', () => {
    const wide = { first: 32_768, last: 60_999 }
    const memory = SourcePorts.createMemory()
    new Int32Array(memory).fill(1, wide.first, 45_000)
    vi.spyOn(Math, 'random').mockReturnValueOnce(0).mockReturnValueOnce(0.25).mockReturnValueOnce(0.5)
    const ports = new SourcePorts(memory, wide)
    expect([ports.take(), ports.take()]).toEqual([
      { port: 46_884, isExclusive: true },
      { port: 46_885, isExclusive: true },
    ])
    vi.restoreAllMocks()
  })
})
