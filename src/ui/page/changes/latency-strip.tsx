import type { ChangeEntry } from '../../protocol.ts'
import { formatMs } from '../rates.ts'
import { tookMs } from './filter.ts'

const HEIGHT = 56
const STEP = 8
const MOST = 100

/** The duration of each change, the newest at the right. Logarithmic: each line is ten times the one below. */
export function LatencyStrip({ changes }: { changes: readonly ChangeEntry[] }) {
  const points = changes
    .map((change) => ({ id: change.id, ms: tookMs(change) }))
    .filter((point): point is { id: number; ms: number } => point.ms !== null)
    .slice(0, MOST)
  if (points.length < 2) return null
  const sorted = points.map(({ ms }) => ms).sort((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)]!
  const words = `Of ${points.length} changes from the API the kernel acknowledged half within ${formatMs(median)}, the slowest after ${formatMs(sorted.at(-1)!)}.`
  const y = (ms: number) => HEIGHT - 6 - (Math.log10(Math.max(1, ms)) / 4) * (HEIGHT - 12)
  const width = MOST * STEP + 60
  return (
    <figure class="latency">
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={words} preserveAspectRatio="xMaxYMid meet">
        {[1, 10, 100, 1000, 10_000].map((ms) => (
          <g key={ms}>
            <path class="grid" d={`M52 ${y(ms)}H${width}`} />
            <text x="46" y={y(ms) + 3} text-anchor="end">
              {formatMs(ms)}
            </text>
          </g>
        ))}
        {points.map(({ id, ms }, i) => (
          <circle key={id} cx={width - 6 - i * STEP} cy={y(ms)} r="3" />
        ))}
      </svg>
      <figcaption>{words}</figcaption>
    </figure>
  )
}
