import { memo } from '../memo.ts'
import { useSnapshot } from '../store.ts'
import type { NodeInfo } from '../../protocol.ts'
import type { Box, Density, MapLayout } from './layout.ts'
import { podState, type PodState } from './pod-state.ts'
import { selectRoute, type Selection } from './selection.ts'
import { lastPart, shorten } from './shorten.ts'
import { ELSEWHERE, type Target } from './targets.ts'

interface Props {
  readonly layout: MapLayout
  readonly targets: readonly Target[]
  readonly ejected: ReadonlyMap<string, readonly string[]>
  /** What happens to connections of clients in a pod, as text. */
  readonly failing: ReadonlyMap<string, string>
  /** The highlighted pods; null: none. */
  readonly lit: ReadonlySet<string> | null
  readonly selection: Selection | null
  readonly pick: 'from' | 'to' | null
}

/** Below the lines. */
export const NodeFrames = memo(
  ({
    layout,
    counts,
    selection,
    pick,
  }: Pick<Props, 'layout' | 'selection' | 'pick'> & { counts: ReadonlyMap<string, number> }) => (
    <g>
      {layout.nodes.map((box) => (
        <NodeFrame key={box.id} box={box} count={counts.get(box.id) ?? 0} selection={selection} pick={pick} />
      ))}
    </g>
  ),
)

/** Above the lines. */
export const PodBoxes = memo(({ layout, targets, ejected, failing, lit, selection, pick }: Props) => (
  <g>
    {targets.map((target) => {
      const box = layout.targets.get(target.id)
      if (box === undefined) return null
      const state = podState(target, ejected.get(target.id) ?? [], failing.get(target.id))
      const kind = target.isGroup === true ? 'group' : 'pod'
      const isSelected = selection?.kind === kind && selection.id === target.id
      const isDim = lit !== null && !lit.has(target.id) && !isSelected
      return (
        <g
          key={target.id}
          class={`box ${kind} is-${state.kind}${isSelected ? ' is-selected' : ''}${isDim ? ' is-dim' : ''}`}
        >
          <a
            href={selectRoute({ kind, id: target.id }, pick)}
            aria-label={labelOf(target, state)}
            {...(isSelected ? { 'aria-current': 'true' } : {})}
          >
            {layout.density !== 'rows' && <title>{`${target.label} ${target.address} ${state.word}`}</title>}
            <rect x={box.x} y={box.y} width={box.width} height={box.height} rx={layout.density === 'dots' ? 3 : 5} />
          </a>
          <g class="words" aria-hidden="true">
            <PodText target={target} box={box} state={state} density={layout.density} />
          </g>
        </g>
      )
    })}
  </g>
))

function labelOf({ id, pod, isGroup, label, node, address }: Target, { word }: PodState): string {
  if (isGroup === true) return `${address} of ${label} on ${node}`
  return `${pod === null ? 'Endpoint' : 'Pod'} ${id}, ${address}${word === '' ? '' : `, ${word}`}`
}

function PodText({ target, box, state, density }: { target: Target; box: Box; state: PodState; density: Density }) {
  const { x, y, width, height } = box
  const middle = y + height / 2
  if (density === 'dots') return null
  const dot = <Dot x={x + 11} y={middle} kind={state.kind} />
  if (density === 'chips') {
    return (
      <>
        {dot}
        <text class="chip" x={x + 20} y={middle + 4}>
          {target.isGroup === true
            ? shorten(`${parseInt(target.address, 10)} ${target.label}`, width - 24)
            : lastPart(target.label, width - 24)}
        </text>
      </>
    )
  }
  const roomFor = (text: string) => text.length * 6.7 + 24
  const fits = (text: string) => width - 30 - roomFor(text) > 60
  const address = target.address === target.label ? '' : target.address
  const whole = state.word === '' ? address : state.word
  const said = fits(whole) ? whole : (whole.split(', ')[0] ?? '')
  const hasRoom = fits(said)
  const room = roomFor(said)
  return (
    <>
      {dot}
      <text class="name" x={x + 22} y={middle + 4}>
        {shorten(target.label, width - 30 - (hasRoom ? room : 0))}
      </text>
      {hasRoom && (
        <text class={state.word === '' ? 'address' : 'word'} x={x + width - 10} y={middle + 4} text-anchor="end">
          {said}
        </text>
      )}
    </>
  )
}

/** Filled: ready. Hollow: not in use. A cross: failing. */
function Dot({ x, y, kind }: { x: number; y: number; kind: PodState['kind'] }) {
  if (kind === 'bad') return <path class="cross" d={`M${x - 3.5} ${y - 3.5}l7 7m0 -7l-7 7`} />
  return <circle class="dot" cx={x} cy={y} r="3.500" />
}

function NodeFrame({
  box,
  count,
  selection,
  pick,
}: {
  box: Box
  count: number
  selection: Selection | null
  pick: Props['pick']
}) {
  const node = useSnapshot().nodes.find(({ name }) => name === box.id)
  const { x, y, width, height, id } = box
  if (id === ELSEWHERE || node === undefined) {
    return (
      <g class="box node is-elsewhere">
        <rect x={x} y={y} width={width} height={height} rx="9" />
        <text class="name" x={x + 12} y={y + 22}>
          other nodes
        </text>
      </g>
    )
  }
  const isSelected = selection?.kind === 'node' && selection.id === id
  const said = proxyWords(node)
  return (
    <g class={`box node${isSelected ? ' is-selected' : ''}${node.proxy.state === 'ready' ? '' : ' is-away'}`}>
      <a
        href={selectRoute({ kind: 'node', id }, pick)}
        aria-label={`Node ${id}, mode ${node.mode}, ${count} pods, proxy ${node.proxy.state}`}
        {...(isSelected ? { 'aria-current': 'true' } : {})}
      >
        <rect x={x} y={y} width={width} height={height} rx="9" />
      </a>
      <g class="words" aria-hidden="true">
        <text class="name" x={x + 12} y={y + 20}>
          {id}
        </text>
        <text class="address" x={x + 12} y={y + 36}>
          {shorten(node.addresses.find((each) => !isLoopback(each)) ?? '', width - 24)}
        </text>
        <text class="mode" x={x + width - 12} y={y + 20} text-anchor="end">
          {node.mode}
        </text>
        <text class={said.isBad ? 'word' : 'address'} x={x + width - 12} y={y + 36} text-anchor="end">
          {width > 220 || said.isBad ? said.words : ''}
        </text>
      </g>
    </g>
  )
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1'
}

function proxyWords({ proxy, podRanges }: NodeInfo): { words: string; isBad: boolean } {
  if (proxy.state !== 'ready') return { words: proxy.state === 'away' ? 'no proxy' : 'proxy starting', isBad: true }
  if (proxy.families.some(({ holds }) => !holds)) return { words: 'kernel differs', isBad: true }
  return { words: podRanges.join(' '), isBad: false }
}
