// The lines of the map from services to pods. In a large cluster all lines to the pods of a node are one.

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
  /** The pairs of the traffic report on this line. */
  readonly pairs: readonly string[]
  /** `led`: connections may go there. `ejected`: not for now. `closed`: by the API the endpoint is not ready. */
  readonly state: 'led' | 'ejected' | 'closed'
}

/** More lines than these end at nodes. */
const MOST_TO_PODS = 100

/** Lines to pods for the services in `open`, and for all of them where there is room. */
export function planEdges(
  services: readonly ServiceInfo[],
  layout: MapLayout,
  open: ReadonlySet<string>,
  groupOf: ReadonlyMap<string, string> = new Map(),
): Edge[] {
  const hasRoom = layout.density === 'rows' || countBackends(services) <= MOST_TO_PODS
  const edges = new Map<string, Edge>()
  for (const service of services) {
    const id = serviceId(service)
    const start = layout.services.get(id)
    if (start === undefined) continue
    const isBundled = !hasRoom && !open.has(id)
    for (const port of service.ports) {
      for (const backend of port.backends) {
        const pod = targetOf(backend)
        const target = layout.targets.get(groupOf.get(pod) ?? pod)
        if (target === undefined) continue
        const end = isBundled ? nodeAround(target, layout) : target
        const key = `${id}>${end.id}`
        const state = stateOf(backend)
        const before = edges.get(key)
        edges.set(key, {
          id: key,
          service: id,
          to: end.id,
          path: '',
          pairs: [...(before?.pairs ?? []), `${port.id}|${backend.address}`],
          state: before === undefined || state === 'led' ? state : before.state,
        })
      }
    }
  }
  return fanOut([...edges.values()], layout)
}

function countBackends(services: readonly ServiceInfo[]): number {
  return services.reduce((sum, { ports }) => ports.reduce((all, { backends }) => all + backends.length, sum), 0)
}

/** Spreads the lines at the side of a box. */
function fanOut(edges: readonly Edge[], layout: MapLayout): Edge[] {
  const boxes = new Map<string, Box>([...layout.targets, ...layout.nodes.map((node) => [node.id, node] as const)])
  const starts = placesOf(
    edges,
    ({ service }) => service,
    layout.services,
    ({ to }) => boxes.get(to),
  )
  const ends = placesOf(
    edges,
    ({ to }) => to,
    boxes,
    ({ service }) => layout.services.get(service),
  )
  return edges.map((edge) => {
    const [from, to] = [layout.services.get(edge.service)!, boxes.get(edge.to)!]
    return { ...edge, path: curve(from, to, starts.get(edge) ?? 0, ends.get(edge) ?? 0) }
  })
}

/** The distance of each line's end from the middle of its box: lines that lead up are above those that lead down. */
function placesOf(
  edges: readonly Edge[],
  boxOf: (edge: Edge) => string,
  boxes: ReadonlyMap<string, Box>,
  otherEnd: (edge: Edge) => Box | undefined,
): ReadonlyMap<Edge, number> {
  const groups = new Map<string, Edge[]>()
  for (const edge of edges) groups.set(boxOf(edge), [...(groups.get(boxOf(edge)) ?? []), edge])
  const places = new Map<Edge, number>()
  for (const [id, group] of groups) {
    const height = boxes.get(id)?.height ?? 0
    const step = Math.min(11, (height - 10) / Math.max(1, group.length))
    const sorted = group.sort((a, b) => (otherEnd(a)?.y ?? 0) - (otherEnd(b)?.y ?? 0))
    for (const [i, edge] of sorted.entries()) places.set(edge, (i - (sorted.length - 1) / 2) * step)
  }
  return places
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
export function curve(from: Box, to: Box, startsAt = 0, endsAt = 0): string {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2 + startsAt]
  const [x2, y2] = [to.x, to.y + to.height / 2 + endsAt]
  const bend = Math.max(16, (x2 - x1) / 2)
  return `M${round(x1)} ${round(y1)}C${round(x1 + bend)} ${round(y1)} ${round(x2 - bend)} ${round(y2)} ${round(x2)} ${round(y2)}`
}

/** Where a line of curve() begins and ends. */
export function endsOf({ path }: Pick<Edge, 'path'>): {
  readonly startX: number
  readonly x: number
  readonly y: number
} {
  const numbers = path.match(/[-\d.]+/g)?.map(Number) ?? []
  const [x = 0, y = 0] = numbers.slice(-2)
  return { startX: numbers[0] ?? 0, x, y }
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

export function rateOf({ pairs }: Edge, rates: Rates): Rate {
  return addRates(...pairs.map((pair) => rates.pairs.get(pair)))
}

/** The width of a line in pixels, by the logarithm of its rate; thinner if there are many lines. */
export function widthOf({ packets }: Pick<Rate, 'packets'>, lines = 1): number {
  if (packets <= 0) return 1
  const widest = lines <= 16 ? 10 : lines <= 60 ? 6 : 3.5
  const share = Math.min(1, (1 + Math.log10(1 + packets)) / 4.5)
  return Math.round((1.2 + (widest - 1.2) * share) * 10) / 10
}
