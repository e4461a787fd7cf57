import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MemoryIpvs } from '../../test/support/memory-ipvs.ts'
import { diffPlans, diffState, type Draining } from './diff.ts'
import { formatServers } from './format.ts'
import { serverKey, type Destination, type PlannedServer, type VirtualServer } from './types.ts'

const noneDraining: Draining = { hasServer: () => false, has: () => false }

function server(port: number, wish: Partial<VirtualServer> = {}): VirtualServer {
  return {
    family: 4,
    protocol: 'TCP',
    address: '10.0.0.1',
    port,
    scheduler: 'rr',
    schedulerFlags: 0,
    persistenceSeconds: undefined,
    ...wish,
  }
}

function planned(port: number, ...hosts: readonly (number | Destination)[]): PlannedServer {
  return { server: server(port), destinations: hosts.map((host) => (typeof host === 'number' ? to(host) : host)) }
}

function to(host: number, weight = 1): Destination {
  return { address: `10.1.0.${host}`, port: 80, weight }
}

const arbitraryPlan: fc.Arbitrary<PlannedServer[]> = fc.uniqueArray(
  fc
    .record({
      port: fc.integer({ min: 1, max: 4 }),
      persistenceSeconds: fc.constantFrom(undefined, 60),
      hosts: fc.uniqueArray(fc.integer({ min: 1, max: 5 }), { maxLength: 4 }),
      weight: fc.integer({ min: 0, max: 2 }),
    })
    .map(({ port, persistenceSeconds, hosts, weight }) => ({
      server: server(port, { persistenceSeconds }),
      destinations: hosts.map((host) => to(host, host % 2 === 0 ? weight : 1)),
    })),
  { selector: (each) => serverKey(each.server), maxLength: 4 },
)

/** Carries out a difference, with retired destinations deleted at once. */
function carryOut(kernel: MemoryIpvs, { ops, retired, emptied }: ReturnType<typeof diffPlans>): void {
  kernel.apply(ops)
  kernel.apply(retired.map((each) => ({ op: 'deleteDestination', ...each })))
  kernel.apply(emptied.map((each) => ({ op: 'deleteServer', server: each })))
}

const served = (plan: readonly PlannedServer[]) =>
  formatServers(plan.filter(({ destinations }) => destinations.length > 0))
const inKernel = (kernel: MemoryIpvs) => formatServers(kernel.read(4))

describe('diffPlans()', () => {
  test('leads from any plan to any other, and from a plan to itself by nothing', () => {
    fc.assert(
      fc.property(arbitraryPlan, arbitraryPlan, (before, after) => {
        const kernel = new MemoryIpvs()
        carryOut(kernel, diffPlans([], before, noneDraining))
        expect(inKernel(kernel)).toBe(served(before))
        carryOut(kernel, diffPlans(before, after, noneDraining))
        expect(inKernel(kernel)).toBe(served(after))
        expect(diffPlans(after, after, noneDraining)).toMatchObject({ ops: [], retired: [] })
      }),
    )
  })

  test('costs what changed: one more destination is one operation', () => {
    const { ops } = diffPlans([planned(80, 1, 2)], [planned(80, 1, 2, 3)], noneDraining)
    expect(ops).toEqual([{ op: 'addDestination', server: server(80), destination: to(3) }])
  })

  test('retires destinations and does not delete them', () => {
    const { ops, retired } = diffPlans([planned(80, 1, 2)], [planned(80, 2)], noneDraining)
    expect(ops).toEqual([])
    expect(retired).toEqual([{ server: server(80), destination: to(1) }])
  })

  test('gives a destination that is still there its weight back', () => {
    const draining: Draining = { hasServer: () => true, has: (_, destination) => destination === '10.1.0.1 80' }
    const { ops } = diffPlans([planned(80, 2)], [planned(80, 1, 2)], draining)
    expect(ops).toEqual([{ op: 'setDestination', server: server(80), destination: to(1) }])
  })

  test('takes up a server that is there only for its last connections', () => {
    const draining: Draining = { hasServer: () => true, has: () => false }
    const { ops } = diffPlans([planned(80)], [planned(80, 1)], draining)
    expect(ops.map(({ op }) => op)).toEqual(['setServer', 'addDestination'])
  })

  test('deletes a server that is not planned any more, if it is there', () => {
    expect(diffPlans([planned(80)], [], noneDraining).ops).toEqual([])
    expect(diffPlans([planned(80, 1)], [], noneDraining).ops).toEqual([{ op: 'deleteServer', server: server(80) }])
    const draining: Draining = { hasServer: () => true, has: () => false }
    expect(diffPlans([planned(80)], [], draining).ops).toEqual([{ op: 'deleteServer', server: server(80) }])
  })

  test('moves an address from one service port to another', () => {
    const { ops, retired } = diffPlans([planned(80, 1)], [planned(80, 2)], noneDraining)
    expect(ops).toEqual([{ op: 'addDestination', server: server(80), destination: to(2) }])
    expect(retired).toHaveLength(1)
  })
})

describe('diffState()', () => {
  const nothingForeign = () => false

  test('leads from whatever is there to the plan, and then by nothing', () => {
    fc.assert(
      fc.property(arbitraryPlan, arbitraryPlan, (there, wanted) => {
        const kernel = new MemoryIpvs()
        carryOut(kernel, diffPlans([], there, noneDraining))
        carryOut(kernel, diffState(kernel.read(4), wanted, nothingForeign))
        expect(inKernel(kernel)).toBe(served(wanted))
        const again = diffState(kernel.read(4), wanted, nothingForeign)
        expect(again).toEqual({ ops: [], retired: [], emptied: [] })
      }),
    )
  })

  test('spares servers that are foreign, and deletes the others', () => {
    const kernel = new MemoryIpvs()
    carryOut(kernel, diffPlans([], [planned(80, 1), planned(81, 1)], noneDraining))
    const { ops } = diffState(kernel.read(4), [], ({ port }) => port === 80)
    expect(ops).toEqual([{ op: 'deleteServer', server: server(81) }])
  })

  test('makes destinations again that do not use NAT', () => {
    const kernel = new MemoryIpvs()
    carryOut(kernel, diffPlans([], [planned(80, 1)], noneDraining))
    kernel.count('10.1.0.1', { isNat: false })
    const { ops, retired } = diffState(kernel.read(4), [planned(80, 1)], nothingForeign)
    expect(ops.map(({ op }) => op)).toEqual(['deleteDestination', 'addDestination'])
    expect(retired).toEqual([])
  })

  test('keeps, of a server without backends, what has to be drained', () => {
    const kernel = new MemoryIpvs()
    carryOut(kernel, diffPlans([], [planned(80, 1)], noneDraining))
    const { ops, retired, emptied } = diffState(kernel.read(4), [planned(80)], nothingForeign)
    expect({ ops, retired: retired.length, emptied: emptied.length }).toEqual({ ops: [], retired: 1, emptied: 1 })
  })
})
