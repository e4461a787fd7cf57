import type { ApiObject, ObjectReference } from './meta.ts'

export interface Endpoints extends ApiObject {
  subsets?: EndpointSubset[]
}

export interface EndpointSubset {
  addresses?: EndpointAddress[]
  notReadyAddresses?: EndpointAddress[]
  ports?: EndpointsPort[]
}

export interface EndpointAddress {
  ip: string
  hostname?: string
  nodeName?: string
  targetRef?: ObjectReference
}

export interface EndpointsPort {
  name?: string
  port: number
  protocol?: string
  appProtocol?: string
}

export const addressTypes = ['FQDN', 'IPv4', 'IPv6'] as const

export interface EndpointSlice extends ApiObject {
  addressType: string
  endpoints: SliceEndpoint[] | null
  ports: SlicePort[] | null
}

export interface SliceEndpoint {
  addresses: string[]
  conditions: { ready?: boolean; serving?: boolean; terminating?: boolean }
  hostname?: string
  targetRef?: ObjectReference
  nodeName?: string
  zone?: string
  hints?: { forZones?: { name: string }[]; forNodes?: { name: string }[] }
}

export interface SlicePort {
  name?: string
  protocol?: string
  port?: number
  appProtocol?: string
}
