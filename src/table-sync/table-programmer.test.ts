import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aNodeView, arbitraryView, changesBetween, histories } from '../../test/support/arbitrary-views.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError } from '../lib/errors.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { BackendList } from '../model/backend-list.ts'
import { type Family, asBytes } from '../lib/ip.ts'
import type { Backend, Frontend, FrontendAddress, ServicePortView } from '../model/types.ts'
import { nftablesPlanner } from '../modes/nftables/plan/planner.ts'
import { schemaFor } from '../modes/nftables/plan/schema.ts'
import { applyOps } from '../nftables/apply-ops.ts'
import { formatTable } from '../nftables/format.ts'
import { nftFamily } from '../nftables/language.ts'
import { integerField } from '../nftables/fields.ts'
import { ownTable } from '../nftables/update-table.ts'
import type { TableParts } from '../nftables/table-driver.ts'
import type { Chain, Element, NftSet, Op, Table } from '../nftables/types.ts'
import { TableProgrammer } from './table-programmer.ts'
import { runs } from '../../test/support/runs.ts'

/** The kernel's table, in memory. */
class MemoryTable {
  table: Table | undefined
  transactions = 0
  failNext = false
  failure = new Error('refused')
  /** Of the last transaction. */
  lastOps: readonly Op[] = []
  /** Of all of them. */
  readonly ops: Op[] = []
  readonly parts?: TableParts
  keysRead = 0
  readonly #family: Family

  constructor(family: Family, table?: Table, isRead: Reading = 'whole') {
    this.#family = family
    this.table = table
    if (isRead === 'by keys') this.parts = this.#readByKeys()
  }

