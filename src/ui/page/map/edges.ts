// The lines of the map: which service leads to which pod. In a large cluster lines to the pods of a node are one.

import type { ServiceInfo } from '../../protocol.ts'
import { addRates, type Rate, type Rates } from '../rates.ts'
import type { Box, MapLayout } from './layout.ts'
import { serviceId, targetOf } from './targets.ts'

export interface Edge {
  readonly id: string
  readonly service: string
  /** Of a pod, or of a node where its pods are bundled. */
  readonly to: string
  readonly path: string
  /** The pairs of the traffic report that go along here. */
  readonly pairs: readonly string[]
  /** `led`: connections may go there. `ejected`: not for now. `closed`: not, by what the API says. */
  readonly state: 'led' | 'ejected' | 'closed'
}

/** Lines to pods for the services in `open`, and for all of them where there is room. */
export function planEdges(services: readonly ServiceInfo[], layout: MapLayout, open: ReadonlySet<string>): Edge[] {
  const edges = new Map<string, Edge>()
  for (const service of services) {
    const id = serviceId(service)
    const start = layout.services.get(id)
    if (start === undefined) continue
    const isBundled = layout.density !== 'rows' && !open.has(id)
    for (const port of service.ports) {
      for (const backend of port.backends) {
        const target = layout.targets.get(targetOf(backend))
        if (target === undefined) continue
        const end = isBundled ? nodeAround(target, layout) : target
        const key = `${id}>${end.id}`
        const state = stateOf(backend)
        const before = edges.get(key)
        edges.set(key, {
          id: key,
          service: id,
          to: end.id,
          path: before?.path ?? curve(start, end),
          pairs: [...(before?.pairs ?? []), `${port.id}|${backend.address}`],
          state: before === undefined || state === 'led' ? state : before.state,
        })
      }
    }
  }
  return [...edges.values()]
}

function stateOf({
  ready,
  serving,
  terminating,
  ejectedOn,
}: ServiceInfo['ports'][number]['backends'][number]): Edge['state'] {
  if (ejectedOn.length > 0) return 'ejected'
  return ready || (serving && terminating) ? 'led' : 'closed'
}

function nodeAround({ x, y }: Box, { nodes }: MapLayout): Box {
  return nodes.find((node) => y >= node.y && y < node.y + node.height && x >= node.x) ?? nodes[0]!
}

/** From the right side of one box to the left side of another. */
export function curve(from: Box, to: Box): string {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2]
  const [x2, y2] = [to.x, to.y + to.height / 2]
  const bend = Math.max(16, (x2 - x1) / 2)
  return `M${round(x1)} ${round(y1)}C${round(x1 + bend)} ${round(y1)} ${round(x2 - bend)} ${round(y2)} ${round(x2)} ${round(y2)}`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

export function rateOf({ pairs }: Edge, rates: Rates): Rate {
  return addRates(...pairs.map((pair) => rates.pairs.get(pair)))
}

/** Of a line, in pixels: ten times the rate is about three pixels more. */
export function widthOf({ packets }: Pick<Rate, 'packets'>): number {
  if (packets <= 0) return 1
  return Math.round(Math.min(11, 1.6 + 3 * Math.log10(1 + packets)) * 10) / 10
}
