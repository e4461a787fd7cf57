import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aNodeView, arbitraryView, changesBetween, histories } from '../../../test/support/arbitrary-views.ts'
import { MemoryIptables } from '../../../test/support/memory-iptables.ts'
import { BackendList } from '../../model/backend-list.ts'
import { silentLogger } from '../../lib/log.ts'
import type { FrontendAddress, NodeView, ServicePortView } from '../../model/types.ts'
import { iptablesPlanner } from './plan/planner.ts'
import type { IptablesSettings } from './plan/settings.ts'
import { applyScript } from '../../../test/support/apply-script.ts'
import { formatTables } from '../../iptables/format.ts'
import type { Backend } from '../../iptables/script.ts'
import type { TableName, Tables } from '../../iptables/types.ts'
import { IptablesProgrammer } from './programmer.ts'
import { runs } from '../../../test/support/runs.ts'

const settings: IptablesSettings = {
  localhostNodePorts: 'allowed',
  invalidPackets: 'drop',
  masqueradePorts: 'fully',
  counters: new Set(['localhost_nps_accepted_pkts']),
}

class Bench {
  readonly refused: string[] = []
  readonly failures: string[] = []
  readonly rules = new Map<TableName, { total: number; written: number }>()
  readonly programmer: IptablesProgrammer
  readonly driver: MemoryIptables

  constructor(driver: MemoryIptables) {
    this.driver = driver
    this.programmer = new IptablesProgrammer({
      planner: iptablesPlanner(settings),
      driver,
      log: silentLogger,
      counts: {
        rules: (table, total, written) => this.rules.set(table, { total, written }),
        restoreFailed: (sync) => this.failures.push(sync),
      },
      onRefused: (service) => this.refused.push(service),
    })
  }
}

/** What the tables hold, with the rules of services in the common chains sorted: their order does not matter. */
function essence(tables: Tables): string {
  const sorted = Array.from(tables, ([name, chains]) => {
    const inOrder = Array.from(chains, ([chain, rules]) => {
      const isCommon = /^KUBE-(SERVICES|NODEPORTS|EXTERNAL-SERVICES|PROXY-FIREWALL)$/.test(chain)
      return [chain, isCommon ? [...rules].sort() : rules] as const
    })
    return [name, new Map(inOrder)] as const
  })
  return formatTables(new Map(sorted.sort(([a], [b]) => (a < b ? -1 : 1))))
}

async function fromScratch(node: NodeView, views: readonly ServicePortView[]): Promise<Tables> {
  const driver = new MemoryIptables()
  await new Bench(driver).programmer.syncAll(node, views)
  return driver.tables
}

function present(views: readonly (ServicePortView | undefined)[]): ServicePortView[] {
  return views.filter((view) => view !== undefined)
}

const backends: readonly Backend[] = ['nft', 'legacy']
const kinds = ([4, 6] as const).flatMap((family) => backends.map((backend) => ({ family, backend })))

describe.each(kinds)('IptablesProgrammer for IPv$family with iptables-$backend', ({ family, backend }) => {
  const node = aNodeView({ family })

  it('comes to the same tables step by step as from scratch', async () => {
    await fc.assert(
      fc.asyncProperty(histories(family), async (steps) => {
        const driver = new MemoryIptables(backend)
        const { programmer } = new Bench(driver)
        await programmer.syncAll(node, [])
        let before: (ServicePortView | undefined)[] = []
        for (const after of steps) {
          await programmer.sync(node, changesBetween(before, after))
          before = after
        }
        expect(essence(driver.tables)).toBe(essence(await fromScratch(node, present(before))))
      }),
      runs(100),
    )
  })

  it('turns any tables of ours into any others', async () => {
    await fc.assert(
      fc.asyncProperty(histories(family), histories(family), async (first, second) => {
        const [from, to] = [present(first.at(-1)!), present(second.at(-1)!)]
        const driver = new MemoryIptables(backend, await fromScratch(node, from))
        await new Bench(driver).programmer.syncAll(node, to)
        expect(essence(driver.tables)).toBe(essence(await fromScratch(node, to)))
        expect(driver.texts.length).toBeLessThanOrEqual(1)
      }),
      runs(100),
    )
  })

  it('says which UDP frontends were served before and are no more', async () => {
    const idsOf = (frontends: readonly FrontendAddress[]) =>
      frontends.map(({ address, port }) => `${address} ${port}`).sort()
    const udp = (views: readonly ServicePortView[]) =>
      views.flatMap(({ protocol, frontends }) => (protocol === 'UDP' ? frontends : []))
    await fc.assert(
      fc.asyncProperty(histories(family), histories(family), async (first, second) => {
        const [from, to] = [present(first.at(-1)!), present(second.at(-1)!)]
        const driver = new MemoryIptables(backend, await fromScratch(node, from))
        const { gone } = await new Bench(driver).programmer.syncAll(node, to)
        const stay = new Set(idsOf(udp(to)))
        const served = udp(from).filter((frontend) =>
          [frontend.fromPods, frontend.fromNode, frontend.fromOthers].some(({ verdict }) => verdict.kind === 'to'),
        )
        expect(idsOf(gone ?? [])).toEqual([...new Set(idsOf(served))].filter((id) => !stay.has(id)))
      }),
      runs(100),
    )
  })

  it('sends nothing when nothing is different', async () => {
    await fc.assert(
      fc.asyncProperty(histories(family), async (steps) => {
        const views = present(steps.at(-1)!)
        const driver = new MemoryIptables(backend, await fromScratch(node, views))
        const { programmer } = new Bench(driver)
        await programmer.syncAll(node, views)
        await programmer.sync(node, changesBetween(views, views))
        expect(driver.texts).toEqual([])
      }),
      runs(50),
    )
  })

  it('counts the rules that are there', async () => {
    await fc.assert(
      fc.asyncProperty(histories(family), async (steps) => {
        const bench = new Bench(new MemoryIptables(backend))
        await bench.programmer.syncAll(node, [])
        let before: (ServicePortView | undefined)[] = []
        for (const after of steps) {
          await bench.programmer.sync(node, changesBetween(before, after))
          before = after
        }
        for (const table of ['filter', 'nat'] as const) {
          const chains = [...bench.driver.tables.get(table)!].filter(([name]) => name.startsWith('KUBE-'))
          const there = chains.reduce((sum, [, rules]) => sum + rules.length, 0)
          expect(bench.rules.get(table)?.total).toBe(there)
        }
      }),
      runs(30),
    )
  })
})

