// What a Service must look like.

import { check, checkOptional, checkRequired, oneOf, validateLabels } from '../fields/check.ts'
import { validateCidr, validateEndpointIp, validateIp } from '../fields/addresses.ts'
import {
  dnsLabelProblem,
  dnsSubdomainProblem,
  portNameProblem,
  portProblem,
  qualifiedNameProblem,
} from '../fields/names.ts'
import { duplicateValue, forbiddenField, invalidValue, requiredValue } from '../fields/problem.ts'
import { isExternallyAccessible, isHeadless, needsHealthCheckNodePort, serviceTypes } from '../objects/service.ts'
import { validateClusterIps, validateClusterIpsUpdate } from './service-ip-validation.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { Service, ServicePort } from '../objects/service.ts'

export const protocols = ['SCTP', 'TCP', 'UDP'] as const
const affinities = ['ClientIP', 'None'] as const
const trafficPolicies = ['Cluster', 'Local'] as const
const distributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode'] as const
const longestAffinitySeconds = 86_400
const sourceRangesAnnotation = 'service.beta.kubernetes.io/load-balancer-source-ranges'

export function validateService(service: Service): FieldProblem[] {
  return [
    ...validateTopologyAnnotations(service),
    ...validateType(service),
    ...validatePorts(service),
    ...validateLabels('spec.selector', service.spec.selector),
    ...validateAffinity(service),
    ...validateClusterIps(service),
    ...(service.spec.externalIPs ?? []).flatMap((ip, i) => validateEndpointIp(`spec.externalIPs[${i}]`, ip)),
    ...validateLoadBalancer(service),
    ...validateTraffic(service),
  ]
}

export function validateServiceUpdate(next: Service, current: Service): FieldProblem[] {
  const needsBoth = needsHealthCheckNodePort(next) && needsHealthCheckNodePort(current)
  const classChanged =
    current.spec.type === 'LoadBalancer' &&
    next.spec.type === 'LoadBalancer' &&
    current.spec.loadBalancerClass !== next.spec.loadBalancerClass
  return [
    ...validateClusterIpsUpdate(next, current),
    ...(classChanged
      ? [invalidValue('spec.loadBalancerClass', next.spec.loadBalancerClass, 'may not change once set')]
      : []),
    ...(needsBoth && next.spec.healthCheckNodePort !== current.spec.healthCheckNodePort
      ? [forbiddenField('spec.healthCheckNodePort', 'field is immutable')]
      : []),
    ...validateService(next),
  ]
}

export function validateServiceStatus(next: Service): FieldProblem[] {
  const path = 'status.loadBalancer.ingress'
  const ingress = next.status.loadBalancer.ingress ?? []
  if (next.spec.type !== 'LoadBalancer' && ingress.length > 0) {
    return [forbiddenField(path, 'may only be used when `spec.type` is "LoadBalancer"')]
  }
  return ingress.flatMap(({ ip, hostname, ipMode }, i) => [
    ...(ip === undefined ? [] : validateIp(`${path}[${i}].ip`, ip)),
    ...checkOptional(`${path}[${i}].hostname`, hostname, dnsSubdomainProblem),
    ...(ip === undefined ? [] : oneOf(`${path}[${i}].ipMode`, ipMode, ['Proxy', 'VIP'])),
  ])
}

function validateTopologyAnnotations({ metadata }: Service): FieldProblem[] {
  const [hints, mode] = ['service.kubernetes.io/topology-aware-hints', 'service.kubernetes.io/topology-mode'].map(
    (key) => metadata.annotations?.[key],
  )
  if (hints === undefined || mode === undefined || hints === mode) return []
  const detail = 'must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified'
  return [invalidValue('metadata.annotations[service.kubernetes.io/topology-mode]', mode, detail)]
}

