import * as fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { aNodeView, arbitraryView } from '../../../test/support/arbitrary-views.ts'
import { MemoryIpvs, MemoryLink } from '../../../test/support/memory-ipvs.ts'
import { FinishingProgrammer } from '../../../test/support/finishing-programmer.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { type Family, parseCidr } from '../../lib/ip.ts'
import { BackendList } from '../../model/backend-list.ts'
import type { NodeView, ServicePortView } from '../../model/types.ts'
import { ipvsPlanner } from './plan/planner.ts'
import { applyOps } from '../../nftables/apply-ops.ts'
import { nftFamily } from '../../nftables/language.ts'
import type { Op, Table } from '../../nftables/types.ts'
import type { Drained } from '../../ipvs/drain.ts'
import { formatServers } from '../../ipvs/format.ts'
import type { PlannedServer } from '../../ipvs/types.ts'
import { hasScheduler } from './probe.ts'
import { IpvsProgrammer } from './programmer.ts'
import { Schedulers } from './schedulers.ts'
import { runs } from '../../../test/support/runs.ts'
import { IpvsTableWatch } from './table-watch.ts'

class Machine {
  readonly servers = new MemoryIpvs()
  readonly link: MemoryLink
  readonly clock = new ManualClock()
  readonly drained: Drained[] = []
  readonly errors: unknown[] = []
  readonly missing: string[] = []
  foreignChanges = 0
  readonly watch = new IpvsTableWatch({
    table: this.servers.tableFile,
    clock: this.clock,
    onForeignChange: () => this.foreignChanges++,
    onError: (error) => this.errors.push(error),
  })
  readonly node: NodeView
  table: Table | undefined
  transactions = 0

  constructor(family: Family = 4, node: Partial<NodeView> = {}) {
    this.node = aNodeView({ family, ...node })
    this.link = new MemoryLink(['127.0.0.1', '::1', '10.200.1.10', 'fd00:200:1::10', '10.200.2.10'])
  }

  start(options: { excludeCidrs?: string[]; drainLimitMs?: number } = {}): FinishingProgrammer {
    const name = nftFamily(this.node.family)
    const programmer = new IpvsProgrammer({
      family: this.node.family,
      servers: this.servers,
      link: this.link,
      rules: {
        apply: (ops: readonly Op[]) => {
          this.table = applyOps(name, ipvsPlanner.table, this.table, ops)
          this.transactions++
          return { bytes: 1 }
        },
        read: () => this.table,
        readElements: () => [],
        close: () => {},
      },
      clock: this.clock,
      scheduler: 'rr',
      schedulers: new Schedulers({
        fallback: 'rr',
        has: (scheduler) => hasScheduler(this.servers, scheduler),
        onMissing: (service, reason) => this.missing.push(`${service}: ${reason}`),
      }),
      excludeCidrs: (options.excludeCidrs ?? []).map((text) => parseCidr(text)!),
      drainLimitMs: options.drainLimitMs ?? 3_600_000,
      audit: this.watch.of(this.node.family),
      onDrained: (drained) => this.drained.push(...drained),
      onError: (error) => this.errors.push(error),
    })
    return new FinishingProgrammer(programmer, this.clock)
  }

  /** What is in the kernel for the views, in words; destinations that are being drained apart. */
  get summary() {
    return {
      servers: formatServers(this.servers.plan().filter(({ destinations }) => destinations.length > 0)),
      addresses: [...this.link.own].sort(),
    }
  }
}

/** The essentials of a view: one cluster IP, and these backends. */
function view(hosts: readonly number[], wish: { protocol?: 'TCP' | 'UDP'; address?: string } = {}): ServicePortView {
  const { protocol = 'TCP', address = '10.96.0.1' } = wish
  const backends = BackendList.of(hosts.map((host) => ({ ip: `10.64.0.${host}`, port: 8080, isLocal: false })))
  const verdict =
    backends.length > 0
      ? ({ kind: 'to', policy: 'Cluster', backends } as const)
      : ({ kind: 'reject', reason: 'has no endpoints' } as const)
  const route = { verdict, masquerade: false }
  return {
    name: 'ns/web',
    namespace: 'ns',
    service: 'web',
    portName: '',
    protocol,
    frontends: [
      {
        kind: 'clusterIP',
        address,
        protocol,
        port: 80,
        fromPods: route,
        fromNode: route,
        fromOthers: route,
        isSplit: false,
        allowedSources: undefined,
        affinitySeconds: undefined,
      },
    ],
    lists: verdict.kind === 'to' ? { Cluster: backends } : {},
    backends,
    serving: [],
  }
}

