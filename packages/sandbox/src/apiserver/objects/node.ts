import type { ApiObject, Condition } from './meta.ts'

export interface Node extends ApiObject {
  spec: NodeSpec
  status: NodeStatus
}

export interface NodeSpec {
  podCIDR?: string
  podCIDRs?: string[]
  unschedulable?: boolean
  taints?: Taint[]
}

export interface Taint {
  key: string
  value?: string
  effect: string
}

export interface NodeStatus {
  allocatable?: Record<string, string>
  conditions?: Condition[]
  addresses?: { type: string; address: string }[]
  nodeInfo?: Record<string, string>
}

export const zoneLabel = 'topology.kubernetes.io/zone'
export const hostnameLabel = 'kubernetes.io/hostname'

export interface Namespace extends ApiObject {
  spec: { finalizers?: string[] }
  status: { phase?: string; conditions?: Condition[] }
}
