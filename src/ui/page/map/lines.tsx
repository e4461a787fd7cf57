import { useMemo } from 'preact/hooks'
import type { ServiceInfo } from '../../protocol.ts'
import { addMet, failedOf, type Met, type MetBy } from '../flow.ts'
import { addRates, formatPerSecond, NO_RATE, sumRates, type Rate, type Rates } from '../rates.ts'
import { usePart } from '../store.ts'
import { curve, endsOf, rateOf, widthOf, type Edge } from './edges.ts'
import { failedAt, failedBefore, failureWords } from './failures.ts'
import type { Box, MapLayout } from './layout.ts'
import { serviceId } from './targets.ts'

interface Props {
  readonly edges: readonly Edge[]
  readonly layout: MapLayout
  readonly services: readonly ServiceInfo[]
  readonly lit: ReadonlySet<string> | null
}

/** More labels would cover the map. */
const MOST_LABELS = 16

/** Hidden from screen readers: the table has the same as text. */
export function Lines({ edges, layout, services, lit }: Props) {
  const traffic = usePart((state) => state.traffic)
  const now = usePart((state) => state.flow.now)
  const load = usePart((state) => state.load)
  const rates = useMemo(() => sumRates(traffic), [traffic])
  const dim = (service: string) => (lit !== null && !lit.has(service) ? ' is-dim' : '')
  const drawn = edges.map((edge) => ({
    edge,
    rate: rateOf(edge, rates),
    met: addMet(...edge.pairs.map((pair) => now.pairs.get(pair))),
  }))
  // Lines with traffic above those without, failures above all.
  drawn.sort((a, b) => failedOf(a.met) - failedOf(b.met) || a.rate.packets - b.rate.packets)
  const labels = drawn.filter(({ met }) => failedOf(met) + met.retried > 0).slice(-MOST_LABELS)
  return (
    <g aria-hidden="true">
      {layout.outside !== null &&
        services.map((service) => {
          const id = serviceId(service)
          const box = layout.services.get(id)
          if (box === undefined || !isReachable(service)) return null
          const isAsked =
            load?.running === true && load.request.from === 'outside' && isLoadOf(load.request.to, service)
          const rate = isAsked ? allOf(service, rates) : fromOutside(service, rates)
          const met = isAsked ? failedAt(service, now, allOf(service, rates)) : addMet()
          return (
            <Line
              key={id}
              id={`outside>${id}`}
              state="led"
              class={dim(id)}
              path={fromBox(layout.outside!, box)}
              rate={rate}
              met={met}
              lines={edges.length}
            />
          )
        })}
      {drawn.map(({ edge, rate, met }) => (
        <Line
          key={edge.id}
          id={edge.id}
          state={edge.state}
          class={dim(edge.service)}
          path={edge.path}
          rate={rate}
          met={met}
          lines={edges.length}
        />
      ))}
      {labels.map(({ edge, met }) => (
        <LineLabel key={edge.id} edge={edge} met={met} />
      ))}
      {services.map((service) => (
        <TurnedAway
          key={serviceId(service)}
          service={service}
          box={layout.services.get(serviceId(service))}
          rates={rates}
          now={now}
        />
      ))}
    </g>
  )
}

interface LineProps {
  readonly id: string
  readonly state: Edge['state']
  readonly class: string
  readonly path: string
  readonly rate: Rate
  readonly met: Met
  readonly lines: number
}

/** Blue as wide as what succeeds; over it, what is refused, what times out, what is retried elsewhere. */
function Line({ id, state, class: name, path, rate, met, lines }: LineProps) {
  const failed = failedOf(met)
  const isHealthy = rate.packets > 0 && (met.answered > 0 || failed + met.retried === 0)
  const width = widthOf(isHealthy ? rate : NO_RATE, lines)
  return (
    <>
      <path
        {...(id.startsWith('outside>') ? {} : { 'data-edge': id })}
        class={`edge is-${state}${isHealthy ? ' is-flowing' : ''}${name}`}
        d={path}
        stroke-width={width}
      />
      {(['refused', 'timedOut', 'cut', 'retried'] as const).map(
        (what) =>
          met[what] > 0 && (
            <path
              key={what}
              data-failing={id}
              class={`edge is-${what === 'timedOut' ? 'timed-out' : what}${name}`}
              d={path}
              stroke-width={Math.max(2.5, isHealthy ? width * 0.5 : 3)}
            />
          ),
      )}
    </>
  )
}

