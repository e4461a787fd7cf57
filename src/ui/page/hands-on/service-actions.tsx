import { BALANCES } from '../../../model/balance.ts'
import type { Action, ServiceInfo } from '../../protocol.ts'
import { serviceId } from '../map/targets.ts'
import { useSnapshot } from '../store.ts'
import { ActButton, type ActProps } from '../act/act-button.tsx'

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
  return (
    <div class="service-row" data-service={serviceId(service)}>
      <h3>{serviceId(service)}</h3>
      <ServiceChoices service={service} {...props} />
    </div>
  )
}

/** Policies, affinity, retry and balance of a service. */
export function ServiceChoices({ service, ...props }: ActProps & { service: ServiceInfo }) {
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
    <>
      <Choice
        {...props}
        words="internal traffic"
        values={['Cluster', 'Local']}
        now={service.internalTrafficPolicy}
        actionFor={(value) => policy('internalTrafficPolicy', value)}
      />
      {hasExternal && (
        <Choice
          {...props}
          words="external traffic"
          values={['Cluster', 'Local']}
          now={service.externalTrafficPolicy}
          actionFor={(value) => policy('externalTrafficPolicy', value)}
        />
      )}
      <Choice
        {...props}
        words="affinity"
        values={['None', 'ClientIP']}
        now={service.affinitySeconds === null ? 'None' : 'ClientIP'}
        actionFor={(value) => ({ action: 'affinity', namespace, service: name, value })}
      />
      <Choice
        {...props}
        words="connect retry"
        values={['off', 'on']}
        now={service.connectRetry ? 'on' : 'off'}
        actionFor={(value) => ({ action: 'connect-retry', namespace, service: name, value })}
      />
      <Choice
        {...props}
        words="balance"
        values={BALANCES}
        now={service.balance}
        actionFor={(value) => ({ action: 'balance', namespace, service: name, value })}
      />
    </>
  )
}

interface ChoiceProps<Value extends string> extends ActProps {
  readonly words: string
  readonly values: readonly Value[]
  /** The value in force. */
  readonly now: string
  readonly actionFor: (value: Value) => Action
}

/** A button for each value that something may have. */
export function Choice<Value extends string>({ words, values, now, actionFor, ...props }: ChoiceProps<Value>) {
  return (
    <div class="choice" role="group" aria-label={words}>
      <span class="choice-words">{words}</span>
      <span class="switch">
        {values.map((value) => (
          <ActButton key={value} {...props} action={actionFor(value)} isOn={value === now}>
            {value}
          </ActButton>
        ))}
      </span>
    </div>
  )
}
