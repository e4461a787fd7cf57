import { nameRules } from '../fields/object-meta.ts'
import { isExternallyAccessible, needsClusterIP, needsHealthCheckNodePort, needsNodePort } from '../objects/service.ts'
import { sameJson } from '../json.ts'
import { ageColumn, formatLabels, nameColumn, none, unknown } from './columns.ts'
import { defineResource, statusSubresource } from './resource.ts'
import { validateService, validateServiceStatus, validateServiceUpdate } from './service-validation.ts'
import type { Service, ServicePort } from '../objects/service.ts'

const defaultAffinitySeconds = 10_800

export const services = defineResource<Service>({
  kind: 'Service',
  shortNames: ['svc'],
  categories: ['all'],
  subresources: [statusSubresource],
  nameRule: nameRules.label,
  createOnUpdate: true,
  columns: [
    nameColumn,
    { name: 'Type', cell: ({ spec }) => spec.type ?? '' },
    { name: 'Cluster-IP', cell: ({ spec }) => spec.clusterIPs?.[0] ?? none },
    { name: 'External-IP', cell: formatExternalIp },
    { name: 'Port(s)', cell: ({ spec }) => formatPorts(spec.ports) },
    ageColumn,
    { name: 'Selector', priority: 1, cell: ({ spec }) => formatLabels(spec.selector) },
  ],
  fields: { 'spec.clusterIP': ({ spec }) => spec.clusterIP ?? '', 'spec.type': ({ spec }) => spec.type ?? '' },
  setDefaults,
  prepareCreate(service) {
    service.status = { loadBalancer: {} }
  },
  prepareUpdate: dropWhatTheTypeNoLongerHas,
  validate: (service) => validateService(service),
  validateUpdate: validateServiceUpdate,
  validateStatus: validateServiceStatus,
})

function setDefaults(service: Service): void {
  const { spec, status } = service
  spec.sessionAffinity ??= 'None'
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig
  if (spec.sessionAffinity === 'ClientIP' && spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined) {
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: defaultAffinitySeconds } }
  }
  spec.type ??= 'ClusterIP'
  for (const port of spec.ports ?? []) {
    port.protocol ??= 'TCP'
    if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') port.targetPort = port.port
  }
  if (isExternallyAccessible(service)) spec.externalTrafficPolicy ??= 'Cluster'
  if (['ClusterIP', 'NodePort', 'LoadBalancer'].includes(spec.type)) spec.internalTrafficPolicy ??= 'Cluster'
  if (spec.type !== 'LoadBalancer') return
  spec.allocateLoadBalancerNodePorts ??= true
  for (const ingress of status.loadBalancer.ingress ?? []) {
    if (ingress.ip !== undefined) ingress.ipMode ??= 'VIP'
  }
}

/**
 * A service that changes its type keeps fields that only the old type has. Where they were probably filled in for the
 * user, and the user did not touch them, they go; otherwise validation complains about them.
 */
function dropWhatTheTypeNoLongerHas(next: Service, current: Service): void {
  const same = (field: keyof Service['spec']): boolean => sameJson(next.spec[field], current.spec[field])
  if (needsClusterIP(current) && !needsClusterIP(next)) {
    if (same('clusterIP') && same('clusterIPs')) {
      delete next.spec.clusterIP
      delete next.spec.clusterIPs
    }
    if (same('ipFamilies')) delete next.spec.ipFamilies
    if (same('ipFamilyPolicy')) delete next.spec.ipFamilyPolicy
  }
  if (needsNodePort(current) && !needsNodePort(next) && addsNoNodePorts(next, current)) {
    for (const port of next.spec.ports ?? []) delete port.nodePort
  }
  if (needsHealthCheckNodePort(current) && !needsHealthCheckNodePort(next) && same('healthCheckNodePort')) {
    delete next.spec.healthCheckNodePort
  }
  if (current.spec.type === 'LoadBalancer' && next.spec.type !== 'LoadBalancer') {
    if (same('allocateLoadBalancerNodePorts')) delete next.spec.allocateLoadBalancerNodePorts
    if (same('loadBalancerClass')) delete next.spec.loadBalancerClass
  }
  if (isExternallyAccessible(current) && !isExternallyAccessible(next) && same('externalTrafficPolicy')) {
    delete next.spec.externalTrafficPolicy
  }
  if (next.spec.type !== 'LoadBalancer') next.status.loadBalancer = {}
}

function addsNoNodePorts(next: Service, current: Service): boolean {
  const had = new Set((current.spec.ports ?? []).map(({ nodePort }) => nodePort))
  return (next.spec.ports ?? []).every(({ nodePort }) => nodePort === undefined || had.has(nodePort))
}

function formatExternalIp({ spec, status }: Service): string {
  const external = spec.externalIPs ?? []
  switch (spec.type) {
    case 'ClusterIP':
    case 'NodePort':
      return external.length > 0 ? external.join(',') : none
    case 'LoadBalancer': {
      const ingress = (status.loadBalancer.ingress ?? []).map(({ ip, hostname }) => ip ?? hostname ?? '')
      const all = [...[...new Set(ingress)].filter((address) => address !== '').sort(), ...external]
      return all.length > 0 ? all.join(',') : '<pending>'
    }
    case 'ExternalName':
      return spec.externalName ?? ''
    default:
      return unknown
  }
}

function formatPorts(ports: readonly ServicePort[] = []): string {
  if (ports.length === 0) return none
  return ports
    .map(({ port, nodePort, protocol }) =>
      nodePort === undefined ? `${port}/${protocol}` : `${port}:${nodePort}/${protocol}`,
    )
    .join(',')
}
