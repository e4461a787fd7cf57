// Facts about the selected thing, with links to other views.

import { ActButton } from '../act/act-button.tsx'
import type { DeploymentInfo, NodeInfo, PodInfo, ServiceInfo, Snapshot } from '../../protocol.ts'
import { PodButtons, Scale } from '../hands-on/pod-actions.tsx'
import { NodeButtons } from '../hands-on/cluster-actions.tsx'
import { ServiceChoices } from '../hands-on/service-actions.tsx'
import { DoctorButton } from '../doctor/doctor.tsx'
import { addMet } from '../flow.ts'
import { balanceWords } from '../parts/balance-words.ts'
import { Facts } from '../parts/facts.tsx'
import { metWords } from './failures.ts'
import { groupId } from './groups.ts'
import { PanelActions } from './panel-actions.tsx'
import { Shares } from './shares.tsx'
import { formatRoute } from '../route.ts'
import { usePart, useSnapshot } from '../store.ts'
import { ejections, podState } from './pod-state.ts'
import { packetFrom, type Selection } from './selection.ts'
import { podId, serviceId, targetOf } from './targets.ts'

export function MapPanel({ selection }: { selection: Selection }) {
  const snapshot = useSnapshot()
  const { kind, id } = selection
  return (
    <aside class="panel" aria-label={`About ${id}`}>
      <p class="panel-kind">{kind === 'outside' ? 'outside of the cluster' : kind}</p>
      <h2>{id}</h2>
      {about()}
      <a class="panel-close" href={formatRoute('map')}>
        Close
      </a>
    </aside>
  )

  function about() {
    if (kind === 'outside') return <AboutOutside />
    if (kind === 'node') {
      const node = snapshot.nodes.find(({ name }) => name === id)
      return node === undefined ? <Gone /> : <AboutNode node={node} />
    }
    if (kind === 'service') {
      const service = snapshot.services.find((each) => serviceId(each) === id)
      return service === undefined ? <Gone /> : <AboutService service={service} />
    }
    if (kind === 'group') return <AboutGroup id={id} />
    const pod = snapshot.pods.find((each) => podId(each) === id)
    if (pod !== undefined) return <AboutPod pod={pod} />
    return snapshot.services.some(({ ports }) =>
      ports.some(({ backends }) => backends.some(({ address }) => address === id)),
    ) ? (
      <p>An endpoint without a known pod.</p>
    ) : (
      <Gone />
    )
  }
}

/** Pods that are drawn as one. */
const MOST_MEMBERS = 60

function AboutGroup({ id }: { id: string }) {
  const { pods, deployments } = useSnapshot()
  const members = pods.filter((pod) => groupId({ node: pod.node, pod }) === id)
  const deployment = deployments.find(
    ({ namespace, name }) => members[0]?.namespace === namespace && members[0].deployment === name,
  )
  if (members.length === 0) return <p>Endpoints without a known pod: see the table.</p>
  return (
    <>
      <ul class="members">
        {members.slice(0, MOST_MEMBERS).map((pod) => (
          <li key={podId(pod)}>
            <a href={formatRoute('map', { pod: podId(pod) })}>{pod.name}</a>
          </li>
        ))}
      </ul>
      {members.length > MOST_MEMBERS && <p class="muted">and {members.length - MOST_MEMBERS} more: see the table</p>}
      {deployment !== undefined && (
        <PanelActions>{(props) => <Scale deployment={deployment} {...props} />}</PanelActions>
      )}
    </>
  )
}

function Gone() {
  return <p>It is gone.</p>
}

function AboutOutside() {
  const { outside } = useSnapshot()
  return (
    <>
      <p class="panel-links">
        <a class="button" href={formatRoute('packet', { from: 'outside' })}>
          Explain from here
        </a>
      </p>
      <Facts
        rows={[
          ['addresses', outside?.addresses.join(', ')],
          ['its connections', <ClientMet key="met" client="outside" />],
        ]}
      />
    </>
  )
}

function AboutNode({ node }: { node: NodeInfo }) {
  const { proxy } = node
  return (
    <>
      {proxy.error !== null && <p class="bad">{proxy.error}</p>}
      <p class="panel-links">
        <a class="button" href={formatRoute('packet', packetFrom({ kind: 'node', id: node.name }))}>
          Explain from here
        </a>
        <a class="button" href={formatRoute('changes', { node: node.name })}>
          Its changes
        </a>
      </p>
      <DoctorButton question={{ node: node.name }} />
      <PanelActions>{(props) => <NodeButtons node={node} {...props} />}</PanelActions>
      <Facts
        rows={[
          ['mode', node.mode],
          ['addresses', node.addresses.join(', ')],
          ['pods', node.podRanges.join(', ')],
          node.zone !== null && ['zone', node.zone],
          ['proxy', `${proxy.state}${proxy.pid === null ? '' : `, process ${proxy.pid}`}`],
          ['restarts', String(proxy.restarts)],
          [
            'kernel',
            proxy.families.every(({ holds }) => holds)
              ? 'holds what was decided'
              : (proxy.families.find(({ holds }) => !holds)?.reason ?? 'differs from what was decided'),
          ],
        ]}
      />
    </>
  )
}