function validateType(service: Service): FieldProblem[] {
  const { spec } = service
  const { type = '' } = spec
  const unknown = oneOf('spec.type', type, serviceTypes)
  if (unknown.length > 0) return unknown
  if (type === 'ExternalName') return validateExternalName(service)
  const problems =
    (spec.ports ?? []).length === 0 && !isHeadless(service) ? [requiredValue('spec.ports')] : ([] as FieldProblem[])
  if (type !== 'ClusterIP' && isHeadless(service)) {
    problems.push(invalidValue('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`))
  }
  return problems
}

function validateExternalName({ spec }: Service): FieldProblem[] {
  const forbidden = (['clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const)
    .filter((field) => (spec[field]?.length ?? 0) > 0)
    .map((field) => forbiddenField(`spec.${field}`, 'may not be set for ExternalName services'))
  const name = (spec.externalName ?? '').replace(/\.$/, '')
  return [...forbidden, ...checkRequired('spec.externalName', name, dnsSubdomainProblem)]
}

function validatePorts({ spec }: Service): FieldProblem[] {
  const ports = spec.ports ?? []
  const names = new Set<string>()
  const portKeys = new Set<string>()
  const nodePortKeys = new Set<string>()
  return ports.flatMap((port, i) => {
    const path = `spec.ports[${i}]`
    const problems = validatePort(port, path, ports.length > 1)
    if (port.name !== undefined && !addNew(names, port.name)) problems.push(duplicateValue(`${path}.name`, port.name))
    if (!addNew(portKeys, `${port.protocol}/${port.port}`)) {
      problems.push(duplicateValue(path, { protocol: port.protocol, port: port.port }))
    }
    if (port.nodePort === undefined) return problems
    if (spec.type === 'ClusterIP') {
      problems.push(forbiddenField(`${path}.nodePort`, "may not be used when `type` is 'ClusterIP'"))
    }
    if (!addNew(nodePortKeys, `${port.protocol}/${port.nodePort}`)) {
      problems.push(duplicateValue(`${path}.nodePort`, port.nodePort))
    }
    return problems
  })
}

function addNew(set: Set<string>, value: string): boolean {
  if (set.has(value)) return false
  set.add(value)
  return true
}

function validatePort(port: ServicePort, path: string, nameRequired: boolean): FieldProblem[] {
  const { name, protocol, targetPort = 0, appProtocol } = port
  return [
    ...(nameRequired ? checkRequired : checkOptional)(`${path}.name`, name, dnsLabelProblem),
    ...check(`${path}.port`, port.port, portProblem),
    ...validateProtocol(`${path}.protocol`, protocol),
    ...(typeof targetPort === 'number'
      ? check(`${path}.targetPort`, targetPort, portProblem)
      : check(`${path}.targetPort`, targetPort, portNameProblem)),
    ...checkOptional(`${path}.appProtocol`, appProtocol, qualifiedNameProblem),
  ]
}

export function validateProtocol(path: string, protocol: string | undefined): FieldProblem[] {
  return protocol === undefined ? [requiredValue(path)] : oneOf(path, protocol, protocols)
}

function validateAffinity({ spec }: Service): FieldProblem[] {
  const { sessionAffinity = '', sessionAffinityConfig } = spec
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds
  if (sessionAffinity !== 'ClientIP' || seconds === undefined) {
    return oneOf('spec.sessionAffinity', sessionAffinity, affinities)
  }
  if (seconds > 0 && seconds <= longestAffinitySeconds) return []
  const path = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds'
  return [invalidValue(path, seconds, `must be greater than 0 and less than ${longestAffinitySeconds}`)]
}

function validateLoadBalancer({ metadata, spec }: Service): FieldProblem[] {
  const isLoadBalancer = spec.type === 'LoadBalancer'
  const onlyThere = "may only be used when `type` is 'LoadBalancer'"
  const problems: FieldProblem[] = []
  const ranges = spec.loadBalancerSourceRanges ?? []
  const annotation = metadata.annotations?.[sourceRangesAnnotation]
  if (ranges.length > 0) {
    const path = 'spec.LoadBalancerSourceRanges'
    if (!isLoadBalancer) problems.push(forbiddenField(path, onlyThere))
    problems.push(...ranges.flatMap((range, i) => validateCidr(`${path}[${i}]`, range.trim())))
  } else if (annotation !== undefined) {
    const path = `metadata.annotations[${sourceRangesAnnotation}]`
    if (!isLoadBalancer) problems.push(forbiddenField(path, onlyThere))
    const listed = annotation.trim() === '' ? [] : annotation.split(',')
    problems.push(...listed.flatMap((range) => validateCidr(path, range.trim())))
  }
  if (isLoadBalancer) return problems
  if (spec.allocateLoadBalancerNodePorts !== undefined) {
    problems.push(forbiddenField('spec.allocateLoadBalancerNodePorts', onlyThere))
  }
  if (spec.loadBalancerClass !== undefined) problems.push(forbiddenField('spec.loadBalancerClass', onlyThere))
  return problems
}

function validateTraffic(service: Service): FieldProblem[] {
  const { externalTrafficPolicy, internalTrafficPolicy, healthCheckNodePort, trafficDistribution } = service.spec
  const problems: FieldProblem[] = []
  const path = 'spec.externalTrafficPolicy'
  if (!isExternallyAccessible(service)) {
    if (externalTrafficPolicy !== undefined) {
      problems.push(invalidValue(path, externalTrafficPolicy, 'may only be set for externally-accessible services'))
    }
  } else {
    problems.push(...oneOf(path, externalTrafficPolicy, trafficPolicies))
  }
  if (!needsHealthCheckNodePort(service) && healthCheckNodePort !== undefined) {
    const detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    problems.push(invalidValue('spec.healthCheckNodePort', healthCheckNodePort, detail))
  }
  if (internalTrafficPolicy !== undefined) {
    problems.push(...oneOf('spec.internalTrafficPolicy', internalTrafficPolicy, trafficPolicies))
  }
  if (trafficDistribution !== undefined) {
    problems.push(...oneOf('spec.trafficDistribution', trafficDistribution, distributions))
  }
  return problems
}
