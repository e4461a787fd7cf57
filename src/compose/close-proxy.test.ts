import { describe, expect, it } from 'vitest'
import { type Belongings, closeProxy } from './close-proxy.ts'

const order = [
  'addressWatch',
  'rest',
  'tripwire',
  'part 4',
  'part 6',
  'retry',
  'socketBalancing',
  'leastConnections',
  'mode',
  'servers',
  'answers',
  'source',
]

/** Belongings that note when they begin to close and when they have; the failing one rejects instead. */
function belongings(failing?: string) {
  const begun: string[] = []
  const closed: string[] = []
  const close = (name: string) => async () => {
    begun.push(name)
    await new Promise((resolve) => setImmediate(resolve))
    if (name === failing) throw new Error(`${name} failed`)
    closed.push(name)
  }
  const closable = (name: string) => ({ close: close(name), stop: close(name) })
  const owned: Belongings = {
    addressWatch: closable('addressWatch'),
    rest: closable('rest'),
    tripwire: closable('tripwire'),
    parts: [closable('part 4'), closable('part 6')],
    retry: closable('retry'),
    socketBalancing: closable('socketBalancing'),
    leastConnections: closable('leastConnections'),
    mode: closable('mode'),
    servers: closable('servers'),
    answers: closable('answers'),
    source: closable('source'),
  }
  return { owned, begun, closed }
}

describe('closeProxy()', () => {
  it('closes what is used after what uses it, each when the one before is closed', async () => {
    const { owned, begun, closed } = belongings()
    await closeProxy(owned)
    expect(closed).toEqual(order)
    expect(begun).toEqual(order)
  })

  it.each(order)('closes all others when %s cannot be closed', async (failing) => {
    const { owned, begun, closed } = belongings(failing)
    await expect(closeProxy(owned)).rejects.toThrow(`${failing} failed`)
    expect(begun).toEqual(order)
    expect(closed).toEqual(order.filter((name) => name !== failing))
  })
})
