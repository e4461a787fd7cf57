// The layout of the map: the machine outside, services, nodes with their pods, from left to right. Pure, and independent of
// traffic, so that boxes stay where they are.

import type { ServiceInfo } from '../../protocol.ts'
import { ELSEWHERE, serviceId, type Target } from './targets.ts'

export interface Box {
  readonly id: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** `rows`: a pod has a line with its name and address. `chips`: the end of its name. `dots`: nothing but its state. */
export type Density = 'rows' | 'chips' | 'dots'

export interface MapLayout {
  readonly width: number
  readonly height: number
  readonly density: Density
  readonly outside: Box | null
  readonly groups: readonly { readonly namespace: string; readonly x: number; readonly y: number }[]
  readonly services: ReadonlyMap<string, Box>
  readonly nodes: readonly Box[]
  readonly targets: ReadonlyMap<string, Box>
}

export interface LayoutQuestion {
  readonly width: number
  readonly services: readonly Pick<ServiceInfo, 'namespace' | 'name'>[]
  readonly targets: readonly Target[]
  readonly nodes: readonly string[]
  readonly hasOutside: boolean
}

export const HEADER = 46
const MARGIN = 8
const PAD = 10
const GROUP_HEADER = 26
const NODE_GAP = 18
/** From this width on the machine outside has its own column. */
const WIDE = 760
const OUTSIDE = { width: 128, height: 64 }
const MOST_ROWS = 24
const MOST_CHIPS = 400
const SIZES: Readonly<Record<Density, { readonly width: number; readonly height: number; readonly gap: number }>> = {
  rows: { width: 0, height: 30, gap: 6 },
  chips: { width: 58, height: 24, gap: 6 },
  dots: { width: 14, height: 14, gap: 4 },
}

export function planMap(question: LayoutQuestion): MapLayout {
  const { width, hasOutside, targets } = question
  const isWide = width >= WIDE
  const density = densityOf(targets.length)
  const left = MARGIN + (hasOutside && isWide ? OUTSIDE.width + Math.round(width * 0.07) : 0)
  const top = hasOutside && !isWide ? OUTSIDE.height + MARGIN + NODE_GAP : MARGIN
  const serviceWidth = Math.round(Math.min(250, Math.max(124, width * 0.24)))
  const nodeWidth = Math.round(Math.min(560, Math.max(150, (width - left) * (isWide ? 0.46 : 0.44))))
  const stack = stackServices(question.services, { x: left, y: top, width: serviceWidth })
  const column = stackNodes(question, { x: width - nodeWidth - MARGIN, y: top, width: nodeWidth, density })
  const height = Math.max(stack.bottom, column.bottom, top + OUTSIDE.height) + MARGIN
  // The shorter column is beside the middle of the longer one, but near enough to its top to be seen with it.
  const down = (bottom: number) => Math.min(120, Math.max(0, Math.round((height - MARGIN - bottom) / 2)))
  const services = moveDown(stack.boxes, down(stack.bottom))
  const outsideY = isWide ? Math.max(top, Math.min(220, Math.round(height / 2 - OUTSIDE.height / 2))) : MARGIN
  return {
    width,
    height,
    density,
    outside: hasOutside
      ? { id: 'outside', x: MARGIN, y: outsideY, width: isWide ? OUTSIDE.width : serviceWidth, height: OUTSIDE.height }
      : null,
    groups: stack.groups.map((group) => ({ ...group, y: group.y + down(stack.bottom) })),
    services: byId(services),
    nodes: moveDown(column.nodes, down(column.bottom)),
    targets: byId(moveDown(column.targets, down(column.bottom))),
  }
}

function densityOf(count: number): Density {
  if (count <= MOST_ROWS) return 'rows'
  return count <= MOST_CHIPS ? 'chips' : 'dots'
}

interface Column {
  readonly x: number
  readonly y: number
  readonly width: number
}

function stackServices(
  services: LayoutQuestion['services'],
  { x, y, width }: Column,
): { boxes: Box[]; groups: MapLayout['groups'][number][]; bottom: number } {
  const [height, gap] = services.length <= 12 ? [48, 12] : services.length <= 30 ? [30, 6] : [22, 3]
  const boxes: Box[] = []
  const groups: MapLayout['groups'][number][] = []
  let at = y
  let namespace: string | undefined
  for (const service of services) {
    if (service.namespace !== namespace) {
      if (namespace !== undefined) at += gap
      namespace = service.namespace
      groups.push({ namespace, x, y: at + 16 })
      at += GROUP_HEADER
    }
    boxes.push({ id: serviceId(service), x, y: at, width, height })
    at += height + gap
  }
  return { boxes, groups, bottom: at - (boxes.length === 0 ? 0 : gap) }
}

function stackNodes(
  { nodes, targets }: LayoutQuestion,
  { x, y, width, density }: Column & { readonly density: Density },
): { nodes: Box[]; targets: Box[]; bottom: number } {
  const { height, gap, width: fixed } = SIZES[density]
  const inner = width - 2 * PAD
  const perRow = density === 'rows' ? 1 : Math.max(1, Math.floor((inner + gap) / (fixed + gap)))
  const cell = density === 'dots' ? fixed : (inner - gap * (perRow - 1)) / perRow
  const boxes: Box[] = []
  const placed: Box[] = []
  let at = y
  const names = targets.some(({ node }) => node === ELSEWHERE) ? [...nodes, ELSEWHERE] : nodes
  for (const name of names) {
    const own = targets.filter(({ node }) => node === name)
    const rows = Math.max(1, Math.ceil(own.length / perRow))
    const boxHeight = HEADER + rows * (height + gap) - gap + PAD
    for (const [i, { id }] of own.entries()) {
      const column = i % perRow
      const row = Math.floor(i / perRow)
      placed.push({
        id,
        x: x + PAD + column * (cell + gap),
        y: at + HEADER + row * (height + gap),
        width: cell,
        height,
      })
    }
    boxes.push({ id: name, x, y: at, width, height: boxHeight })
    at += boxHeight + NODE_GAP
  }
  return { nodes: boxes, targets: placed, bottom: at - (boxes.length === 0 ? 0 : NODE_GAP) }
}

function moveDown<Each extends Box>(boxes: readonly Each[], by: number): Each[] {
  return boxes.map((box) => ({ ...box, y: box.y + by }))
}

function byId(boxes: readonly Box[]): ReadonlyMap<string, Box> {
  return new Map(boxes.map((box) => [box.id, box]))
}
