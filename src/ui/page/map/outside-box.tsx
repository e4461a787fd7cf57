import { usePart, useSnapshot } from '../store.ts'
import { failureWords } from './failures.ts'
import type { Box } from './layout.ts'
import { selectRoute, type Selection } from './selection.ts'

interface Props {
  readonly box: Box
  readonly pick: 'from' | 'to' | null
  readonly selection: Selection | null
}

export function OutsideBox({ box, pick, selection }: Props) {
  const { outside } = useSnapshot()
  const met = usePart((state) => state.flow.now.clients.get('outside'))
  if (outside === null) return null
  const failing = met === undefined ? '' : failureWords(met)
  const { x, y, width, height } = box
  const isSelected = selection?.kind === 'outside'
  return (
    <g class={`box outside${isSelected ? ' is-selected' : ''}`}>
      <a
        href={selectRoute({ kind: 'outside', id: outside.name }, pick)}
        aria-label={`The machine outside, ${outside.addresses.join(', ')}`}
        {...(isSelected ? { 'aria-current': 'true' } : {})}
      >
        <rect x={x} y={y} width={width} height={height} rx="6" />
      </a>
      <g class="words" aria-hidden="true">
        <text class="name" x={x + 10} y={y + 24}>
          outside
        </text>
        <text class="address" x={x + 10} y={y + 43}>
          {outside.addresses[0] ?? 'this machine'}
        </text>
        {failing !== '' && (
          <text class="word" x={x + 10} y={y + 58}>
            {failing.split(', ')[0]}
          </text>
        )}
      </g>
    </g>
  )
}
