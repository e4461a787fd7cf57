import type { Action, ServiceInfo } from '../../protocol.ts'
import { serviceId } from '../map/targets.ts'
import { useSnapshot } from '../store.ts'
import { ActButton, type ActProps } from './act-button.tsx'

export function ServiceActions(props: ActProps) {
  const { services } = useSnapshot()
  const own = services.filter(({ system }) => !system)
  return (
    <section aria-labelledby="services">
      <h2 id="services">Services</h2>
      {own.length === 0 && <p class="muted">There are none.</p>}
      {own.slice(0, 8).map((service) => (
        <ServiceRow key={serviceId(service)} service={service} {...props} />
      ))}
      {own.length > 8 && <p class="muted">and {own.length - 8} more: kubectl has them all</p>}
    </section>
  )
}

function ServiceRow({ service, ...props }: ActProps & { service: ServiceInfo }) {
  const { namespace, name } = service
  const hasExternal = service.type === 'LoadBalancer' || service.type === 'NodePort' || service.externalIPs.length > 0
  const policy = (field: 'internalTrafficPolicy' | 'externalTrafficPolicy', value: 'Cluster' | 'Local'): Action => ({
    action: 'policy',
    namespace,
    service: name,
    field,
    value,
  })
  return (
    <div class="service-row" data-service={serviceId(service)}>
      <h3>{serviceId(service)}</h3>
      <Choice words="internal traffic">
        {(['Cluster', 'Local'] as const).map((value) => (
          <ActButton
            key={value}
            {...props}
            action={policy('internalTrafficPolicy', value)}
            isOn={service.internalTrafficPolicy === value}
          >
            {value}
          </ActButton>
        ))}
      </Choice>
      {hasExternal && (
        <Choice words="external traffic">
          {(['Cluster', 'Local'] as const).map((value) => (
            <ActButton
              key={value}
              {...props}
              action={policy('externalTrafficPolicy', value)}
              isOn={service.externalTrafficPolicy === value}
            >
              {value}
            </ActButton>
          ))}
        </Choice>
      )}
      <Choice words="affinity">
        {(['None', 'ClientIP'] as const).map((value) => (
          <ActButton
            key={value}
            {...props}
            action={{ action: 'affinity', namespace, service: name, value }}
            isOn={(service.affinitySeconds !== null) === (value === 'ClientIP')}
          >
            {value}
          </ActButton>
        ))}
      </Choice>
      <Choice words="retry of connections">
        {(['off', 'on'] as const).map((value) => (
          <ActButton
            key={value}
            {...props}
            action={{ action: 'connect-retry', namespace, service: name, value }}
            isOn={service.connectRetry === (value === 'on')}
          >
            {value}
          </ActButton>
        ))}
      </Choice>
    </div>
  )
}

export function Choice({ words, children }: { words: string; children: preact.ComponentChildren }) {
  return (
    <div class="choice" role="group" aria-label={words}>
      <span class="choice-words">{words}</span>
      <span class="switch">{children}</span>
    </div>
  )
}
