// Kinds that are little more than their data.

import type { ApiObject, Condition, ObjectReference } from './meta.ts'

export interface ConfigMap extends ApiObject {
  immutable?: boolean
  data?: Record<string, string>
  binaryData?: Record<string, string>
}

export interface Secret extends ApiObject {
  immutable?: boolean
  data?: Record<string, string>
  stringData?: Record<string, string>
  type?: string
}

export type ServiceAccount = ApiObject

export interface ServiceCIDR extends ApiObject {
  spec: { cidrs?: string[] }
  status: { conditions?: Condition[] }
}

export interface IPAddress extends ApiObject {
  spec: { parentRef?: { group?: string; resource?: string; namespace?: string; name?: string } }
}

export interface Lease extends ApiObject {
  spec: { holderIdentity?: string; leaseDurationSeconds?: number; acquireTime?: string; renewTime?: string }
}

/** As v1 writes it. events.k8s.io/v1 has the same under other names. */
export interface Event extends ApiObject {
  involvedObject: ObjectReference
  reason?: string
  message?: string
  source: { component?: string; host?: string }
  firstTimestamp: string | null
  lastTimestamp: string | null
  count?: number
  type?: string
  eventTime: string | null
  action?: string
  series?: { count?: number; lastObservedTime?: string | null }
  reportingComponent: string
  reportingInstance: string
}
