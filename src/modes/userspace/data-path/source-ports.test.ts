import { describe, expect, test } from 'vitest'
import { SourcePorts } from './source-ports.ts'

const range = { first: 100, last: 109 }

describe('SourcePorts', () => {
  test('take() gives each port once, then ports that are shared', () => {
    const ports = new SourcePorts(SourcePorts.createMemory(), range)
    const taken = Array.from({ length: 10 }, () => ports.take())
    expect(taken.every(({ isExclusive }) => isExclusive)).toBe(true)
    expect(new Set(taken.map(({ port }) => port)).size).toBe(10)
    expect(ports.take()).toMatchObject({ isExclusive: false })
  })

  test('threads do not take the same', () => {
    const memory = SourcePorts.createMemory()
    const threads = [new SourcePorts(memory, range), new SourcePorts(memory, range)]
    const taken = Array.from({ length: 10 }, (_, i) => threads[i % 2]!.take().port)
    expect(new Set(taken).size).toBe(10)
  })

  test('a port that was given back is used again after all others', () => {
    const ports = new SourcePorts(SourcePorts.createMemory(), range)
    const first = ports.take().port
    ports.giveBack(first)
    const next = Array.from({ length: 10 }, () => ports.take())
    expect(next.map(({ port }) => port).indexOf(first)).toBe(9)
    expect(next.every(({ isExclusive }) => isExclusive)).toBe(true)
  })
})
