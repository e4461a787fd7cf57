// Connections, failures and latency of the last five minutes: of one service, or of all.

import { useMemo, useState } from 'preact/hooks'
import { failedOf, secondOf, type Second } from '../flow.ts'
import { serviceId } from '../map/targets.ts'
import { Select } from '../parts/select.tsx'
import { formatMs, formatPerSecond } from '../rates.ts'
import { usePart, useSnapshot } from '../store.ts'
import { HEIGHT, planChart, spanOf, type Curve, type Span } from './plan-chart.ts'

const TITLES: Readonly<Record<Span, string>> = {
  60: 'The last minute',
  120: 'The last two minutes',
  300: 'The last five minutes',
}

/** `selected`: the service that the map shows, `namespace/name`; '' is none. */
export function Charts({ selected }: { selected: string }) {
  const { services, kind } = useSnapshot()
  const points = usePart((state) => state.flow.points)
  const [chosen, setChosen] = useState<string | null>(null)
  const names = services.filter(({ system }) => !system).map(serviceId)
  const service = selected !== '' ? selected : chosen !== null && names.includes(chosen) ? chosen : ''
  const seconds = useMemo(() => points.map((point) => secondOf(point, service)), [points, service])
  const now = seconds.at(-1)
  const span = spanOf(seconds.length)
  const of = (name: string, pick: (second: Second) => number | null): Curve => ({ name, values: seconds.map(pick) })
  return (
    <section class="charts" aria-labelledby="charts">
      <div class="section-head">
        <h2 id="charts">{TITLES[span]}</h2>
        {names.length > 1 && selected === '' ? (
          <Select
            label="Charts of"
            isLabelHidden
            class="small"
            value={service}
            onChoose={setChosen}
            options={[['', 'all services'], ...names]}
          />
        ) : (
          <span class="small">{service === '' ? 'all services' : service}</span>
        )}
      </div>
      <div class="charts-row">
        <Chart
          span={span}
          title="new connections"
          now={formatPerSecond(now?.connections ?? 0) || '0/s'}
          curves={[of('connections', ({ connections }) => connections)]}
          format={(value) => `${value}/s`}
        />
        <Chart
          span={span}
          title={kind === 'sandbox' ? 'failures' : 'refused or dropped'}
          now={formatPerSecond(now === undefined ? 0 : failedOf(now)) || '0/s'}
          isBad={now !== undefined && failedOf(now) > 0}
          curves={[
            of('failed', failedOf),
            of('timed-out', ({ timedOut }) => timedOut),
            ...(kind === 'sandbox' ? [of('retried', ({ retried }) => retried)] : []),
          ]}
          names={{
            failed: 'all',
            'timed-out': kind === 'sandbox' ? 'timed out' : 'dropped',
            retried: 'retried, answered',
          }}
          format={(value) => `${value}/s`}
        />
        {kind === 'sandbox' && (
          <Chart
            span={span}
            title="latency of the client"
            now={now?.p50Ms == null ? 'no answer' : `median ${formatMs(now.p50Ms)}, p99 ${formatMs(now.p99Ms ?? 0)}`}
            curves={[of('p99', ({ p99Ms }) => p99Ms), of('p50', ({ p50Ms }) => p50Ms)]}
            names={{ p99: 'p99', p50: 'median' }}
            format={formatMs}
          />
        )}
      </div>
    </section>
  )
}

interface ChartProps {
  readonly title: string
  readonly now: string
  readonly isBad?: boolean
  readonly curves: readonly Curve[]
  readonly span: Span
  /** For a legend, where there are several. */
  readonly names?: Readonly<Record<string, string>>
  readonly format: (value: number) => string
}

function Chart({ title, now, isBad = false, curves, span, names, format }: ChartProps) {
  const { top, curves: planned } = planChart(curves, 1, span)
  return (
    <figure class="chart">
      <figcaption>
        {title} <b class={isBad ? 'bad' : ''}>{now}</b>
      </figcaption>
      <div class="chart-frame">
        <svg viewBox={`0 0 ${span} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${now}`}>
          <path class="grid" d={`M0 1H${span}M0 ${HEIGHT - 1}H${span}`} />
          {planned.map(({ name, path, area }) => (
            <g key={name} class={`curve is-${name}`}>
              <path class="curve-area" d={area} />
              <path class="curve-line" d={path} />
            </g>
          ))}
        </svg>
        <span class="chart-top">{format(top)}</span>
      </div>
      {names !== undefined && (
        <p class="chart-names">
          {curves.map(({ name }) => (
            <span key={name} class={`curve-name is-${name}`}>
              {names[name]}
            </span>
          ))}
        </p>
      )}
    </figure>
  )
}
