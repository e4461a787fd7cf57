import { memo } from '../memo.ts'
import type { ServiceInfo } from '../../protocol.ts'
import { addMet, failedOf, type MetBy } from '../flow.ts'
import { formatPerSecond, sumRates } from '../rates.ts'
import { usePart } from '../store.ts'
import { failedAt, failureWords } from './failures.ts'
import { allOf } from './lines.tsx'
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
      <RateText service={service} box={box} y={baseline} isTall={isTall} />
    </>
  )
}

interface RateProps {
  readonly service: ServiceInfo
  readonly box: Box
  readonly y: number
  readonly isTall: boolean
}

/** Where there is no room for both, what fails takes the place of the address. */
const ROOM_FOR_BOTH = 235

function RateText({ service, box, y, isTall }: RateProps) {
  const traffic = usePart((state) => state.traffic)
  const now = usePart((state) => state.flow.now)
  const rate = allOf(service, sumRates(traffic))
  const failing = failureWords(failedAt(service, now, rate))
  const [first, ...others] = failing.split(', ')
  const x = box.x + box.width - 10
  return (
    <>
      {isTall && (failing === '' || box.width >= ROOM_FOR_BOTH) && (
        <text class="address" x={box.x + 10} y={box.y + 37}>
          {shorten(addressOf(service), box.width - 20)}
        </text>
      )}
      <text class={failing !== '' && !isTall ? 'word' : 'rate'} x={x} y={y} text-anchor="end">
        {failing !== '' && !isTall ? first : formatPerSecond(beganAt(service, now) || rate.connections)}
      </text>
      {failing !== '' && isTall && (
        <text class="word" x={x} y={y + 17} text-anchor="end">
          {first}
          {others.length > 0 && ' …'}
        </text>
      )}
    </>
  )
}

/** The rules count a connection again when its first packet is sent again: what clients met is exact. */
function beganAt({ ports }: ServiceInfo, { services }: MetBy): number {
  const met = addMet(...ports.map(({ id }) => services.get(id)))
  return met.answered + failedOf(met)
}

function addressOf({ clusterIPs, ports }: ServiceInfo): string {
  const [ip = 'headless'] = clusterIPs
  const numbers = [
    ...new Set(ports.map(({ port, protocol }) => (protocol === 'TCP' ? port : `${port}/${protocol}`))),
  ].join(' ')
  return `${ip.includes(':') ? `[${ip}]` : ip}:${numbers}`
}

function labelOf(service: ServiceInfo): string {
  const backends = new Set(service.ports.flatMap(({ backends }) => backends.map(({ address }) => address)))
  return `Service ${serviceId(service)}, ${addressOf(service)}, ${backends.size} endpoints`
}
