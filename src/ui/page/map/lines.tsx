import { useMemo } from 'preact/hooks'
import type { ServiceInfo } from '../../protocol.ts'
import { addRates, formatPerSecond, sumRates, type Rates } from '../rates.ts'
import { usePart } from '../store.ts'
import { curve, rateOf, widthOf, type Edge } from './edges.ts'
import type { Box, MapLayout } from './layout.ts'
import { serviceId } from './targets.ts'

interface Props {
  readonly edges: readonly Edge[]
  readonly layout: MapLayout
  readonly services: readonly ServiceInfo[]
  readonly lit: ReadonlySet<string> | null
}

/** Hidden from screen readers: the table has the same as text. */
export function Lines({ edges, layout, services, lit }: Props) {
  const traffic = usePart((state) => state.traffic)
  const load = usePart((state) => state.load)
  const rates = useMemo(() => sumRates(traffic), [traffic])
  const dim = (service: string) => (lit !== null && !lit.has(service) ? ' is-dim' : '')
  // Lines with traffic above those without.
  const drawn = edges
    .map((edge) => ({ edge, rate: rateOf(edge, rates) }))
    .sort((a, b) => a.rate.packets - b.rate.packets)
  return (
    <g aria-hidden="true">
      {layout.outside !== null &&
        services.map((service) => {
          const box = layout.services.get(serviceId(service))
          if (box === undefined || !isReachable(service)) return null
          const isAsked =
            load?.running === true && load.request.from === 'outside' && isLoadOf(load.request.to, service)
          const rate = isAsked ? allOf(service, rates) : fromOutside(service, rates)
          return (
            <path
              key={serviceId(service)}
              class={`edge is-led${rate.packets > 0 ? ' is-flowing' : ''}${dim(serviceId(service))}`}
              d={fromBox(layout.outside!, box)}
              stroke-width={widthOf(rate, edges.length)}
            />
          )
        })}
      {drawn.map(({ edge, rate }) => (
        <path
          key={edge.id}
          data-edge={edge.id}
          class={`edge is-${edge.state}${rate.packets > 0 ? ' is-flowing' : ''}${dim(edge.service)}`}
          d={edge.path}
          stroke-width={widthOf(rate, edges.length)}
        />
      ))}
      {services.map((service) => (
        <Refusals
          key={serviceId(service)}
          service={service}
          box={layout.services.get(serviceId(service))}
          rates={rates}
        />
      ))}
    </g>
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

function allOf({ ports }: ServiceInfo, { ports: rates }: Rates) {
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

function Refusals({ service, box, rates }: { service: ServiceInfo; box: Box | undefined; rates: Rates }) {
  const { refused, dropped } = allOf(service, rates)
  if (box === undefined || refused + dropped <= 0) return null
  const [x, y] = [box.x + box.width, box.y + box.height / 2]
  const words = [
    refused > 0 ? `refused ${formatPerSecond(refused)}` : '',
    dropped > 0 ? `dropped ${formatPerSecond(dropped)}` : '',
  ]
  return (
    <g class="refusals">
      <path class="ground" d={`M${x + 1} ${y}H${x + 52}`} />
      <path class="edge is-refused" d={`M${x} ${y}H${x + 34}`} stroke-width={widthOf({ packets: refused + dropped })} />
      <path class="cross" d={`M${x + 37} ${y - 5}l10 10m0 -10l-10 10`} />
      <text x={x + 54} y={y + 4}>
        {words.filter(Boolean).join(', ')}
      </text>
    </g>
  )
}
