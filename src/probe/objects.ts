// What the test puts into the cluster. EndpointSlices are written by hand, so that the test decides what is ready when, and
// waits for no controller.

import { type Family, ipFamily } from '../lib/ip.ts'

export const NAMESPACE = 'kube-proxy-test'
export const LABELS = { 'app.kubernetes.io/managed-by': 'kube-proxy-test' } as const
/** Until when the run that made the namespace is alive, in milliseconds of the epoch. */
export const ALIVE_UNTIL = 'kube-proxy-test/alive-until'
/** Of no controller: nobody else gives these services an address, or balances for them. */
const LOAD_BALANCER_CLASS = 'kube-proxy-test/none'
/** In the image, and in the sandbox. */
export const PROGRAM = '/usr/local/bin/kube-proxy'
export const SERVICE_PORT = 80
export const probePorts = { first: 8080, second: 8081, closed: 8082 } as const
/** What a killed run leaves does no work for longer. */
const DEADLINE_SECONDS = 3600

/** Addresses for documentation (RFC 5737, RFC 3849), which lead nowhere. */
const outsideAddresses = {
  plainExternal: ['203.0.113.1', '2001:db8:6b70::1'],
  plain: ['203.0.113.11', '2001:db8:6b70::11'],
  'external-local': ['203.0.113.12', '2001:db8:6b70::12'],
  ranges: ['203.0.113.13', '2001:db8:6b70::13'],
} as const

export const serviceNames = [
  'plain',
  'sticky',
  'internal-local',
  'external-local',
  'ranges',
  'empty',
  'change',
  'half-dead',
  // The last: a node that serves it serves the others.
  'marker',
] as const
export type ServiceName = (typeof serviceNames)[number]

export interface Endpoint {
  readonly pod: string
  readonly node: string
  readonly ips: readonly string[]
  readonly port: number
  /** Absent: ready. */
  readonly state?: 'terminating'
}

export type KubeObject = Readonly<Record<string, unknown>>

export function namespaceObject(aliveUntilMs: number): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: NAMESPACE,
      // A pod on the host's network is not for the weaker levels of pod security.
      labels: { ...LABELS, 'pod-security.kubernetes.io/enforce': 'privileged' },
      annotations: { [ALIVE_UNTIL]: String(aliveUntilMs) },
    },
  }
}

export interface ProbePod {
  readonly name: string
  readonly node: string
  readonly kind: 'pod' | 'node'
}

export function podObject({ name, node, kind }: ProbePod, image: string): KubeObject {
  const hostNetwork = kind === 'node'
  const ports = hostNetwork ? [] : [probePorts.first, probePorts.second]
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE, labels: { ...LABELS, probe: kind } },
    spec: {
      nodeName: node,
      hostNetwork,
      restartPolicy: 'Never',
      activeDeadlineSeconds: DEADLINE_SECONDS,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      tolerations: [{ operator: 'Exists' }],
      securityContext: { runAsNonRoot: true, runAsUser: 65_534, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'probe',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: [PROGRAM],
          args: ['probe', 'serve', name, ...ports.map(String)],
          ports: ports.map((containerPort) => ({ containerPort })),
          ...(hostNetwork ? {} : { readinessProbe: { tcpSocket: { port: probePorts.second }, periodSeconds: 1 } }),
          resources: { requests: { cpu: '10m', memory: '64Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  }
}

/** The clients that may use the service with source ranges. */
export interface ServiceSettings {
  readonly allowedSources: readonly string[]
  readonly externalIPs: boolean
}

export function serviceObject(name: ServiceName, { allowedSources, externalIPs }: ServiceSettings): KubeObject {
  const balanced = { type: 'LoadBalancer', loadBalancerClass: LOAD_BALANCER_CLASS }
  const specs: Readonly<Record<ServiceName, KubeObject>> = {
    plain: { ...balanced, ...(externalIPs ? { externalIPs: outsideAddresses.plainExternal } : {}) },
    sticky: { sessionAffinity: 'ClientIP' },
    'internal-local': { internalTrafficPolicy: 'Local' },
    'external-local': { ...balanced, externalTrafficPolicy: 'Local' },
    ranges: {
      ...balanced,
      loadBalancerSourceRanges: allowedSources.map((ip) => `${ip}/${ipFamily(ip) === 6 ? 128 : 32}`),
    },
    empty: { type: 'NodePort' },
    change: { type: 'NodePort' },
    'half-dead': {},
    marker: {},
  }
  const ports = (['TCP', 'UDP'] as const).map((protocol) => ({
    name: protocol.toLowerCase(),
    protocol,
    port: SERVICE_PORT,
    targetPort: probePorts.first,
  }))
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: NAMESPACE, labels: LABELS },
    spec: { ipFamilyPolicy: 'PreferDualStack', ports, ...specs[name] },
  }
}

/** What a cloud would write into the status; undefined for services without a load balancer. */
export function loadBalancerStatus(name: ServiceName, families: readonly Family[]): KubeObject | undefined {
  if (name !== 'plain' && name !== 'external-local' && name !== 'ranges') return undefined
  const ingress = families.map((family) => ({ ip: addressOf(outsideAddresses[name], family), ipMode: 'VIP' }))
  return { status: { loadBalancer: { ingress } } }
}

export function loadBalancerIp(name: 'plain' | 'external-local' | 'ranges', family: Family): string {
  return addressOf(outsideAddresses[name], family)
}

export function externalIp(family: Family): string {
  return addressOf(outsideAddresses.plainExternal, family)
}

function addressOf(addresses: readonly [string, string], family: Family): string {
  return addresses[family === 4 ? 0 : 1]
}

/** One for each family and port, also those that have no endpoint now: what is written replaces what was there. */
export function sliceObjects(
  service: ServiceName,
  endpoints: readonly Endpoint[],
  families: readonly Family[],
): KubeObject[] {
  return families.flatMap((family) =>
    Object.values(probePorts).map((port) => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: `${service}-ipv${family}-${port}`,
        namespace: NAMESPACE,
        labels: {
          ...LABELS,
          'kubernetes.io/service-name': service,
          'endpointslice.kubernetes.io/managed-by': 'kube-proxy-test',
        },
      },
      addressType: `IPv${family}`,
      ports: (['TCP', 'UDP'] as const).map((protocol) => ({ name: protocol.toLowerCase(), protocol, port })),
      endpoints: endpoints
        .filter((endpoint) => endpoint.port === port)
        .flatMap(({ ips, node, state }) =>
          ips
            .filter((ip) => ipFamily(ip) === family)
            .map((ip) => ({
              addresses: [ip],
              nodeName: node,
              conditions: { ready: state === undefined, serving: true, terminating: state === 'terminating' },
            })),
        ),
    })),
  )
}