async function scratch(family: Family, views: readonly ServicePortView[]) {
  const machine = new Machine(family)
  await machine.start().syncAll(machine.node, views)
  return machine
}

describe.each([4, 6] as const)('IpvsProgrammer for IPv%d', (family) => {
  const historiesOf = (port: (index: number) => fc.Arbitrary<ServicePortView>) =>
    fc.tuple(
      ...[0, 1, 2, 3].map((index) =>
        fc.array(fc.option(port(index), { nil: undefined, freq: 4 }), { minLength: 4, maxLength: 4 }),
      ),
    )

  const expectSameByChangesAsFromScratch = async (ports: readonly (readonly (ServicePortView | undefined)[])[]) => {
    const machine = new Machine(family)
    const programmer = machine.start()
    const at = (moment: number) => ports.map((history) => history[moment])
    const present = (moment: number) => at(moment).flatMap((each) => each ?? [])
    await programmer.syncAll(machine.node, present(0))
    for (let moment = 1; moment < 4; moment++) {
      const changes = at(moment).flatMap((after, i) => {
        const before = at(moment - 1)[i]
        return after === undefined && before === undefined ? [] : [{ name: `ns/svc-${i}:p`, before, after }]
      })
      await programmer.sync(machine.node, changes)
      expect(machine.summary).toEqual((await scratch(family, present(moment))).summary)
      // The order of services is that of their history, and tells nothing.
      expect(machine.summary).toEqual((await scratch(family, present(moment).toReversed())).summary)
    }
    await programmer.syncAll(machine.node, present(3))
    expect(await programmer.syncAll(machine.node, present(3))).toMatchObject({ transactions: 0, operations: 0 })
    await machine.start().syncAll(machine.node, present(3))
    expect(machine.summary).toEqual((await scratch(family, present(3))).summary)
  }

  test('gets to the same state by changes as from scratch, and a full sync then changes nothing', async () => {
    const histories = historiesOf((index) => arbitraryView(family, index))
    await fc.assert(fc.asyncProperty(histories, expectSameByChangesAsFromScratch), runs(60))
  })

  test('does so when an external address and port of a service is the node port of another', async () => {
    const nodeIp = family === 4 ? '10.200.1.10' : 'fd00:200:1::10'
    const histories = historiesOf((index) =>
      arbitraryView(family, index).map((port) =>
        onNodePort(port, { address: nodeIp, port: 30000 + ((index + 1) % 4) }),
      ),
    )
    await fc.assert(fc.asyncProperty(histories, expectSameByChangesAsFromScratch), runs(60))
  })
})

/** The same over TCP, with its external address at an address and port of the machine. */
function onNodePort(view: ServicePortView, { address, port }: { address: string; port: number }): ServicePortView {
  const protocol = 'TCP'
  const frontends = view.frontends.map((frontend) =>
    frontend.kind === 'externalIP' ? { ...frontend, protocol, address, port } : { ...frontend, protocol },
  )
  return { ...view, protocol, frontends } as ServicePortView
}

