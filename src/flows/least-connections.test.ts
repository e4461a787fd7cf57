import { expect, test } from 'vitest'
import { nodeView } from '../../test/support/kube-objects.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { EndEvent } from '../conntrack/watch-ends.ts'
import { silentLogger } from '../lib/log.ts'
import { BackendList } from '../model/backend-list.ts'
import type { ServicePortView } from '../model/types.ts'
import { LeastConnections } from './least-connections.ts'

/** A service port with so many backends, from 10.N.0.0 on. */
function view(name: string, net: number, count: number): ServicePortView {
  const backends = Array.from({ length: count }, (_, i) => {
    return { ip: `10.${net}.${i >> 8}.${i & 255}`, port: 8080, isLocal: false }
  })
  return { name, protocol: 'TCP', backends: BackendList.of(backends, 'least-connections') } as ServicePortView
}

function setUp() {
  const clock = new ManualClock()
  const asked: string[] = []
  let moves = false
  let refusals = 0
  let onEvent: (event: EndEvent) => void = () => {}
  const counting = new LeastConnections({
    onLoads: (_, name) => {
      asked.push(name)
      return moves
    },
    clock,
    log: silentLogger,
    kernel: {
      watchEnds: (options) => {
        if (refusals > 0) throw new Error(`refused, ${refusals--}`)
        onEvent = options.onEvent
        return { close: () => {} }
      },
      readOpen: () => Promise.resolve(),
    },
  })
  const show = (name: string, after: ServicePortView | undefined) =>
    counting.follow(nodeView(), [{ name, before: undefined, after }])
  /** Who was asked about in one look. */
  const look = async () => {
    asked.length = 0
    await clock.advance(500)
    return [...asked]
  }
  const connect = (id: number) =>
    onEvent({ kind: 'begun', id, protocol: 6, reply: { src: '10.1.0.1', sport: 8080 } } as EndEvent)
  return {
    counting,
    show,
    look,
    connect,
    setMoves: (value: boolean) => (moves = value),
    refuse: (times: number) => (refusals = times),
  }
}

test('counts for so many backends and no more: service ports beyond come when there is room', async () => {
  const { counting, show, look } = setUp()
  show('default/first', view('default/first', 1, 40_000))
  show('default/second', view('default/second', 2, 40_000))
  expect(await look()).toEqual(['default/first'])
  show('default/first', undefined)
  expect(await look()).toEqual([])
  show('default/second', view('default/second', 2, 40_000))
  expect(await look()).toEqual(['default/second'])
  counting.close()
})

test('asks nothing about a service port without traffic, once its shares are back, nor of one with a single backend', async () => {
  const { counting, show, look, connect, setMoves } = setUp()
  show('default/web', view('default/web', 1, 2))
  show('default/one', view('default/one', 2, 1))
  setMoves(true)
  expect(await look()).toEqual(['default/web'])
  expect(await look()).toEqual(['default/web'])
  setMoves(false)
  expect(await look()).toEqual(['default/web'])
  expect(await look()).toEqual([])
  for (let id = 0; id < 10; id++) connect(id)
  expect(await look()).toEqual(['default/web'])
  counting.close()
})

test('what the kernel refused is tried again by itself, and not with each change', async () => {
  const { counting, show, look, refuse } = setUp()
  refuse(2)
  show('default/web', view('default/web', 1, 2))
  for (let i = 0; i < 10; i++) show('default/web', view('default/web', 1, 2 + i))
  // After half a second, and a second after that.
  for (let i = 0; i < 3; i++) expect(await look()).toEqual([])
  expect(await look()).toEqual(['default/web'])
  counting.close()
})
