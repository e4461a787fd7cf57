import { describe, expect, it } from 'vitest'
import { makeSnapshot } from '../../../../test/support/ui-snapshots.ts'
import { sumRates } from '../rates.ts'
import { planEdges, rateOf, widthOf } from './edges.ts'
import { planMap } from './layout.ts'
import { planTargets } from './targets.ts'

function mapOf(pods: number) {
  const snapshot = makeSnapshot({ pods })
  const { services } = snapshot
  const targets = planTargets(snapshot, services)
  const nodes = snapshot.nodes.map(({ name }) => name)
  return { snapshot, services, layout: planMap({ width: 1000, services, targets, nodes, hasOutside: true }) }
}

describe('the lines of the map', () => {
  it('lead to each pod', () => {
    const { services, layout, snapshot } = mapOf(3)
    const edges = planEdges(services, layout, new Set())
    expect(edges.map(({ to }) => to)).toEqual(snapshot.pods.map(({ name }) => `default/${name}`))
    expect(new Set(edges.map(({ path }) => path)).size).toBe(3)
  })

  it('are one for each node in a large cluster, but for the services that are looked at', () => {
    const { services, layout } = mapOf(120)
    expect(planEdges(services, layout, new Set()).map(({ to }) => to)).toEqual(['node-1', 'node-2'])
    expect(planEdges(services, layout, new Set(['default/whoami']))).toHaveLength(120)
  })

  it('say which endpoint gets nothing', () => {
    const { services, layout } = mapOf(3)
    const [service] = services
    const [port] = service!.ports
    const backends = port!.backends.map((backend, i) => ({
      ...backend,
      ready: i !== 1,
      serving: i !== 1,
      ejectedOn: i === 2 ? ['node-1'] : [],
    }))
    const changed = { ...service!, ports: [{ ...port!, backends }] }
    expect(planEdges([changed], layout, new Set()).map(({ state }) => state)).toEqual(['led', 'closed', 'ejected'])
  })

  it('have what flows along them, from all nodes', () => {
    const { services, layout } = mapOf(3)
    const [edge] = planEdges(services, layout, new Set())
    const row = { frontend: 'tcp 10.96.0.20:3000', bytes: 0, refused: 0, dropped: 0, ejected: false }
    const rows = [{ ...row, service: 'default/whoami', backend: '10.244.1.3:3000', connections: 2, packets: 10 }]
    const node = { error: null, overMs: 1000, rows }
    const rates = sumRates({
      nodes: [
        { ...node, node: 'node-1' },
        { ...node, node: 'node-2' },
      ],
      outcomes: [],
    })
    expect(rateOf(edge!, rates)).toMatchObject({ connections: 4, packets: 20 })
  })

  it('are the wider the more flows, and never too wide', () => {
    const widths = [0, 1, 10, 100, 1000, 1e9].map((packets) => widthOf({ packets }))
    expect(widths).toEqual([...widths].sort((a, b) => a - b))
    expect(new Set(widths).size).toBe(6)
    expect(Math.max(...widths)).toBeLessThanOrEqual(10)
    expect(widthOf({ packets: 1e9 }, 100)).toBeLessThan(4)
  })
})
