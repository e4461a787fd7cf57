import { describe, expect, test } from 'vitest'
import { Balancer, type PoolBackend, type PoolContent } from './balancer.ts'
import { HealthBoard } from './pool-board.ts'
import { encodeAddress } from '../system/socket-address.ts'

const backends: PoolBackend[] = ['a', 'b', 'c'].map((id, slot) => ({
  id,
  slot,
  serial: slot,
  address: new Uint8Array(),
}))

function contentOf(ids: string, affinityMs?: number, health = HealthBoard.create(3)): PoolContent {
  return { backends: backends.filter(({ id }) => ids.includes(id)), health, affinityMs }
}

const somebody = encodeAddress('10.1.0.9', 4444)

const picks = (balancer: Balancer, count: number, { client = 1, nowMs = 0 } = {}) =>
  Array.from({ length: count }, () => balancer.pick(client, nowMs, somebody)?.id).join('')

describe('Balancer', () => {
  test('pick() takes the backends in turn', () => {
    expect(picks(new Balancer(contentOf('abc')), 7)).toBe('abcabca')
  })

  test('pick() takes turns with the other threads', () => {
    const content = contentOf('abc')
    const [one, other] = [new Balancer(content), new Balancer(content)]
    expect(picks(one, 1) + picks(other, 1) + picks(one, 1)).toBe('abc')
  })

  test('pick() takes those that weigh more in turn more often', () => {
    const [a, b] = backends
    expect(picks(new Balancer({ ...contentOf('ab'), turns: [a!, b!, a!] }), 7)).toBe('abaabaa')
  })

  test('pick() by a hash of the client gives it the same backend, and another while that fails', () => {
    const turns = Array.from({ length: 90 }, (_, i) => backends[i % 3]!)
    const [byClient, byConnection] = (['client', 'connection'] as const).map(
      (hashBy) => new Balancer({ ...contentOf('abc'), turns, hashBy }),
    )
    const ports = Array.from({ length: 50 }, (_, i) => encodeAddress('10.1.0.9', 40_000 + i))
    const chosen = (balancer: Balancer) => ports.map((from) => balancer.pick(1, 0, from)!)
    expect(new Set(chosen(byClient!)).size).toBe(1)
    expect(new Set(chosen(byConnection!)).size).toBe(3)
    expect(chosen(byConnection!)).toEqual(chosen(byConnection!))
    const [own] = chosen(byClient!)
    byClient!.failed(own!, 1, 0)
    const others = new Set(chosen(byClient!))
    expect(others.size).toBe(1)
    expect(others.has(own!)).toBe(false)
  })

  test('pick() gives no backend when there is none', () => {
    expect(new Balancer(contentOf('')).pick(1, 0, somebody)).toBeUndefined()
  })

  test('a backend that failed is passed over, and the others share its part evenly', () => {
    const balancer = new Balancer(contentOf('abc'))
    balancer.failed(backends[1]!, 1, 0)
    const chosen = picks(balancer, 60)
    expect(chosen).not.toContain('b')
    expect(chosen.split('a')).toHaveLength(31)
  })

  test('when all have failed, they are still tried', () => {
    const balancer = new Balancer(contentOf('abc'))
    for (const backend of backends) balancer.failed(backend, 1, 0)
    expect(new Set(picks(balancer, 3))).toEqual(new Set('abc'))
  })

  test('after a rest it is tried once, and again when it worked', () => {
    const balancer = new Balancer(contentOf('abc'))
    balancer.failed(backends[1]!, 1, 0)
    expect(picks(balancer, 30, { nowMs: 1500 }).split('b')).toHaveLength(2)
    balancer.worked(backends[1]!)
    expect(picks(balancer, 30, { nowMs: 1500 }).split('b')).toHaveLength(11)
  })

  test('with affinity a client gets the backend that it has been given, and others get theirs', () => {
    const balancer = new Balancer(contentOf('abc', 1000))
    const given = balancer.pick(1, 0, somebody)!
    balancer.remember(given, 1, 0)
    expect(new Set(picks(balancer, 5, { nowMs: 900 }))).toEqual(new Set(given.id))
    expect(new Set([2, 3, 4].map((client) => picks(balancer, 1, { client })))).toEqual(new Set('abc'))
  })

  test('with affinity, connections that a client begins at once have one backend, before any of them is there', () => {
    const balancer = new Balancer(contentOf('abc', 1000))
    expect(new Set(picks(balancer, 6)).size).toBe(1)
  })

  test('connections that fail together move the client once', () => {
    const balancer = new Balancer(contentOf('abc', 1000))
    const given = balancer.pick(1, 0, somebody)!
    balancer.failed(given, 1, 0)
    const next = picks(balancer, 1)
    balancer.failed(given, 1, 0)
    expect(picks(balancer, 5)).toBe(next.repeat(5))
  })

  test('affinity ends when the backend fails or is removed', () => {
    const balancer = new Balancer(contentOf('abc', 1000))
    balancer.remember(backends[0]!, 1, 0)
    balancer.failed(backends[0]!, 1, 0)
    expect(picks(balancer, 10)).not.toContain('a')
    balancer.remember(backends[1]!, 2, 0)
    balancer.update(contentOf('ac', 1000))
    expect(picks(balancer, 10, { client: 2 })).not.toContain('b')
  })

  test('update() keeps affinity to backends that stay, and switches it on and off', () => {
    const balancer = new Balancer(contentOf('abc', 1000))
    balancer.remember(backends[1]!, 1, 0)
    balancer.update(contentOf('bc', 1000))
    expect(picks(balancer, 3)).toBe('bbb')
    balancer.update(contentOf('abc'))
    expect(new Set(picks(balancer, 3))).toEqual(new Set('abc'))
    expect(balancer.isSticky).toBe(false)
  })

  test('what is said of a backend that was replaced does not fall back on the one that has its slot now', () => {
    const health = HealthBoard.create(3)
    const balancer = new Balancer(contentOf('abc', undefined, health))
    const heir: PoolBackend = { id: 'heir', slot: 0, serial: 9, address: new Uint8Array() }
    balancer.update({ backends: [heir], health, affinityMs: undefined })
    balancer.failed(backends[0]!, 1, 0)
    expect(health.health(0, 0).failures).toBe(0)
  })
})