describe('IpvsProgrammer', () => {
  let machine: Machine
  let programmer: FinishingProgrammer
  const change = async (before: ServicePortView | undefined, after: ServicePortView | undefined) => {
    await programmer.sync(machine.node, [{ name: 'ns/web', before, after }])
  }
  const weights = () => machine.servers.read(4).flatMap(({ destinations }) => destinations.map(describeDestination))
  const describeDestination = ({ address, weight }: { address: string; weight: number }) => `${address}=${weight}`

  beforeEach(() => {
    machine = new Machine()
    programmer = machine.start()
  })

  test('one endpoint more is one message to IPVS', async () => {
    await programmer.syncAll(machine.node, [view([1])])
    machine.servers.takeApplied()
    await change(view([1]), view([1, 2]))
    expect(machine.servers.takeApplied()).toEqual(['addDestination 10.64.0.2 1'])
  })

  test('refuses changes before everything was programmed once, and after a failure', async () => {
    await expect(change(undefined, view([1]))).rejects.toThrow('Cannot program changes')
    await programmer.syncAll(machine.node, [])
    machine.servers.failNext = true
    await expect(change(undefined, view([1]))).rejects.toThrow('EBUSY')
    await expect(change(undefined, view([1]))).rejects.toThrow('Cannot program changes')
    await programmer.syncAll(machine.node, [view([1])])
    expect(weights()).toEqual(['10.64.0.1=1'])
  })

  test('binds addresses that the node does not have', async () => {
    await programmer.syncAll(machine.node, [view([1]), { ...view([1], { address: '10.200.2.10' }), name: 'ns/other' }])
    expect([...machine.link.own]).toEqual(['10.96.0.1'])
    await change(view([1]), undefined)
    expect([...machine.link.own]).toEqual([])
  })

  test('opens node ports on the addresses of the machine, but for loopback', async () => {
    machine = new Machine(4, { nodePortAddresses: { kind: 'all' } })
    const [clusterIp] = view([1]).frontends
    const port = {
      ...view([1]),
      frontends: [{ ...clusterIp!, kind: 'nodePort' as const, address: undefined, port: 30080 }],
    }
    await machine.start().syncAll(machine.node, [port])
    const open = machine.servers.read(4).map(({ server }) => `${server.address}:${server.port}`)
    expect(open).toEqual(['10.200.1.10:30080', '10.200.2.10:30080'])
  })

  test('lets one of two frontends have an address and port that both ask for', async () => {
    const [clusterIp] = view([1]).frontends
    const nodePort = { ...clusterIp!, kind: 'nodePort' as const, address: undefined }
    const twice = [view([1], { address: '10.200.1.10' }), { ...view([2]), name: 'ns/port', frontends: [nodePort] }]
    await programmer.syncAll(machine.node, twice)
    expect(weights()).toEqual(['10.64.0.1=1'])
    expect((await programmer.syncAll(machine.node, twice)).operations).toBe(0)
  })

  test('leaves servers in excluded ranges alone, and removes others', async () => {
    const foreign = (address: string): PlannedServer['server'] => ({
      family: 4,
      protocol: 'TCP',
      address,
      port: 1,
      scheduler: 'wlc',
      schedulerFlags: 0,
      persistenceSeconds: undefined,
    })
    const servers = [foreign('172.16.0.1'), foreign('172.17.0.1')]
    machine.servers.apply(servers.map((server) => ({ op: 'addServer', server })))
    await machine.start({ excludeCidrs: ['172.16.0.0/16'] }).syncAll(machine.node, [])
    expect(machine.servers.read(4).map(({ server }) => server.address)).toEqual(['172.16.0.1'])
  })

  test('tells of UDP servers that a full sync found and no service wants', async () => {
    const udp = view([1], { protocol: 'UDP' })
    await programmer.syncAll(machine.node, [udp])
    const { gone } = await machine.start().syncAll(machine.node, [])
    expect(gone).toMatchObject([{ address: '10.96.0.1', protocol: 'UDP', port: 80 }])
  })

  test('notices when another program changes virtual servers, and nothing else', async () => {
    await programmer.syncAll(machine.node, [view([1])])
    await machine.clock.advance(5000)
    await change(view([1]), view([1, 2]))
    await machine.clock.advance(5000)
    await change(view([1, 2]), view([2]))
    await change(view([2]), undefined)
    await machine.clock.advance(5000)
    await change(undefined, view([1, 2]))
    await machine.clock.advance(10_000)
    expect(machine.foreignChanges).toBe(0)
    const [server] = machine.servers.read(4)
    const [destination] = server!.destinations
    machine.servers.apply([{ op: 'deleteDestination', server: server!.server, destination: destination! }])
    await machine.clock.advance(5000)
    expect(machine.foreignChanges).toBe(1)
    await programmer.syncAll(machine.node, [view([1, 2])])
    await machine.clock.advance(5000)
    machine.servers.apply([{ op: 'deleteServer', server: server!.server }])
    await machine.clock.advance(5000)
    expect(machine.foreignChanges).toBe(2)
  })

  test('notices a change of another program right after a server of ours went', async () => {
    const other = { ...view([3], { address: '10.96.0.2' }), name: 'ns/other' }
    await programmer.syncAll(machine.node, [view([1, 2]), other])
    await change(view([1, 2]), undefined)
    const [server] = machine.servers.read(4)
    machine.servers.apply([{ op: 'deleteServer', server: server!.server }])
    await machine.clock.advance(5000)
    expect(machine.foreignChanges).toBe(1)
  })

  test('does not mistake its own changes for those of another program, made while the table is read', async () => {
    await programmer.syncAll(machine.node, [view([1])])
    let endpoints = [1]
    machine.servers.duringTableRead = () => {
      const more = [...endpoints, endpoints.length + 1]
      void change(view(endpoints), view(more))
      endpoints = more
    }
    await machine.clock.advance(60_000)
    expect(machine.foreignChanges).toBe(0)
    expect(endpoints.length).toBeGreaterThan(5)
    // However busy we are, it is found.
    const [server] = machine.servers.read(4)
    machine.servers.apply([{ op: 'deleteDestination', server: server!.server, destination: server!.destinations[0]! }])
    await machine.clock.advance(15_000)
    expect(machine.foreignChanges).toBe(1)
  })

  describe('drains a removed backend', () => {
    const remove = async () => {
      await programmer.syncAll(machine.node, [view([1, 2])])
      machine.servers.count('10.64.0.1', { activeConnections: 1 })
      machine.servers.takeApplied()
      await change(view([1, 2]), view([2]))
    }

    test('which keeps its connections and gets no new ones', async () => {
      await remove()
      expect(weights()).toEqual(['10.64.0.1=0', '10.64.0.2=1'])
      await machine.clock.advance(60_000)
      expect(weights()).toEqual(['10.64.0.1=0', '10.64.0.2=1'])
    })

    test('which leaves within a second of its last connection', async () => {
      await remove()
      await machine.clock.advance(10_000)
      machine.servers.count('10.64.0.1', { activeConnections: 0, inactiveConnections: 1 })
      machine.servers.connections = 'TCP 0A01000B 2CD6 0A600001 0050 0A400001 1F90 TIME_WAIT 118\n'
      await machine.clock.advance(1000)
      expect(weights()).toEqual(['10.64.0.2=1'])
      expect(machine.drained).toMatchObject([{ end: 'drained' }])
    })

    test('whose connections are listed only when the kernel counts none that are established', async () => {
      await remove()
      await machine.clock.advance(10_000)
      expect(machine.servers.connectionLooks).toBe(0)
      machine.servers.count('10.64.0.1', { activeConnections: 0, inactiveConnections: 1 })
      machine.servers.connections = 'TCP 0A01000B 2CD6 0A600001 0050 0A400001 1F90 FIN_WAIT 118\n'
      await machine.clock.advance(1000)
      expect(machine.servers.connectionLooks).toBe(2)
      expect(weights()).toEqual(['10.64.0.1=0', '10.64.0.2=1'])
    })

    test('whose connections are listed less often where that takes long', async () => {
      await remove()
      machine.servers.count('10.64.0.1', { activeConnections: 0, inactiveConnections: 1 })
      machine.servers.connections = 'TCP 0A01000B 2CD6 0A600001 0050 0A400001 1F90 FIN_WAIT 118\n'
      machine.servers.duringConnectionRead = () => new Promise((resolve) => void machine.clock.setTimeout(resolve, 500))
      await machine.clock.advance(105_000)
      expect(machine.servers.connectionLooks).toBe(10)
    })

    test('which leaves after the limit at the latest', async () => {
      await remove()
      await machine.clock.advance(3_601_000)
      expect(machine.drained).toMatchObject([{ end: 'limit' }])
      expect(weights()).toEqual(['10.64.0.2=1'])
    })

    test('which leaves at once without connections, in two messages', async () => {
      await programmer.syncAll(machine.node, [view([1, 2])])
      machine.servers.takeApplied()
      await change(view([1, 2]), view([2]))
      expect(machine.servers.takeApplied()).toEqual(['setDestination 10.64.0.1 0', 'deleteDestination 10.64.0.1'])
    })

    test('which leaves at once with UDP', async () => {
      await programmer.syncAll(machine.node, [view([1, 2], { protocol: 'UDP' })])
      machine.servers.count('10.64.0.1', { inactiveConnections: 5 })
      machine.servers.takeApplied()
      await change(view([1, 2], { protocol: 'UDP' }), view([2], { protocol: 'UDP' }))
      expect(machine.servers.takeApplied()).toEqual(['deleteDestination 10.64.0.1'])
    })

    test('which gets its weight back when it comes back', async () => {
      await remove()
      await change(view([2]), view([1, 2]))
      expect(weights()).toEqual(['10.64.0.1=1', '10.64.0.2=1'])
      await machine.clock.advance(5_000_000)
      expect(weights()).toEqual(['10.64.0.1=1', '10.64.0.2=1'])
    })

    test('and closes all that it has when something cannot be closed', () => {
      const closed: string[] = []
      machine.link.close = () => {
        closed.push('link')
        throw new Error('the link cannot be closed')
      }
      machine.servers.close = () => void closed.push('servers')
      expect(() => programmer.close()).toThrow('the link cannot be closed')
      expect(closed).toEqual(['link', 'servers'])
    })

    test('and goes on with it after a restart', async () => {
      await remove()
      programmer.close()
      programmer = machine.start()
      await programmer.syncAll(machine.node, [view([2])])
      expect(weights()).toEqual(['10.64.0.1=0', '10.64.0.2=1'])
      machine.servers.count('10.64.0.1', { activeConnections: 0 })
      await machine.clock.advance(1000)
      expect(weights()).toEqual(['10.64.0.2=1'])
    })

    test('the last of them with its server, which refuses new connections meanwhile', async () => {
      await programmer.syncAll(machine.node, [view([1])])
      machine.servers.count('10.64.0.1', { activeConnections: 1 })
      await change(view([1]), view([]))
      expect(weights()).toEqual(['10.64.0.1=0'])
      expect(machine.link.own).toContain('10.96.0.1')
      machine.servers.count('10.64.0.1', { activeConnections: 0 })
      await machine.clock.advance(1000)
      expect(machine.servers.read(4)).toEqual([])
      await change(view([]), view([3]))
      expect(weights()).toEqual(['10.64.0.3=1'])
    })

    test('and warns when that fails, and tries again', async () => {
      await remove()
      machine.servers.count('10.64.0.1', { activeConnections: 0 })
      machine.servers.failNext = true
      await machine.clock.advance(500)
      expect(machine.errors).toHaveLength(1)
      machine.servers.count('10.64.0.1', { activeConnections: 0 })
      await machine.clock.advance(500)
      expect(weights()).toEqual(['10.64.0.2=1'])
    })

    test('but not when its whole frontend goes', async () => {
      await remove()
      await change(view([2]), undefined)
      expect(machine.servers.read(4)).toEqual([])
    })
  })
})

