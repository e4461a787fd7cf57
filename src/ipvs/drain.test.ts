import { beforeEach, describe, expect, test } from 'vitest'
import { unused } from '../../test/support/memory-ipvs.ts'
import { DrainList } from './drain.ts'
import { serverKey, type Destination, type DestinationState, type VirtualServer } from './types.ts'

const server: VirtualServer = {
  family: 4,
  protocol: 'TCP',
  address: '10.0.0.1',
  port: 80,
  scheduler: 'rr',
  schedulerFlags: 0,
  persistenceSeconds: undefined,
}
const udp: VirtualServer = { ...server, protocol: 'UDP' }
const backend: Destination = { address: '10.1.0.1', port: 8080, weight: 3 }
const other: Destination = { ...backend, address: '10.1.0.2' }
const drained = { op: 'deleteDestination', server, destination: backend }

function state(counts: Partial<DestinationState> = {}): DestinationState {
  return { ...backend, ...unused, weight: 0, ...counts }
}

let list: DrainList
beforeEach(() => {
  list = new DrainList({ limitMs: 100_000 })
})

function look(counts: Partial<DestinationState>, nowMs = 0, open: number | undefined = 1) {
  const result = list.check({ server, destinations: [state(counts)], openConnections: () => open }, nowMs)
  list.remove(result.drained)
  return result
}

describe('DrainList', () => {
  test('retire() takes new connections from a destination', () => {
    expect(list.retire([{ server, destination: backend }], 0)).toEqual([
      { op: 'setDestination', server, destination: { ...backend, weight: 0 } },
    ])
    expect(list.has(serverKey(server), '10.1.0.1 8080')).toBe(true)
  })

  test('retire() leaves what has no weight as it is: so does a restarted proxy find it', () => {
    expect(list.retire([{ server, destination: { ...backend, weight: 0 } }], 0)).toEqual([])
    expect(list.size).toBe(1)
  })

  test('retire() deletes UDP at once', () => {
    expect(list.retire([{ server: udp, destination: backend }], 0)).toEqual([
      { op: 'deleteDestination', server: udp, destination: backend },
    ])
    expect(list.isEmpty).toBe(true)
  })

  test('check() deletes a destination without connections', () => {
    list.retire([{ server, destination: backend }], 0)
    expect(look({})).toMatchObject({ ops: [drained], drained: [{ end: 'drained' }] })
    expect(list.isEmpty).toBe(true)
  })

  test('check() decides the same again until it is carried out', () => {
    list.retire([{ server, destination: backend }], 0)
    const again = () => list.check({ server, destinations: [state()], openConnections: () => 0 }, 0)
    expect(again()).toEqual(again())
    list.remove(again().drained)
    expect(again().ops).toEqual([])
  })

  test('check() waits for established connections, and for others that may still carry data', () => {
    list.retire([{ server, destination: backend }], 0)
    expect(look({ activeConnections: 1 }).ops).toEqual([])
    expect(look({ inactiveConnections: 2 }, 0, 1).ops).toEqual([])
    expect(look({ inactiveConnections: 2 }, 0, 0).ops).toEqual([drained])
  })

  test('check() waits until the kernel has forgotten the connections when their state is unknown', () => {
    list.retire([{ server, destination: backend }], 0)
    expect(look({ inactiveConnections: 1 }, 0, undefined).ops).toEqual([])
    expect(look({}, 0, undefined).ops).toEqual([drained])
  })

  test('check() cuts off what is open after the limit', () => {
    list.retire([{ server, destination: backend }], 1000)
    expect(look({ activeConnections: 1 }, 100_999).ops).toEqual([])
    expect(look({ activeConnections: 1 }, 101_000).drained).toMatchObject([{ end: 'limit' }])
  })

  test('check() gives up a destination that is asked again and again and never answers', () => {
    list.retire([{ server, destination: backend }], 0)
    const asked = (packetsIn: bigint, nowMs: number) =>
      look({ activeConnections: 1, packetsIn, packetsOut: 5n }, nowMs).drained.map(({ end }) => end)
    expect(asked(10n, 0)).toEqual([])
    expect([asked(11n, 1000), asked(12n, 3000), asked(12n, 4000), asked(13n, 7000)].flat()).toEqual([])
    expect(asked(13n, 15_999)).toEqual([])
    expect(asked(14n, 16_000)).toEqual(['silent'])
  })

  test('check() does not take the last acknowledgement of an idle connection for a call without an answer', () => {
    list.retire([{ server, destination: backend }], 0)
    look({ activeConnections: 1, packetsIn: 10n, packetsOut: 10n }, 0)
    look({ activeConnections: 1, packetsIn: 11n, packetsOut: 10n }, 500)
    for (const nowMs of [20_000, 40_000, 60_000]) {
      expect(look({ activeConnections: 1, packetsIn: 11n, packetsOut: 10n }, nowMs).drained).toEqual([])
    }
  })

  test('check() starts again with each answer', () => {
    list.retire([{ server, destination: backend }], 0)
    for (let second = 0; second < 60; second++) {
      const packets = { packetsIn: BigInt(10 + second), packetsOut: BigInt(1 + Math.floor(second / 10)) }
      expect(look({ activeConnections: 1, ...packets }, second * 1000).drained).toEqual([])
    }
  })

  test('check() forgets what another program has deleted', () => {
    list.retire([{ server, destination: backend }], 0)
    const { ops, drained } = list.check({ server, destinations: [], openConnections: () => 0 }, 0)
    list.remove(drained)
    expect({ ops, drained }).toMatchObject({ ops: [], drained: [{ end: 'gone' }] })
    expect(list.isEmpty).toBe(true)
  })

  test('empty() deletes a server with its last destination', () => {
    list.retire([{ server, destination: backend }], 0)
    expect(list.empty([server])).toEqual([])
    expect(look({}).ops).toEqual([drained, { op: 'deleteServer', server }])
  })

  test('empty() deletes a server at once that has nothing to wait for', () => {
    expect(list.empty([server])).toEqual([{ op: 'deleteServer', server }])
  })

  test('note() keeps a server that is used again', () => {
    list.retire([{ server, destination: backend }], 0)
    list.empty([server])
    list.note([
      { op: 'setServer', server },
      { op: 'addDestination', server, destination: other },
    ])
    expect(look({}).ops).toEqual([drained])
  })

  test('note() forgets a destination that came back, and a server that was deleted', () => {
    list.retire([{ server, destination: backend }], 0)
    list.note([{ op: 'setDestination', server, destination: backend }])
    expect(list.isEmpty).toBe(true)
    list.retire([{ server, destination: backend }], 0)
    list.note([{ op: 'deleteServer', server }])
    expect(list.isEmpty).toBe(true)
  })

  test('inherit() keeps the time at which the wait began', () => {
    list.retire([{ server, destination: backend }], 0)
    const before = list
    list = new DrainList({ limitMs: 100_000 })
    list.retire([{ server, destination: { ...backend, weight: 0 } }], 90_000)
    list.inherit(before)
    expect(look({ activeConnections: 1 }, 100_000).drained).toMatchObject([{ end: 'limit' }])
  })
})
