// A Service twice, side by side: in Kubernetes and in the kernel of a node.

import { useState } from 'preact/hooks'
import type { ServiceDetail, ServiceInfo } from '../../protocol.ts'
import { serviceId } from '../map/targets.ts'
import { shown } from '../parts/async.ts'
import { Facts } from '../parts/facts.tsx'
import { formatRoute } from '../route.ts'
import { useSnapshot } from '../store.ts'
import { replaceRoute } from '../replace-route.ts'
import { Backends } from './backends.tsx'
import { Frontends } from './frontends.tsx'
import { KernelWords } from './kernel-words.tsx'
import { linkedTo, type Pointed } from './links.ts'
import { balanceWords } from '../parts/balance-words.ts'
import { useDetail } from './use-detail.ts'
import { firstService } from '../parts/first-service.ts'
import { Select } from '../parts/select.tsx'

export function ServiceView({ query }: { query: Readonly<Record<string, string>> }) {
  const snapshot = useSnapshot()
  const service = chosenService(snapshot.services, query['service'])
  const node = snapshot.nodes.find(({ name }) => name === query['node']) ?? snapshot.nodes[0]
  const asked = { namespace: service?.namespace ?? '', name: service?.name ?? '', node: node?.name ?? '' }
  const detail = useDetail(asked, snapshot)
  const choose = (change: { service?: string; node?: string }) => {
    const next = { service: service === undefined ? undefined : serviceId(service), node: node?.name, ...change }
    replaceRoute(formatRoute('service', next))
  }
  return (
    <>
      <div class="tools">
        <h1>Service</h1>
        <Select
          label="Service"
          isLabelHidden
          value={service === undefined ? '' : serviceId(service)}
          onChoose={(id) => choose({ service: id })}
          options={snapshot.services.map(serviceId)}
        />
        <Select
          label="as seen by"
          value={node?.name}
          onChoose={(name) => choose({ node: name })}
          options={snapshot.nodes.map(({ name }) => name)}
        />
        {service !== undefined && (
          <>
            <a class="button" href={formatRoute('packet', { to: serviceId(service) })}>
              A packet to it
            </a>
            <a class="button" href={formatRoute('changes', { service: serviceId(service) })}>
              Its changes
            </a>
          </>
        )}
      </div>
      {service === undefined ? <p>There is no such service.</p> : <Words service={service} />}
      <div aria-live="polite">
        {detail.state === 'failed' && <p class="error">{detail.error}</p>}
        {detail.state === 'waiting' && shown(detail) === null && <p class="muted">Asking the proxy and the kernel…</p>}
      </div>
      {shown(detail) !== null && <Detail detail={shown(detail)!} />}
    </>
  )
}

function chosenService(services: readonly ServiceInfo[], id: string | undefined): ServiceInfo | undefined {
  if (id !== undefined) return services.find((each) => serviceId(each) === id)
  return firstService(services)
}

/** The fields of the object. */
function Words({ service }: { service: ServiceInfo }) {
  const { affinitySeconds, healthCheckNodePort, loadBalancerSourceRanges, selector } = service
  const hasExternal =
    service.loadBalancerIPs.length > 0 ||
    service.externalIPs.length > 0 ||
    service.ports.some(({ nodePort }) => nodePort !== null)
  const labels = Object.entries(selector).map(([name, value]) => `${name}=${value}`)
  return (
    <Facts
      rows={[
        ['type', service.type],
        ['internal traffic policy', service.internalTrafficPolicy],
        hasExternal && ['external traffic policy', service.externalTrafficPolicy],
        ['session affinity', affinitySeconds === null ? 'none' : `ClientIP, ${affinitySeconds} s`],
        ['connect retry', service.connectRetry ? 'on' : 'off'],
        ['balance', balanceWords(service)],
        ['health-check port', healthCheckNodePort === null ? 'none' : String(healthCheckNodePort)],
        loadBalancerSourceRanges.length > 0 && ['allowed sources', loadBalancerSourceRanges.join(', ')],
        labels.length > 0 && ['selects', labels.join(', ')],
      ]}
    />
  )
}

function Detail({ detail }: { detail: ServiceDetail }) {
  const [pinned, setPinned] = useState<Pointed | null>(null)
  const [pointed, setPointed] = useState<Pointed | null>(null)
  const current = pointed ?? pinned
  const linked = linkedTo(current, detail)
  const point = {
    current,
    linked,
    pinned,
    onPoint: setPointed,
    onPin: (next: Pointed) => setPinned(next.kind === pinned?.kind && next.id === pinned.id ? null : next),
  }
  return (
    <div class="sides">
      <section aria-label="In Kubernetes’ words">
        {detail.problems.length > 0 && (
          <ul class="error">
            {detail.problems.map((problem) => (
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        )}
        <Frontends detail={detail} {...point} />
        <Backends detail={detail} {...point} />
      </section>
      <KernelWords detail={detail} {...point} />
    </div>
  )
}
