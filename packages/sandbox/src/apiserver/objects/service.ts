import type { ApiObject } from './meta.ts'

export const serviceTypes = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'] as const
export const ipFamilies = ['IPv4', 'IPv6'] as const
export type IPFamily = (typeof ipFamilies)[number]

export interface Service extends ApiObject {
  spec: ServiceSpec
  status: ServiceStatus
}

export interface ServiceSpec {
  ports?: ServicePort[]
  selector?: Record<string, string>
  clusterIP?: string
  clusterIPs?: string[]
  type?: string
  externalIPs?: string[]
  sessionAffinity?: string
  loadBalancerIP?: string
  loadBalancerSourceRanges?: string[]
  externalName?: string
  externalTrafficPolicy?: string
  healthCheckNodePort?: number
  publishNotReadyAddresses?: boolean
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } }
  ipFamilies?: IPFamily[]
  ipFamilyPolicy?: string
  allocateLoadBalancerNodePorts?: boolean
  loadBalancerClass?: string
  internalTrafficPolicy?: string
  trafficDistribution?: string
}

export interface ServicePort {
  name?: string
  protocol?: string
  appProtocol?: string
  port: number
  targetPort?: number | string
  nodePort?: number
}

export interface ServiceStatus {
  loadBalancer: { ingress?: LoadBalancerIngress[] }
}

export interface LoadBalancerIngress {
  ip?: string
  hostname?: string
  ipMode?: string
}

export function isHeadless(service: Service): boolean {
  return service.spec.clusterIPs?.[0] === 'None' || service.spec.clusterIP === 'None'
}

export function needsClusterIP(service: Service): boolean {
  return service.spec.type !== 'ExternalName'
}

/** Whether its type has node ports (a load balancer may do without). */
export function needsNodePort(service: Service): boolean {
  return service.spec.type === 'NodePort' || service.spec.type === 'LoadBalancer'
}

export function needsHealthCheckNodePort(service: Service): boolean {
  return service.spec.type === 'LoadBalancer' && service.spec.externalTrafficPolicy === 'Local'
}

export function isExternallyAccessible(service: Service): boolean {
  return needsNodePort(service) || (service.spec.type === 'ClusterIP' && (service.spec.externalIPs?.length ?? 0) > 0)
}
