import { memo } from '../memo.ts'
import type { ServiceInfo } from '../../protocol.ts'
import { addRates, formatPerSecond, sumRates } from '../rates.ts'
import { usePart } from '../store.ts'
import type { Box, MapLayout } from './layout.ts'
import { selectRoute, type Selection } from './selection.ts'
import { shorten } from './shorten.ts'
import { serviceId } from './targets.ts'

interface Props {
  readonly layout: MapLayout
  readonly services: readonly ServiceInfo[]
  readonly lit: ReadonlySet<string> | null
  readonly selection: Selection | null
  readonly pick: 'from' | 'to' | null
  readonly onHover: (service: string | null) => void
}

export const ServiceBoxes = memo(({ layout, services, lit, selection, pick, onHover }: Props) => (
  <g>
    {layout.groups.map(({ namespace, x, y }) => (
      <text key={namespace} class="group" x={x} y={y}>
        {namespace}
      </text>
    ))}
    {services.map((service) => {
      const id = serviceId(service)
      const box = layout.services.get(id)
      if (box === undefined) return null
      const isSelected = selection?.kind === 'service' && selection.id === id
      return (
        <g
          key={id}
          class={`box service${isSelected ? ' is-selected' : ''}${lit !== null && !lit.has(id) ? ' is-dim' : ''}`}
        >
          <a
            href={selectRoute({ kind: 'service', id }, pick)}
            aria-label={labelOf(service)}
            {...(isSelected ? { 'aria-current': 'true' } : {})}
            onMouseEnter={() => onHover(id)}
            onMouseLeave={() => onHover(null)}
            onFocus={() => onHover(id)}
            onBlur={() => onHover(null)}
          >
            <rect x={box.x} y={box.y} width={box.width} height={box.height} rx="6" />
          </a>
          <g class="words" aria-hidden="true">
            <Names service={service} box={box} />
          </g>
        </g>
      )
    })}
  </g>
))

function Names({ service, box }: { service: ServiceInfo; box: Box }) {
  const { x, y, width, height } = box
  const isTall = height >= 44
  const baseline = isTall ? y + 20 : y + height / 2 + 4
  return (
    <>
      <text class="name" x={x + 10} y={baseline}>
        {shorten(service.name, width - 70)}
      </text>
      {isTall && (
        <text class="address" x={x + 10} y={y + 37}>
          {shorten(addressOf(service), width - 20)}
        </text>
      )}
      <RateText service={service} x={x + width - 10} y={baseline} />
    </>
  )
}

function RateText({ service, x, y }: { service: ServiceInfo; x: number; y: number }) {
  const traffic = usePart((state) => state.traffic)
  const { connections } = addRates(...service.ports.map(({ id }) => sumRates(traffic).ports.get(id)))
  return (
    <text class="rate" x={x} y={y} text-anchor="end">
      {formatPerSecond(connections)}
    </text>
  )
}

function addressOf({ clusterIPs, ports }: ServiceInfo): string {
  const [ip = 'headless'] = clusterIPs
  const numbers = ports.map(({ port }) => port).join(',')
  return `${ip.includes(':') ? `[${ip}]` : ip}:${numbers}`
}

function labelOf(service: ServiceInfo): string {
  const backends = new Set(service.ports.flatMap(({ backends }) => backends.map(({ address }) => address)))
  return `Service ${serviceId(service)}, ${addressOf(service)}, ${backends.size} endpoints`
}
