import { useState } from 'preact/hooks'
import type { LoadReport } from '../../protocol.ts'
import { podId, serviceId } from '../map/targets.ts'
import { formatMs } from '../rates.ts'
import { firstService } from '../parts/first-service.ts'
import { usePart, useSnapshot } from '../store.ts'
import { ActButton, type ActProps } from '../act/act-button.tsx'
import { Select } from '../parts/select.tsx'

/** Starts and stops a client that connects again and again, and shows what it sees. */
export function ClientActions(props: ActProps) {
  const { services, pods, nodes, load: request } = useSnapshot()
  const load = usePart((state) => state.load)
  const askable = services.filter(({ ports, system }) => !system && ports.some(({ protocol }) => protocol === 'TCP'))
  const [from, setFrom] = useState('outside')
  const [to, setTo] = useState('')
  const [perSecond, setPerSecond] = useState(10)
  const first = firstService(askable)
  const asked = to === '' ? (first === undefined ? '' : serviceId(first)) : to
  return (
    <section aria-labelledby="client">
      <h2 id="client">A client that asks again and again</h2>
      <div class="line">
        <Select
          label="from"
          value={from}
          onChoose={setFrom}
          options={[
            ['outside', 'the machine outside'],
            ...nodes.map(({ name }) => name),
            ...pods
              .filter(({ namespace }) => namespace !== 'kube-system')
              .map((pod) => [podId(pod), pod.name] as const),
          ]}
        />
        <Select label="to" value={asked} onChoose={setTo} options={askable.map(serviceId)} />
        <label>
          <input
            type="number"
            min="1"
            max="50"
            value={perSecond}
            onInput={(event) => setPerSecond(Math.min(50, Math.max(1, event.currentTarget.valueAsNumber || 1)))}
          />{' '}
          times a second
        </label>
        {request === null ? (
          <ActButton {...props} action={{ action: 'load', from, to: asked, perSecond }} isOff={asked === ''}>
            Start
          </ActButton>
        ) : (
          <ActButton {...props} action={{ action: 'load-end' }}>
            Stop
          </ActButton>
        )}
      </div>
      {load !== null && <LoadFigures load={load} />}
    </section>
  )
}

export function LoadFigures({ load }: { load: LoadReport }) {
  const { answered, failed, byPod, lastError, medianMs, running, url } = load
  const counts = Object.entries(byPod).sort(([a], [b]) => (a < b ? -1 : 1))
  const most = Math.max(1, ...counts.map(([, count]) => count))
  return (
    <div class="load">
      <p>
        <code>{url}</code> {running ? '' : '(ended)'} <b>{answered}</b> answered,{' '}
        <b class={failed > 0 ? 'bad' : ''} data-testid="failed">
          {failed}
        </b>{' '}
        failed
        {medianMs !== null && `, median ${formatMs(medianMs)}`}
      </p>
      {lastError !== null && <p class="small bad">last failure: {lastError}</p>}
      <ul class="bars" aria-label="Answers by pod">
        {counts.slice(0, 24).map(([pod, count]) => (
          <li key={pod}>
            <span class="mono">{pod}</span>
            <svg width="120" height="10" aria-hidden="true">
              <rect width={Math.round((120 * count) / most)} height="10" rx="2" />
            </svg>
            <span class="number">{count}</span>
          </li>
        ))}
        {counts.length > 24 && <li class="muted">and {counts.length - 24} more</li>}
      </ul>
    </div>
  )
}
