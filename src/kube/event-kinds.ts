// The Events that the proxy writes, and when. docs/reference/events.md is made from this table.

import type { RecordedEvent } from './events.ts'
import type { NamespacedName } from './types.ts'

interface EventKind {
  readonly type: RecordedEvent['type']
  /** What was being done. */
  readonly action: string
  /** When it is written, for the documentation. */
  readonly when: string
  /** The object with which `kubectl describe` shows it. */
  readonly on: 'Node' | 'Service'
  /** Whether kube-proxy writes the same. */
  readonly isOfKubeProxy: boolean
}

function kinds<K extends string>(table: Record<K, EventKind>): Readonly<Record<K, EventKind>> {
  return table
}

export const eventKinds = kinds({
  Starting: {
    type: 'Normal',
    action: 'StartKubeProxy',
    when: 'The proxy starts, also with a changed configuration file that takes a new start.',
    on: 'Node',
    isOfKubeProxy: true,
  },
  KubeProxyModeFallback: {
    type: 'Warning',
    action: 'StartKubeProxy',
    when: 'The configured mode cannot run here, and the proxy uses another; the note says why. One Event for each mode that cannot run.',
    on: 'Node',
    isOfKubeProxy: false,
  },
  KubeProxyDefaultMode: {
    type: 'Warning',
    action: 'StartKubeProxy',
    when: 'No mode is configured, so the default is used.',
    on: 'Node',
    isOfKubeProxy: true,
  },
  KubeProxyCheck: {
    type: 'Warning',
    action: 'StartKubeProxy',
    when: 'Something is wrong on this node that `kube-proxy check` would report, too; the note says what, and what to do. Checked at the start and when the configuration file changes; written once for each finding.',
    on: 'Node',
    isOfKubeProxy: false,
  },
  FailedToStartProxierHealthcheck: {
    type: 'Warning',
    action: 'StartKubeProxy',
    when: 'The health port (`healthzBindAddress`) cannot be bound. The proxy retries, unless `bindAddressHardFail` is set.',
    on: 'Node',
    isOfKubeProxy: true,
  },
  FailedToStartMetricServer: {
    type: 'Warning',
    action: 'StartKubeProxy',
    when: 'The metrics port (`metricsBindAddress`) cannot be bound. The proxy retries, unless `bindAddressHardFail` is set.',
    on: 'Node',
    isOfKubeProxy: true,
  },
  FailedToStartServiceHealthcheck: {
    type: 'Warning',
    action: 'Listen',
    when: 'The health check node port of a Service cannot be bound.',
    on: 'Service',
    isOfKubeProxy: true,
  },
  AnnotationIgnored: {
    type: 'Warning',
    action: 'Sync',
    when: 'An annotation of ours, of a Service or of one of its EndpointSlices, says something that is not allowed. The note names the annotation, what it says, and what is allowed; the Service works as without it.',
    on: 'Service',
    isOfKubeProxy: false,
  },
  ServiceIsLarge: {
    type: 'Warning',
    action: 'Sync',
    when: 'iptables mode: a Service has more than 1,000 addresses and ports. Each is a rule, as with kube-proxy, and each new connection of the node is compared with all of them, whichever Service it is for. It is served.',
    on: 'Service',
    isOfKubeProxy: false,
  },
  FailedToProgramService: {
    type: 'Warning',
    action: 'Sync',
    when: 'The kernel refuses a service port, or there is no free port for it in userspace mode; all others are served. Also when the proxy cannot listen for its node port on localhost: then it is served everywhere else.',
    on: 'Node',
    isOfKubeProxy: false,
  },
  BackendEjected: {
    type: 'Warning',
    action: 'Sync',
    when: 'With connect retry: a client failed at an endpoint, and so did this node. It gets no new connections from this node; the note names its Services.',
    on: 'Node',
    isOfKubeProxy: false,
  },
  BackendReturned: {
    type: 'Normal',
    action: 'Sync',
    when: 'With connect retry: an endpoint that had been ejected answers again.',
    on: 'Node',
    isOfKubeProxy: false,
  },
})

export type EventReason = keyof typeof eventKinds

/** An Event of the table. `service`: `namespace/name`, if it is about one. */
export function anEvent(reason: EventReason, note?: string, service?: NamespacedName): RecordedEvent {
  const { type, action, on } = eventKinds[reason]
  const event = { type, reason, action, ...(note === undefined ? {} : { note }) }
  if (on === 'Node' || service === undefined) return event
  const [namespace = '', name = ''] = service.split('/')
  return { ...event, service: { namespace, name } }
}
