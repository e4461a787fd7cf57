import { useMemo } from 'preact/hooks'
import type { ServiceInfo } from '../../protocol.ts'
import { sumRates } from '../rates.ts'
import { usePart } from '../store.ts'
import { sharesOf } from './shares-of.ts'

/** With more endpoints, the panel would be a list of nothing else. */
const MOST = 12

/** What part of the new connections each endpoint gets. */
export function Shares({ service }: { service: ServiceInfo }) {
  const traffic = usePart((state) => state.traffic)
  const flow = usePart((state) => state.flow)
  const shares = useMemo(() => sharesOf(service, flow, sumRates(traffic)), [service, flow, traffic])
  if (shares.length < 2) return null
  return (
    <>
      <h3>Who gets how much</h3>
      <ul class="shares" aria-label="Share of each endpoint">
        {shares.slice(0, MOST).map(({ name, part }) => (
          <li key={name}>
            <span class="mono">{name}</span> <meter value={part} aria-hidden="true" /> {Math.round(part * 100)} %
          </li>
        ))}
      </ul>
      {shares.length > MOST && <p class="muted">and {shares.length - MOST} more</p>}
    </>
  )
}