/** Service ports with endpoints, each a different one. */
function served(count: number): ServicePortView[] {
  return Array.from({ length: count }, (_, index) => {
    const found = fc.sample(arbitraryView(4, index), { numRuns: 50, seed: 1 }).find((view) => view.backends.length > 1)
    return found!
  })
}

/** A service port with one list of so many endpoints. */
function withEndpoints(count: number): ServicePortView {
  const [view] = served(1)
  const backends = BackendList.of(
    Array.from({ length: count }, (_, i) => ({ ip: `10.64.${i >> 8}.${i & 255}`, port: 80, isLocal: false })),
  )
  const route = { verdict: { kind: 'to', policy: 'Cluster', backends }, masquerade: false } as const
  const [clusterIp] = view!.frontends
  return {
    ...view!,
    backends,
    lists: { Cluster: backends },
    frontends: [{ ...clusterIp!, fromPods: route, fromNode: route, fromOthers: route }],
  }
}

describe.each(backends)('IptablesProgrammer with iptables-%s', (backend) => {
  const node = aNodeView()

  it('leaves the rules of others alone', async () => {
    const mine = `*nat\n:MINE - [0:0]\n-A MINE -j ACCEPT\n-I PREROUTING -j MINE\nCOMMIT\n*filter\n-A INPUT -p icmp -j ACCEPT\nCOMMIT\n`
    const driver = new MemoryIptables(backend, applyScript(new Map(), mine))
    const { programmer } = new Bench(driver)
    const views = served(3)
    await programmer.syncAll(node, views)
    await programmer.sync(node, changesBetween(views, [undefined, undefined, undefined]))
    expect(driver.tables.get('nat')?.get('MINE')).toEqual(['-j ACCEPT'])
    expect(driver.tables.get('nat')?.get('PREROUTING')).toContain('-j MINE')
    expect(driver.tables.get('filter')?.get('INPUT')).toContain('-p icmp -j ACCEPT')
  })

  it('asks for a full sync after a failure', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    const [one, two] = served(2)
    await bench.programmer.syncAll(node, [one!])
    bench.driver.refuses = /./
    const changes = changesBetween([undefined], [two])
    await expect(bench.programmer.sync(node, changes)).rejects.toThrow('refuses')
    expect(bench.failures).toEqual(['partial'])
    await expect(bench.programmer.sync(node, [])).rejects.toThrow(/as a whole/)
    bench.driver.refuses = undefined
    await bench.programmer.syncAll(node, [one!, two!])
    expect(essence(bench.driver.tables)).toBe(essence(await fromScratch(node, [one!, two!])))
  })

  it('names the services whose rules are refused and programs all others', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    const views = served(12)
    bench.driver.refuses = /svc-(3|7):p/
    await bench.programmer.syncAll(node, views)
    expect(bench.refused.sort()).toEqual(['ns/svc-3:p', 'ns/svc-7:p'])
    const others = views.filter(({ name }) => !bench.refused.includes(name))
    expect(essence(bench.driver.tables)).toBe(essence(await fromScratch(node, others)))
  })

  it('keeps the services that work while it looks for one that does not', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    const views = served(5)
    await bench.programmer.syncAll(node, views.slice(0, 4))
    const before = bench.driver.texts.length
    bench.driver.refuses = /svc-4:p/
    await bench.programmer.syncAll(node, views)
    expect(bench.refused).toEqual(['ns/svc-4:p'])
    expect(bench.driver.texts.slice(before).join('')).not.toMatch(/^-A KUBE-SEP-.*svc-[0-3]:p/m)
  })

  it('programs a refused service when its rules have become acceptable', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    const [one, two] = served(2)
    bench.driver.refuses = /svc-1:p/
    await bench.programmer.syncAll(node, [one!, two!])
    bench.driver.refuses = undefined
    await bench.programmer.sync(node, [{ name: two!.name, before: two, after: two }])
    expect(essence(bench.driver.tables)).toBe(essence(await fromScratch(node, [one!, two!])))
  })

  it('does not blame a service when its own rules are refused', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    bench.driver.refuses = /KUBE-POSTROUTING/
    await expect(bench.programmer.syncAll(node, served(3))).rejects.toThrow('refuses')
    expect(bench.refused).toEqual([])
  })

  it('blames no service when the kernel takes no change at all', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    const views = served(4)
    await bench.programmer.syncAll(node, views.slice(0, 2))
    bench.driver.refuses = /./
    await expect(bench.programmer.syncAll(node, views)).rejects.toThrow('refuses')
    expect(bench.refused).toEqual([])
    bench.driver.refuses = undefined
    await bench.programmer.syncAll(node, views)
    expect(essence(bench.driver.tables)).toBe(essence(await fromScratch(node, views)))
  })

  it('blames no service when the machine lacks memory for a moment', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    const views = served(4)
    bench.driver.refusal = 'line 3: RULE_APPEND failed (Cannot allocate memory)'
    bench.driver.refuses = /./
    await expect(bench.programmer.syncAll(node, views)).rejects.toThrow('Cannot allocate memory')
    // All four, two of them, and one alone are too much; then there is memory again.
    bench.driver.refuses = {
      test: (section) => /svc-1:p/.test(section) && bench.failures.length < 4,
    }
    bench.failures.length = 0
    expect((await bench.programmer.syncAll(node, views)).refused).toBeUndefined()
    expect(bench.failures).toHaveLength(4)
    expect(bench.refused).toEqual([])
    expect(essence(bench.driver.tables)).toBe(essence(await fromScratch(node, views)))
  })

  it('serves all others when one service is too much for the memory of the machine', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    const views = served(4)
    bench.driver.refusal = 'line 3: RULE_APPEND failed (Cannot allocate memory)'
    bench.driver.refuses = /svc-1:p/
    await bench.programmer.syncAll(node, views)
    expect(bench.refused).toEqual(['ns/svc-1:p'])
    expect(essence(bench.driver.tables)).toBe(essence(await fromScratch(node, views.toSpliced(1, 1))))
  })

  it('tells of a refused service once, and that it is worth another comparison', async () => {
    const bench = new Bench(new MemoryIptables(backend))
    const views = served(3)
    bench.driver.refuses = /svc-1:p/
    expect((await bench.programmer.syncAll(node, views)).refused).toBe(1)
    expect((await bench.programmer.sync(node, [])).refused).toBe(1)
    expect((await bench.programmer.syncAll(node, views)).refused).toBe(1)
    expect(bench.refused).toEqual(['ns/svc-1:p'])
    bench.driver.refuses = undefined
    expect((await bench.programmer.syncAll(node, views)).refused).toBeUndefined()
    expect(essence(bench.driver.tables)).toBe(essence(await fromScratch(node, views)))
    bench.driver.refuses = /svc-1:p/
    bench.driver.tables = new Map()
    await bench.programmer.syncAll(node, views)
    expect(bench.refused).toEqual(['ns/svc-1:p', 'ns/svc-1:p'])
  })

  it('leaves out comments about endpoints when there are more than 1000', async () => {
    const driver = new MemoryIptables(backend)
    const { programmer } = new Bench(driver)
    await programmer.syncAll(node, [withEndpoints(1000)])
    expect(driver.texts.at(-1)).toContain('"ns/svc-0:p" -j KUBE-MARK-MASQ')
    await programmer.syncAll(node, [withEndpoints(1001)])
    expect(driver.texts.at(-1)).not.toContain('"ns/svc-0:p" -j KUBE-MARK-MASQ')
    expect(driver.texts.at(-1)).toMatch(/-A KUBE-SEP-\w+ -s 10\.64\.0\.0\/32 -j KUBE-MARK-MASQ/)
  })
})
