import { useMemo } from 'preact/hooks'
import type { ServiceInfo } from '../../protocol.ts'
import { addMet, NOTHING_MET } from '../flow.ts'
import { failedAt, failureWords, metByTarget, metWords } from './failures.ts'
import { Table } from '../parts/table.tsx'
import { addRates, formatBytes, formatPerSecond, sumRates } from '../rates.ts'
import { formatRoute } from '../route.ts'
import { usePart, useSnapshot } from '../store.ts'
import { ejections, podState } from './pod-state.ts'
import { planTargets, serviceId } from './targets.ts'

/** The same as the map, in rows. */
export function MapTable({ services }: { services: readonly ServiceInfo[] }) {
  const traffic = usePart((state) => state.traffic)
  const { now, total } = usePart((state) => state.flow)
  const rates = useMemo(() => sumRates(traffic), [traffic])
  return (
    <div class="tables">
      <h2>Services</h2>
      <Table
        label="Services"
        heads={[
          'service',
          'type',
          'cluster IP',
          'ports',
          ['endpoints', 'number'],
          ['new connections', 'number'],
          ['bytes', 'number'],
          ['fails now', 'number'],
          'connections since the page was opened',
        ]}
      >
        {services.map((service) => {
          const rate = addRates(...service.ports.map(({ id }) => rates.ports.get(id)))
          const backends = service.ports.flatMap(({ backends }) => backends)
          const ready = backends.filter(({ ready, ejectedOn }) => ready && ejectedOn.length === 0).length
          const more = service.ports.reduce((sum, { moreBackends }) => sum + moreBackends, 0)
          return (
            <tr key={serviceId(service)}>
              <th scope="row">
                <a href={formatRoute('service', { service: serviceId(service) })}>{serviceId(service)}</a>
              </th>
              <td>{service.type}</td>
              <td class="mono">{service.clusterIPs.join(', ')}</td>
              <td class="mono">{service.ports.map(({ port, protocol }) => `${port}/${protocol}`).join(', ')}</td>
              <td class="number">
                {ready} of {backends.length}
                {more > 0 && `, ${more} more`}
              </td>
              <td class="number">{formatPerSecond(rate.connections)}</td>
              <td class="number">{rate.bytes > 0 ? `${formatBytes(rate.bytes)}/s` : ''}</td>
              <td class="number bad">{failureWords(failedAt(service, now, rate))}</td>
              <td>{metWords(addMet(...service.ports.map(({ id }) => total.services.get(id))))}</td>
            </tr>
          )
        })}
      </Table>
      <Pods services={services} />
    </div>
  )
}

function Pods({ services }: { services: readonly ServiceInfo[] }) {
  const snapshot = useSnapshot()
  const targets = useMemo(() => planTargets(snapshot, services, 'led'), [snapshot, services])
  const ejected = useMemo(() => ejections(services), [services])
  const { now, total } = usePart((state) => state.flow)
  const met = metByTarget(services, total)
  const failing = metByTarget(services, now)
  return (
    <>
      <h2>What they lead to</h2>
      <Table label="Pods" heads={['pod', 'node', 'address', 'state', 'connections since the page was opened']}>
        {targets.map((target) => {
          const state = podState(
            target,
            ejected.get(target.id) ?? [],
            failureWords(failing.get(target.id) ?? NOTHING_MET),
          )
          return (
            <tr key={target.id}>
              <th scope="row">
                <a href={formatRoute('map', { pod: target.id })}>{target.id}</a>
              </th>
              <td>{target.node}</td>
              <td class="mono">{target.address}</td>
              <td class={state.kind === 'bad' ? 'bad' : ''}>{state.word === '' ? 'ready' : state.word}</td>
              <td>{met.has(target.id) ? metWords(met.get(target.id)!) : ''}</td>
            </tr>
          )
        })}
      </Table>
    </>
  )
}