  apply(ops: readonly Op[]): { bytes: number } {
    if (this.failNext) {
      this.failNext = false
      throw this.failure
    }
    this.table = applyOps(nftFamily(this.#family), nftablesPlanner.table, this.table, ops)
    this.transactions++
    this.lastOps = ops
    this.ops.push(...ops)
    return { bytes: ops.length }
  }

  read(): Table | undefined {
    return this.table
  }

  readElements(): [] {
    return []
  }

  close(): void {}

  /** However few there are. */
  #readByKeys(): TableParts {
    const copy = () => this.table && ownTable(this.table)
    const elementsOf = ({ name }: NftSet) => this.table?.elements.get(name) ?? new Map<string, Element>()
    return {
      many: 0,
      *read(perhaps) {
        const table = copy()
        if (table === undefined) return undefined
        yield
        const lists = [...(perhaps?.sets ?? [])].map((set) => [set, table.elements.get(set)] as const)
        for (const [set] of lists) table.elements.delete(set)
        if (perhaps?.areWanted(table) === true) {
          for (const [set, elements] of lists) if (elements !== undefined) table.elements.set(set, elements)
        }
        return table
      },
      readKeys: (set, keys) => {
        this.keysRead += keys.length
        return keys.flatMap((key) => elementsOf(set).get(key) ?? [])
      },
    }
  }
}

/** The lists of backends with the rest, or by their keys. */
type Reading = 'whole' | 'by keys'

function programmerFor(driver: MemoryTable, clock = new ManualClock()): TableProgrammer {
  return new TableProgrammer({ planner: nftablesPlanner, driver, clock })
}

/** As if all backends had come at once: those of each frontend in order, whatever places they have. */
function inOrder(elements: Table['elements']): Table['elements'] {
  return new Map<string, ReadonlyMap<string, Element>>(
    [...elements].map(([name, ofSet]) => {
      if (!/-endpoints(-local)?$/.test(name)) return [name, ofSet]
      const byFrontend = new Map<string, Element[]>()
      for (const element of ofSet.values()) {
        const frontend = element.key.slice(0, -integerField(0).length)
        byFrontend.set(frontend, [...(byFrontend.get(frontend) ?? []), element])
      }
      const ordered = [...byFrontend].flatMap(([frontend, ofFrontend]) => {
        const data = ofFrontend.map((element) => element.data!).sort()
        // Places have no gaps: a packet that falls into one would go nowhere.
        return data.map((each, place) => ({ key: asBytes(frontend + integerField(place)), data: each }))
      })
      expect(new Set(ordered.map(({ key }) => key))).toEqual(new Set(ofSet.keys()))
      return [name, new Map(ordered.map((element) => [element.key, element]))]
    }),
  )
}

/** Sets that come with a rule, and may outlive their last element. */
const SHARED = /-(\d+|affinity-record-(tcp|udp|sctp))$|^firewall-frontends$/

/**
 * The text of a table, without the shared sets and rules that no service uses any more and without empty stale chains. The
 * places of backends do not matter: each is as likely as the others.
 */
function essence(table: Table | undefined): string {
  if (table === undefined) return ''
  const sets = [...table.sets].filter(([name]) => !SHARED.test(name) || table.elements.has(name))
  const names = new Set(sets.map(([name]) => name))
  const uses = (text: string) =>
    [...text.matchAll(/@([a-z0-9-]+)/g)].every(([, name]) => !SHARED.test(name!) || names.has(name!))
  const chains = [...table.chains]
    .filter(([name, chain]) => chain.rules.length > 0 || !/^(stick|record)-/.test(name))
    .map(([name, chain]) => {
      const rules = chain.rules.filter((rule) => uses(rule.text))
      const isShared = /-pick|^affinity-record|^firewall-sources/.test(name)
      // What refuses the others comes last.
      const [last, any] = rules.at(-1)?.text === 'drop' ? [rules.slice(-1), rules.slice(0, -1)] : [[], rules]
      const ordered = isShared ? [...any.toSorted((a, b) => (a.text < b.text ? -1 : 1)), ...last] : rules
      return [name, { ...chain, rules: ordered }] as const
    })
  return formatTable({ ...table, sets: new Map(sets), chains: new Map(chains), elements: inOrder(table.elements) })
}

const OUTPUT = { type: 'nat', hook: 'output', priority: -100 } as const

/** A new table is made in one turn. */
function fromScratch(family: Family, views: readonly ServicePortView[]): Table | undefined {
  const driver = new MemoryTable(family)
  void programmerFor(driver).syncAll(aNodeView({ family }), views)
  return driver.table
}

describe.each([
  [4, 'whole'],
  [4, 'by keys'],
  [6, 'whole'],
] as const)('TableProgrammer for IPv%d, reading lists %s', (family, reading) => {
  const node = aNodeView({ family })

  /** The kernel's table after the steps, one by one, and the service ports that are there at the end. */
  async function walkThrough(steps: readonly (ServicePortView | undefined)[][]) {
    const driver = new MemoryTable(family, undefined, reading)
    const programmer = programmerFor(driver)
    await programmer.syncAll(node, [])
    let before: (ServicePortView | undefined)[] = []
    for (const after of steps) {
      await programmer.sync(node, changesBetween(before, after))
      before = after
    }
    return { driver, present: before.filter((view) => view !== undefined) }
  }

  it('comes to the same table step by step as from scratch, but for the places of backends', async () => {
    await fc.assert(
      fc.asyncProperty(histories(family), async (steps) => {
        const { driver, present } = await walkThrough(steps)
        expect(essence(driver.table)).toBe(essence(fromScratch(family, present)))
      }),
      runs(150),
    )
  })

  it('adopts the places that it finds: a restart does not change anything', async () => {
    await fc.assert(
      fc.asyncProperty(histories(family), async (steps) => {
        const { driver, present } = await walkThrough(steps)
        const stale = new RegExp(`^(stick|record)-|${SHARED.source}`)
        const backends = () => new Map([...driver.table!.elements].filter(([name]) => !stale.test(name)))
        const before = backends()
        await programmerFor(driver).syncAll(node, present)
        expect(backends()).toEqual(before)
        const { transactions } = driver
        await programmerFor(driver).syncAll(node, present)
        expect(driver.transactions).toBe(transactions)
      }),
      runs(50),
    )
  })

  it('turns any table of ours into any other', async () => {
    await fc.assert(
      fc.asyncProperty(histories(family), histories(family), async (first, second) => {
        const [from, to] = [first.at(-1)!, second.at(-1)!].map((views) => views.filter((view) => view !== undefined))
        const driver = new MemoryTable(family, fromScratch(family, from!), reading)
        await programmerFor(driver).syncAll(node, to!)
        expect(essence(driver.table)).toBe(essence(fromScratch(family, to!)))
        expect(driver.transactions).toBeLessThanOrEqual(1)
      }),
      runs(100),
    )
  })

  it('sends nothing when nothing is different', async () => {
    await fc.assert(
      fc.asyncProperty(histories(family), async (steps) => {
        const views = steps.at(-1)!.filter((view) => view !== undefined)
        const driver = new MemoryTable(family, fromScratch(family, views), reading)
        const programmer = programmerFor(driver)
        await programmer.syncAll(node, views)
        await programmer.sync(
          node,
          views.map((view) => ({ name: view.name, before: view, after: view })),
        )
        expect(driver.transactions).toBe(0)
      }),
      runs(50),
    )
  })

  it('tells which UDP frontends were served when it came and are no longer wanted', async () => {
    const idOf = ({ address, protocol, port }: FrontendAddress) => `${address} ${protocol} ${port}`
    await fc.assert(
      fc.asyncProperty(histories(family), histories(family), async (first, second) => {
        const [from, to] = [first.at(-1)!, second.at(-1)!].map((views) => views.filter((view) => view !== undefined))
        const driver = new MemoryTable(family, fromScratch(family, from!), reading)
        const { gone } = await programmerFor(driver).syncAll(node, to!)
        const wanted = new Set(to!.flatMap(({ frontends }) => frontends.map(idOf)))
        const served = from!.flatMap(({ frontends }) =>
          frontends.filter(({ fromNode }) => fromNode.verdict.kind === 'to'),
        )
        const expected = served.filter(({ protocol }) => protocol === 'UDP').map(idOf)
        expect(gone?.map(idOf).toSorted()).toEqual(expected.filter((id) => !wanted.has(id)).toSorted())
      }),
      runs(100),
    )
  })

  it('replaces a table that is not of our making in one transaction', async () => {
    const foreign = applyOps(nftFamily(family), 'kube-proxy', undefined, [
      { op: 'addTable', comment: 'rules for kube-proxy' },
      { op: 'addChain', chain: { name: 'nat-output', comment: undefined, hook: OUTPUT, rules: [] } },
    ])
    const driver = new MemoryTable(family, foreign, reading)
    await programmerFor(driver).syncAll(node, [])
    expect(driver.transactions).toBe(1)
    expect(essence(driver.table)).toBe(essence(fromScratch(family, [])))
  })

  it.each([
    ['that was never finished', { chains: new Map<string, Chain>() }],
    ['that another program has switched off', { isDormant: true } as const],
  ])('makes a table again %s: no packet sees it', async (_, state) => {
    const whole = fromScratch(family, [])!
    const driver = new MemoryTable(family, { ...whole, ...state }, reading)
    await programmerFor(driver).syncAll(node, [])
    expect(driver.ops[0]).toEqual({ op: 'deleteTable' })
    expect(essence(driver.table)).toBe(essence(whole))
  })
})

describe('TableProgrammer and a service with 1000 endpoints', () => {
  const node = aNodeView()
  const [shape] = fc.sample(arbitraryView(4, 0), { numRuns: 1, seed: 11 })
  const backend = (i: number): Backend => ({ ip: `10.64.${i >> 8}.${i & 255}`, port: 80, isLocal: false })
  const all = Array.from({ length: 2000 }, (_, i) => backend(i))

  /** With a cluster IP, an external IP and a node port, and these endpoints. */
  function aView(list: readonly Backend[]): ServicePortView {
    const backends = BackendList.of(list)
    const route = { verdict: { kind: 'to', policy: 'Cluster', backends } as const, masquerade: true }
    const to = { fromPods: route, fromNode: route, fromOthers: route, isSplit: false, protocol: 'TCP' as const }
    const common = { ...to, port: 80, allowedSources: undefined, affinitySeconds: undefined }
    const frontends: Frontend[] = [
      { ...common, kind: 'clusterIP', address: '10.96.0.1' },
      { ...common, kind: 'externalIP', address: '203.0.113.1' },
      { ...common, kind: 'nodePort', address: undefined, port: 30000 },
    ]
    return { ...shape!, protocol: 'TCP', frontends, lists: { Cluster: backends }, backends, serving: [] }
  }

  const elementsOf = (ops: readonly Op[]) => ops.flatMap((op) => ('elements' in op ? op.elements : [])).length

  it('one that goes, comes or changes costs what it costs in a service with 5', async () => {
    for (const count of [5, 1000]) {
      const driver = new MemoryTable(4)
      const programmer = programmerFor(driver)
      let before = aView(all.slice(0, count))
      await programmer.syncAll(node, [before])
      const costOf = async (backends: readonly Backend[]) => {
        const after = aView(backends)
        await programmer.sync(node, [{ name: after.name, before, after }])
        before = after
        return elementsOf(driver.lastOps)
      }
      const [first, ...rest] = all.slice(0, count)
      // For each of three frontends: its number of endpoints changes, the last takes the place of the first.
      expect(await costOf(rest), `${count} endpoints, one goes`).toBe(3 * (2 + 3))
      expect(await costOf([first!, ...rest]), `${count} endpoints, one comes`).toBe(3 * (2 + 1))
      expect(await costOf([all[1999]!, ...rest]), `${count} endpoints, one is replaced`).toBe(3 * 2)
    }
  })

  it('a rolling update writes each endpoint a few times', async () => {
    const driver = new MemoryTable(4)
    const programmer = programmerFor(driver)
    let before = aView(all.slice(0, 1000))
    await programmer.syncAll(node, [before])
    let written = 0
    for (let i = 0; i < 1000; i += 25) {
      // 25 new ones, then 25 old ones less.
      for (const [from, to] of [
        [i, 1000 + i + 25],
        [i + 25, 1000 + i + 25],
      ] as const) {
        // prettier-ignore
        const after = aView(all.slice(from, to))
        await programmer.sync(node, [{ name: after.name, before, after }])
        before = after
        written += elementsOf(driver.lastOps)
      }
    }
    expect(written / 3).toBeLessThan(1000 * 4.5)
    expect(essence(driver.table)).toBe(essence(fromScratch(4, [before])))
  })
})

describe('TableProgrammer', () => {
  const [one, two] = fc.sample(arbitraryView(4, 0), { numRuns: 2, seed: 7 })

  it('asks for a full sync after a failure', async () => {
    const driver = new MemoryTable(4)
    const programmer = programmerFor(driver)
    await programmer.syncAll(aNodeView(), [])
    driver.failNext = true
    const changes = [{ name: one!.name, before: undefined, after: one }]
    await expect(programmer.sync(aNodeView(), changes)).rejects.toThrow('refused')
    await expect(programmer.sync(aNodeView(), [])).rejects.toThrow(/as a whole/)
    await programmer.syncAll(aNodeView(), [one!])
    expect(essence(driver.table)).toBe(essence(fromScratch(4, [one!])))
  })

  it('removes what others have put into our table, chains that their verdict maps use included', async () => {
    const verdicts: NftSet = { ...schemaFor(4).stickServices, name: 'theirs' }
    const key = { key: asBytes('\x0a\x00\x00\x01\x06\x00\x00\x00\x00\x50\x00\x00') }
    const driver = new MemoryTable(4, fromScratch(4, [one!]))
    driver.apply([
      { op: 'addSet', set: verdicts },
      { op: 'addChain', chain: { name: 'their-chain', comment: undefined, hook: undefined, rules: [] } },
      { op: 'addElements', set: verdicts, elements: [{ ...key, verdict: { code: 'goto', chain: 'their-chain' } }] },
    ])
    await programmerFor(driver).syncAll(aNodeView(), [one!])
    expect(essence(driver.table)).toBe(essence(fromScratch(4, [one!])))
  })

  it('lets other work in while it compares, unless there is nothing to compare with', async () => {
    const driver = new MemoryTable(4, undefined, 'by keys')
    const first = programmerFor(driver).syncAll(aNodeView(), [one!])
    const { transactions } = driver
    expect(transactions).toBeGreaterThan(0)
    await first
    expect(driver.transactions).toBe(transactions)
    const comparison = programmerFor(driver).syncAll(aNodeView(), [two!])
    await nextTurn()
    expect(driver.transactions).toBe(transactions)
    await comparison
    expect(driver.transactions).toBe(transactions + 1)
    expect(essence(driver.table)).toBe(essence(fromScratch(4, [two!])))
  })

  it('asks the kernel once for each backend of each frontend, of those that went as well', async () => {
    const both = fromScratch(4, [one!, fc.sample(arbitraryView(4, 1), { numRuns: 1, seed: 9 })[0]!])!
    const lists = [...both.elements].filter(([name]) => /-endpoints(-local)?$/.test(name))
    const places = lists.reduce((sum, [, elements]) => sum + elements.size, 0)
    expect(places).toBeGreaterThan(10)
    const driver = new MemoryTable(4, both, 'by keys')
    await programmerFor(driver).syncAll(aNodeView(), [one!])
    expect(driver.keysRead).toBe(places)
  })

  it('looks at whole lists after the kernel has refused what their keys led to', async () => {
    const driver = new MemoryTable(4, fromScratch(4, [one!]), 'by keys')
    const { endpoints } = schemaFor(4)
    const stray: Element = {
      key: asBytes('\x0a\0\0\x01\x06\0\0\0\0\x50\0\0\0\0\0\0'),
      data: asBytes('\x0a\0\0\x02\0\x50\0\0'),
    }
    driver.apply([{ op: 'addElements', set: endpoints, elements: [stray] }])
    const programmer = programmerFor(driver)
    const isThere = () => driver.table!.elements.get(endpoints.name)?.has(stray.key) === true
    await programmer.syncAll(aNodeView(), [one!])
    expect(isThere()).toBe(true)
    driver.failNext = true
    await expect(programmer.syncAll(aNodeView(), [two!])).rejects.toThrow('refused')
    await programmer.syncAll(aNodeView(), [two!])
    expect(isThere()).toBe(false)
    expect(essence(driver.table)).toBe(essence(fromScratch(4, [two!])))
  })

  it('does not make the table again because the kernel lacks memory', async () => {
    const driver = new MemoryTable(4, fromScratch(4, [one!]))
    const programmer = programmerFor(driver)
    driver.failure = new KernelError('send 100000 bytes over netlink', 'ENOBUFS')
    for (let i = 0; i < 5; i++) {
      driver.failNext = true
      await expect(programmer.syncAll(aNodeView(), [two!])).rejects.toThrow('ENOBUFS')
    }
    await programmer.syncAll(aNodeView(), [two!])
    expect(driver.lastOps.map(({ op }) => op)).not.toContain('deleteTable')
  })

  it('makes the table again after the kernel has twice refused to change it', async () => {
    const driver = new MemoryTable(4, fromScratch(4, [one!]))
    const programmer = programmerFor(driver)
    for (let i = 0; i < 2; i++) {
      driver.failNext = true
      await expect(programmer.syncAll(aNodeView(), [two!])).rejects.toThrow('refused')
    }
    await programmer.syncAll(aNodeView(), [two!])
    expect(driver.lastOps[0]).toEqual({ op: 'deleteTable' })
    expect(essence(driver.table)).toBe(essence(fromScratch(4, [two!])))
    await programmer.syncAll(aNodeView(), [one!])
    expect(driver.lastOps[0]).not.toEqual({ op: 'deleteTable' })
  })

  it('deletes the chains of session affinity a second after their last use', async () => {
    const clock = new ManualClock()
    const driver = new MemoryTable(4)
    const programmer = programmerFor(driver, clock)
    const sticky = fc.sample(arbitraryView(4, 1), { numRuns: 50, seed: 3 }).find((view) => {
      const [frontend] = view.frontends
      return frontend!.affinitySeconds !== undefined && frontend!.fromNode.verdict.kind === 'to'
    })!
    await programmer.syncAll(aNodeView(), [sticky])
    const chainNames = () => [...driver.table!.chains.keys()].filter((name) => name.includes('svc-1'))
    expect(chainNames()).not.toHaveLength(0)
    await programmer.sync(aNodeView(), [{ name: sticky.name, before: sticky, after: undefined }])
    void programmer.finish()
    expect(chainNames()).not.toHaveLength(0)
    await clock.advance(1001)
    void programmer.finish()
    expect(chainNames()).toHaveLength(0)
  })
})
