import { describe, expect, it } from 'vitest'
import { makeSnapshot, type Size } from '../../../../test/support/ui-snapshots.ts'
import { type Box, type MapLayout, planMap } from './layout.ts'
import { planTargets } from './targets.ts'

function layOut(size: Size, width: number): MapLayout {
  const snapshot = makeSnapshot(size)
  const { services } = snapshot
  return planMap({
    width,
    services,
    targets: planTargets(snapshot, services),
    nodes: snapshot.nodes.map(({ name }) => name),
    hasOutside: true,
  })
}

const overlaps = (a: Box, b: Box) =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height

describe('the layout of the map', () => {
  it.each([
    [{ nodes: 2, pods: 3, services: 1 }, 1200],
    [{ nodes: 2, pods: 3, services: 1 }, 340],
    [{ nodes: 3, pods: 100, services: 50 }, 1200],
    [{ nodes: 3, pods: 100, services: 50 }, 340],
    [{ nodes: 1, pods: 0, services: 0 }, 800],
    [{ nodes: 20, pods: 600, services: 5 }, 900],
  ])('of %j in %i pixels has nothing on top of another, and nothing beyond its borders', (size, width) => {
    const layout = layOut(size, width)
    const boxes = [...layout.services.values(), ...layout.nodes, ...(layout.outside === null ? [] : [layout.outside])]
    for (const [i, a] of boxes.entries()) expect(boxes.slice(i + 1).filter((b) => overlaps(a, b))).toEqual([])
    const pods = [...layout.targets.values()]
    for (const [i, a] of pods.entries()) expect(pods.slice(i + 1).filter((b) => overlaps(a, b))).toEqual([])
    for (const { x, y, width, height } of [...boxes, ...pods]) {
      expect(x).toBeGreaterThanOrEqual(0)
      expect(y).toBeGreaterThanOrEqual(0)
      expect(x + width).toBeLessThanOrEqual(layout.width)
      expect(y + height).toBeLessThanOrEqual(layout.height)
    }
  })

  it('puts each pod into its node', () => {
    const { nodes, targets } = layOut({ nodes: 3, pods: 60 }, 1000)
    const inside = [...targets.values()].filter((pod) =>
      nodes.some(
        ({ x, y, width, height }) =>
          pod.x > x && pod.y > y && pod.x + pod.width < x + width && pod.y + pod.height < y + height,
      ),
    )
    expect(inside).toHaveLength(60)
  })

  it('shows less of each pod the more there are', () => {
    expect(layOut({ pods: 3 }, 1000).density).toBe('rows')
    expect(layOut({ pods: 100 }, 1000).density).toBe('chips')
    expect(layOut({ pods: 500 }, 1000).density).toBe('dots')
  })

  it('keeps 100 pods and 50 services within two screens', () => {
    expect(layOut({ nodes: 3, pods: 100, services: 50 }, 1200).height).toBeLessThan(1600)
  })
})
