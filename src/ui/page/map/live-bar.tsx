import { useAct } from '../act/use-act.ts'
import { formatMs } from '../rates.ts'
import { formatRoute } from '../route.ts'
import { failureCounts } from './failures.ts'
import { LastDeed } from './panel-actions.tsx'
import { usePart, useSnapshot } from '../store.ts'
import type { LoadReport, LoadRequest } from '../../protocol.ts'

/** The client that asks from the first second, how it fares, and the way to the tour. */
export function LiveBar({ hasPanel }: { hasPanel: boolean }) {
  const { load: request, can } = useSnapshot()
  const load = usePart((state) => state.load)
  const { doIt } = useAct()
  if (!can.act) return null
  const last = load?.request
  return (
    <div class="live-bar">
      <p>
        {request !== null ? (
          <>
            A client asks <b>{request.to}</b> from {placeWords(request)}, {request.perSecond} times a second.{' '}
          </>
        ) : last === undefined ? (
          'No client asks at the moment.'
        ) : (
          <>
            The client asked <b>{last.to}</b> from {placeWords(last)}.{' '}
          </>
        )}
        {load !== null && <Fares load={load} />}
      </p>
      <span class="buttons">
        {request !== null ? (
          <button type="button" onClick={() => doIt({ action: 'load-end' })}>
            Stop the client
          </button>
        ) : (
          last !== undefined && (
            <button type="button" onClick={() => doIt({ action: 'load', ...last })}>
              Start the client
            </button>
          )
        )}
        <a class="button is-main" href={formatRoute('tour')}>
          Take the tour
        </a>
      </span>
      {!hasPanel && <LastDeed />}
    </div>
  )
}

/** What a client met, in numbers. */
export function Fares({ load }: { load: LoadReport }) {
  const { answered, failed, medianMs } = load
  const failures = failureCounts(load)
  return (
    <span class="fares">
      <b>{answered}</b> answered, <b class={failed > 0 ? 'bad' : ''}>{failed}</b> failed
      {failures !== '' && ` (${failures})`}
      {medianMs !== null && `, median ${formatMs(medianMs)}`}
    </span>
  )
}

function placeWords({ from }: LoadRequest): string {
  return from === 'outside' || from === 'machine' ? 'the machine outside' : from
}