const LETTER_WIDTH = 7

/** Above the end of the line. In a narrow window there is room for the rate alone: the line's dashes say the rest. */
function LineLabel({ edge, met }: { edge: Edge; met: Met }) {
  const { startX, x, y } = endsOf(edge)
  const failing = failureWords(met)
  const retried = met.retried > 0 ? `retried ${formatPerSecond(met.retried)}` : ''
  const words = [failing, retried].filter(Boolean).join(', ')
  const hasRoom = words.length * LETTER_WIDTH < x - 16 - startX
  return (
    <text class={`line-label${failing === '' ? ' is-retried' : ''}`} x={x - 8} y={y - 6} text-anchor="end">
      {hasRoom ? words : formatPerSecond(failedOf(met) + met.retried)}
    </text>
  )
}

/** Whether the service has addresses for clients outside. */
function isReachable({ ports, loadBalancerIPs, externalIPs }: ServiceInfo): boolean {
  return loadBalancerIPs.length > 0 || externalIPs.length > 0 || ports.some(({ nodePort }) => nodePort !== null)
}

/** The traffic to addresses for clients outside. */
function fromOutside({ ports, clusterIPs }: ServiceInfo, { frontends }: Rates) {
  const found = [...frontends].filter(([key]) => {
    const [port, frontend = ''] = key.split('|')
    return (
      ports.some(({ id }) => id === port) &&
      !clusterIPs.some((ip) => frontend.includes(` ${ip}:`) || frontend.includes(`[${ip}]`))
    )
  })
  return addRates(...found.map(([, rate]) => rate))
}

export function allOf({ ports }: Pick<ServiceInfo, 'ports'>, { ports: rates }: Rates): Rate {
  return addRates(...ports.map(({ id }) => rates.get(id)))
}

/** The page's client on the machine outside dials the cluster IP. */
function isLoadOf(to: string, service: ServiceInfo): boolean {
  return to === serviceId(service) || to.startsWith(`${serviceId(service)}:`)
}

/** To the left side of a service. In a narrow window the machine is above the services, and the line leads around them. */
function fromBox(outside: Box, service: Box): string {
  if (service.x > outside.x + outside.width) return curve(outside, service)
  const middle = ({ y, height }: Box) => y + height / 2
  return `M${outside.x} ${middle(outside)}h-8V${middle(service)}H${service.x}`
}

interface TurnedAwayProps {
  readonly service: ServiceInfo
  readonly box: Box | undefined
  readonly rates: Rates
  readonly now: MetBy
}

/** A line that ends before any endpoint. */
function TurnedAway({ service, box, rates, now }: TurnedAwayProps) {
  const met = failedBefore(service, now, allOf(service, rates))
  const failed = failedOf(met)
  if (box === undefined || failed <= 0) return null
  const [x, y] = [box.x + box.width, box.y + box.height / 2]
  return (
    <g class="refusals" data-turned-away={serviceId(service)}>
      <path class="ground" d={`M${x + 1} ${y}H${x + 52}`} />
      <path
        class={`edge is-${met.refused > 0 ? 'refused' : 'timed-out'}`}
        d={`M${x} ${y}H${x + 34}`}
        stroke-width={Math.max(2.5, widthOf({ packets: failed }))}
      />
      <path class="cross" d={`M${x + 37} ${y - 5}l10 10m0 -10l-10 10`} />
      <text x={x + 54} y={y + 4}>
        {failureWords(met)}
      </text>
    </g>
  )
}