describe('IpvsProgrammer, where the kernel lacks a scheduler that an annotation asks for', () => {
  const hashed = (port: ServicePortView): ServicePortView => {
    const backends = BackendList.of([...port.backends], 'hash-client')
    const route = { verdict: { kind: 'to', policy: 'Cluster', backends }, masquerade: false } as const
    const frontends = port.frontends.map((each) => ({ ...each, fromPods: route, fromNode: route, fromOthers: route }))
    return { ...port, frontends, lists: { Cluster: backends }, backends }
  }
  const schedulersOf = (machine: Machine) => machine.servers.plan().map(({ server }) => server.scheduler)
  const SAID = 'ns/web: this kernel has no scheduler mh (module ip_vs_mh); rr is used instead'

  test('the Service gets that of the configuration, which is said once, and no other Service notices', async () => {
    const machine = new Machine()
    machine.servers.lacks = ['mh']
    const programmer = machine.start()
    const [before, after] = [view([1, 2]), hashed(view([1, 2]))]
    await programmer.syncAll(machine.node, [before])
    await programmer.sync(machine.node, [{ name: 'ns/web', before, after }])
    const next = hashed(view([1, 2, 3]))
    await programmer.sync(machine.node, [{ name: 'ns/web', before: after, after: next }])
    await programmer.syncAll(machine.node, [next])
    expect(schedulersOf(machine)).toEqual(['rr'])
    expect(machine.missing).toEqual([SAID])
    await programmer.sync(machine.node, [{ name: 'ns/web', before: next, after: undefined }])
    await programmer.sync(machine.node, [{ name: 'ns/web', before: undefined, after }])
    expect(machine.missing).toEqual([SAID, SAID])
  })

  test('it gets its own with the next comparison when the module has come', async () => {
    const machine = new Machine()
    machine.servers.lacks = ['mh']
    const programmer = machine.start()
    await programmer.syncAll(machine.node, [hashed(view([1, 2]))])
    machine.servers.lacks = []
    await programmer.syncAll(machine.node, [hashed(view([1, 2]))])
    expect(schedulersOf(machine)).toEqual(['mh'])
    expect(machine.missing).toEqual([SAID])
  })
})
