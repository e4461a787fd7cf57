import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { InlineDataPath } from '../../test/support/inline-data-path.ts'
import { Listeners, type ListenersOptions, type DesiredPool } from './listeners.ts'
import type { SeenAs } from './seen-as.ts'

const ANY = { first: 41_000, last: 42_000 }
const NODE: ReadonlySet<SeenAs> = new Set(['node'])

function desired(name: string): DesiredPool {
  const backends = [{ ip: '127.0.0.1', port: 9 }]
  return { name, protocol: 'TCP', backends, affinitySeconds: undefined, seenAs: NODE, preferredPort: () => undefined }
}

describe('Listeners', () => {
  let path: InlineDataPath
  let taken: ReturnType<typeof createServer>
  let port: number

  beforeEach(async () => {
    path = new InlineDataPath()
    taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    port = (taken.address() as { port: number }).port
  })
  afterEach(() => {
    taken.close()
    path[Symbol.dispose]()
  })

  function open(options: Partial<ListenersOptions> = {}): Listeners {
    const range = { first: port, last: port }
    const listeners = new Listeners({ family: 4, plane: path.plane, range, ephemeral: range, ...options })
    listeners.moveTo('127.0.0.1')
    return listeners
  }

  test('a range that is used up is not searched for each service again, until there is reason to', async () => {
    const listeners = open()
    const reason = `no port of the range ${port}-${port} is free`
    const serve = (name: string) => Array.from(listeners.serve(desired(name)).values(), (refusal) => refusal.reason)
    expect(serve('a')).toEqual([reason])
    taken.close()
    await once(taken, 'close')
    // It is free by now, which is not looked at.
    expect(serve('b')).toEqual([reason])
    listeners.lookForPorts()
    expect(serve('b')).toEqual([])
    // A listener of its own that is shut is a reason, too.
    expect(serve('a')).toEqual([reason])
    listeners.keep('b', new Set())
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(serve('a')).toEqual([])
  })

  test('listeners leave file descriptors to the rest of the process', () => {
    let endFd = 3
    let looked = 0
    const listeners = open({ range: undefined, ephemeral: ANY, endFd: () => (looked++, endFd) })
    const short = { reason: 'Cannot open a socket: EMFILE', lacks: 'fds' }
    expect([...listeners.serve(desired('a')).values()]).toEqual([short])
    // The next one is not tried, until there is reason to.
    expect([...listeners.serve(desired('b')).values()]).toEqual([short])
    expect(looked).toBe(1)
    endFd = 1000
    listeners.lookForFds()
    expect(['a', 'b'].map((name) => listeners.serve(desired(name)).size)).toEqual([0, 0])
  })

  test('no service gets more than half of the room, and any gets some', () => {
    const listeners = open({ range: undefined, ephemeral: { first: 41_000, last: 41_499 } })
    const serve = (service: string, port: number) =>
      Array.from(listeners.serve({ ...desired(`${service}:${port}`), service }).values(), ({ lacks }) => lacks)
    const served = (service: string) => Array.from({ length: 400 }, (_, port) => serve(service, port).length).indexOf(1)
    expect(served('ns/giant')).toBe(250)
    expect(served('ns/second')).toBe(125)
    for (let nth = 0; nth < 5; nth++) expect(serve(`ns/small-${nth}`, 80)).toEqual([])
    // A pool without a listener is not opened.
    expect(listeners.get('ns/giant:250')).toBeUndefined()
    for (let port = 0; port < 250; port++) listeners.keep(`ns/giant:${port}`, new Set())
    expect(serve('ns/second', 125)).toEqual([])
  })

  test('both families share the file descriptors', () => {
    const total = { open: 0 }
    const [four, six] = [0, 1].map(() => open({ range: undefined, ephemeral: ANY, endFd: () => 300, total }))
    const serve = (listeners: Listeners | undefined) =>
      Array.from({ length: 300 }, (_, i) => listeners?.serve({ ...desired(`${i}`), service: 'ns/giant' }).size ?? 0)
    expect([serve(four).indexOf(1), serve(six).indexOf(1)]).toEqual([150, 75])
    four?.releaseAll()
    six?.releaseAll()
    expect(total.open).toBe(0)
  })
})