function AboutService({ service }: { service: ServiceInfo }) {
  const snapshot = useSnapshot()
  const id = serviceId(service)
  const loadable = service.clusterIPs[0] !== 'None' && service.ports[0]?.protocol === 'TCP'
  return (
    <>
      <p class="panel-links">
        <a class="button is-main" href={formatRoute('service', { service: id })}>
          All about it
        </a>
        <a class="button" href={formatRoute('packet', { to: id })}>
          A packet to it
        </a>
        <a class="button" href={formatRoute('changes', { service: id })}>
          Its changes
        </a>
      </p>
      <DoctorButton question={{ service: id, ...(snapshot.outside === null ? {} : { from: 'outside' }) }} />
      <PanelActions>
        {(props) => (
          <>
            {deploymentsOf(service, snapshot).map((each) => (
              <Scale key={each.name} deployment={each} {...props} />
            ))}
            <ServiceChoices service={service} {...props} />
            {loadable && (
              <ActButton
                {...props}
                action={{ action: 'load', from: 'outside', to: id, perSecond: 10 }}
                isOff={snapshot.load?.to === id && snapshot.load.from === 'outside'}
              >
                Let the client ask it
              </ActButton>
            )}
          </>
        )}
      </PanelActions>
      <Facts
        rows={[
          ['type', service.type],
          ['cluster IP', service.clusterIPs.join(', ') || 'none'],
          service.loadBalancerIPs.length > 0 && ['load balancer', service.loadBalancerIPs.join(', ')],
          service.externalIPs.length > 0 && ['external IPs', service.externalIPs.join(', ')],
          [
            'ports',
            service.ports
              .map(
                ({ port, protocol, nodePort }) =>
                  `${port}/${protocol}${nodePort === null ? '' : ` (node port ${nodePort})`}`,
              )
              .join(', '),
          ],
          ['endpoints', endpointWords(service)],
          ['balance', balanceWords(service)],
          service.affinitySeconds !== null && ['affinity', `${service.affinitySeconds} s`],
          ['connections', <ServiceMet key="met" service={service} />],
        ]}
      />
      <Shares service={service} />
    </>
  )
}

function deploymentsOf({ namespace, ports }: ServiceInfo, { pods, deployments }: Snapshot): readonly DeploymentInfo[] {
  const own = new Set(ports.flatMap(({ backends }) => backends.map(targetOf)))
  const names = new Set(pods.filter((pod) => own.has(podId(pod))).map(({ deployment }) => deployment))
  return deployments.filter((each) => each.namespace === namespace && names.has(each.name))
}

/** Connections since the page was opened. */
function ServiceMet({ service: { ports } }: { service: ServiceInfo }) {
  const { services } = usePart((state) => state.flow.total)
  return <span data-testid="met">{metWords(addMet(...ports.map(({ id }) => services.get(id))))}</span>
}

function PodMet({ id }: { id: string }) {
  const { services } = useSnapshot()
  const { backends } = usePart((state) => state.flow.total)
  const addresses = services.flatMap(({ ports }) =>
    ports.flatMap((port) => port.backends.filter((backend) => targetOf(backend) === id).map(({ address }) => address)),
  )
  return <span data-testid="met">{metWords(addMet(...[...new Set(addresses)].map((each) => backends.get(each))))}</span>
}

function ClientMet({ client }: { client: string }) {
  const met = usePart((state) => state.flow.total.clients.get(client))
  return <span data-testid="client-met">{metWords(addMet(met))}</span>
}

function endpointWords({ ports }: ServiceInfo): string {
  const backends = ports.flatMap((port) => port.backends)
  const more = ports.reduce((sum, { moreBackends }) => sum + moreBackends, 0)
  return `${backends.filter(({ ready }) => ready).length} of ${backends.length} ready${more === 0 ? '' : `, ${more} more not shown`}`
}

function AboutPod({ pod }: { pod: PodInfo }) {
  const { services } = useSnapshot()
  const id = podId(pod)
  const isClient = usePart((state) => state.flow.total.clients.has(id))
  const ejectedOn = ejections(services).get(id) ?? []
  const { word } = podState({ pod }, ejectedOn)
  const leading = services.filter(({ ports }) =>
    ports.some(({ backends }) => backends.some((backend) => targetOf(backend) === id)),
  )
  return (
    <>
      <p class="panel-links">
        <a class="button" href={formatRoute('packet', { from: id })}>
          Explain from here
        </a>
      </p>
      {leading[0] !== undefined && (
        <DoctorButton
          question={{ service: serviceId(leading[0]), from: id }}
          label={`Ask doctor about ${leading[0].name}`}
        />
      )}
      <PanelActions>{(props) => <PodButtons pod={pod} {...props} />}</PanelActions>
      <Facts
        rows={[
          ['node', pod.node],
          ['addresses', pod.ips.join(', ')],
          ['state', word === '' ? 'ready' : word],
          ejectedOn.length > 0 && ['ejected on', ejectedOn.join(', ')],
          pod.deployment !== null && ['deployment', pod.deployment],
          ['connections to it', <PodMet key="met" id={id} />],
          isClient && ['its connections', <ClientMet key="client" client={id} />],
          [
            'services',
            leading.length === 0
              ? 'none leads here'
              : leading.map((service) => (
                  <a key={serviceId(service)} href={formatRoute('service', { service: serviceId(service) })}>
                    {serviceId(service)}
                  </a>
                )),
          ],
        ]}
      />
    </>
  )
}
