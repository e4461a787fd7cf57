// The annotations, labels and taints that the program reads: docs/reference/annotations.md. A test compares them with the source.

export interface ReadKey {
  readonly key: string
  readonly what: 'annotation' | 'label' | 'taint'
  /** The kinds of object on which it is read. */
  readonly on: string
  readonly effect: string
}

export const readKeys: readonly ReadKey[] = [
  {
    key: 'service.kube-proxy-ts.io/endpoint-weights',
    what: 'annotation',
    on: 'Service, EndpointSlice',
    effect:
      'How much endpoints weigh, `big-node=4, 10.1.0.7=0, 10.2.0.0/16=50%, *=1`. Our own; [more](../guides/balancing.md#weights).',
  },
  {
    key: 'service.kube-proxy-ts.io/balance',
    what: 'annotation',
    on: 'Service',
    effect:
      'How an endpoint is chosen: `random`, `hash-connection`, `hash-client`, `least-connections`; without it, `--balance` says. Our own; [more](../guides/balancing.md).',
  },
  {
    key: 'service.kube-proxy-ts.io/connect-retry',
    what: 'annotation',
    on: 'Service',
    effect:
      'With `--connect-retry`: `off` takes it out; with `--connect-retry=annotated`: only those that say `on`. Their clients get another endpoint when the one they got does not answer. Without the flag it has no effect. Our own; [more](../guides/dead-pods.md).',
  },
  {
    key: 'service.kube-proxy-ts.io/connection-limits',
    what: 'annotation',
    on: 'Service',
    effect:
      'At most so many connections, open or new per second, to each port of the Service or from one client, `2000, 100 per client, 50/s, 10/s per client`; with `drop`, more get no answer instead of a refusal. Our own; [more](../guides/limits.md).',
  },
  {
    key: 'service.kube-proxy-ts.io/removed-endpoints',
    what: 'annotation',
    on: 'Service',
    effect:
      'Open TCP connections to an endpoint that is removed: `keep` (the default), `reset` when it is gone, or `reset after 30s` of terminating; never while it serves. Our own; [more](../guides/removed-endpoints.md).',
  },
  {
    key: 'service.kube-proxy-ts.io/without-local-endpoints',
    what: 'annotation',
    on: 'Service',
    effect:
      'With `externalTrafficPolicy: Local`, for clients from outside where no endpoint is on this node: `drop` (the default), `use-others` (all endpoints, as with Cluster) or `leave-alone` (the packet is routed on). Our own; [more](../guides/without-local-endpoints.md).',
  },
  {
    key: 'service.kube-proxy-ts.io/traffic-metrics',
    what: 'annotation',
    on: 'Service',
    effect:
      'With `--traffic-metrics=N`: `on`, its service ports come first for the N places; `off`, they never have metrics of their own. Our own; [more](../guides/top.md#as-metrics).',
  },
  {
    key: 'endpoints.kubernetes.io/last-change-trigger-time',
    what: 'annotation',
    on: 'EndpointSlice, Endpoints',
    effect: 'When the change began; `kubeproxy_network_programming_duration_seconds` counts from there.',
  },
  {
    key: 'service.kubernetes.io/service-proxy-name',
    what: 'label',
    on: 'Service, Endpoints',
    effect: 'Whatever its value: another proxy serves it, this one leaves it alone.',
  },
  {
    key: 'service.kubernetes.io/headless',
    what: 'label',
    on: 'EndpointSlice, Endpoints',
    effect: 'Of a headless Service: not read.',
  },
  {
    key: 'kubernetes.io/service-name',
    what: 'label',
    on: 'EndpointSlice',
    effect: 'The Service that it belongs to. Without it a slice is ignored, with a warning.',
  },
  {
    key: 'topology.kubernetes.io/zone',
    what: 'label',
    on: 'Node',
    effect: 'The zone of this node, which hints of EndpointSlices are compared with.',
  },
  {
    key: 'ToBeDeletedByClusterAutoscaler',
    what: 'taint',
    on: 'Node',
    effect: '`/healthz` says 503, so that load balancers take the node out before it goes; `/livez` does not.',
  },
]
