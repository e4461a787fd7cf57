// All services of one IP family, and what the proxy has decided about each of their ports.

import type { EndpointSlice, NamespacedName, Service } from '../kube/types.ts'
import type { ProblemLog } from './problems.ts'
import type {
  ChangeCounts,
  HealthCheck,
  NodeView,
  NoLocalEndpoints,
  ServicePortChange,
  ServicePortName,
  ServicePortView,
} from './types.ts'

export interface ServiceModelOptions {
  /** Its family is the model's. */
  readonly node: NodeView
  readonly problems: ProblemLog
  /** Feature gate AllowServiceExternalIPs. */
  readonly allowExternalIPs: boolean
  /** When the program started. Changes of endpoints that were triggered before are not timed. */
  readonly startedMs: number
}

/**
 * Takes API objects as they come, in any order, and says which service ports changed. An event costs work for its own
 * service only. Views change in takeChanges() and at no other time.
 */
export class ServiceModel {
  constructor(_options: ServiceModelOptions) {}

  /** Plans everything anew at the next takeChanges() when the change concerns services. */
  setNode(_node: NodeView): void {}

  setService(_service: Service, _key?: NamespacedName): void {}

  deleteService(_key: NamespacedName): void {}

  /** Slices of the other family are ignored; they may be given all the same. */
  setSlice(_slice: EndpointSlice, _key?: NamespacedName): void {}

  deleteSlice(_key: NamespacedName): void {}

  /** The service ports whose views differ from what the last call left behind. */
  takeChanges(): ServicePortChange[] {
    return []
  }

  /** When the changes were triggered that came since the last call, by service: for the network programming latency. */
  takeTriggerTimes(): ReadonlyMap<NamespacedName, readonly number[]> {
    return new Map()
  }

  /** Whether takeChanges() has something to look at. */
  get hasPendingChanges(): boolean {
    return false
  }

  *views(): Generator<ServicePortView> {}

  view(_name: ServicePortName): ServicePortView | undefined {
    return undefined
  }

  get changeCounts(): ChangeCounts {
    return { servicesPending: 0, servicesTotal: 0, endpointsPending: 0, endpointsTotal: 0 }
  }

  get noLocalEndpoints(): NoLocalEndpoints {
    return { internal: 0, external: 0 }
  }

  healthChecks(): HealthCheck[] {
    return []
  }
}
