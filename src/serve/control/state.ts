// The answer to the question `state`: the objects that a running proxy has, and what it decided.

import type { EndpointSlice, Node, Service } from '../../kube/types.ts'
import type { Family } from '../../lib/ip.ts'
import type { NodeView } from '../../model/types.ts'
import type { PortState } from './port-state.ts'

export interface StateAnswer {
  readonly version: string
  readonly pid: number
  readonly nowMs: number
  readonly startedMs: number
  /** Where it learns about services from: the URL of the API server, or a path. */
  readonly source: string
  readonly nodeName: string
  readonly mode: {
    readonly name: string
    /** By the configuration. */
    readonly asked: string
    /** Why it is another one, if it is. */
    readonly reasons: readonly string[]
  }
  /** KubeProxyConfiguration v1alpha1, with every field. */
  readonly config: Readonly<Record<string, unknown>>
  /** The Node as it is known; absent: there is none of this name. */
  readonly node?: Node | undefined
  /** Of this machine, without those of services. */
  readonly machineAddresses: readonly string[]
  readonly serviceCidrs: readonly string[]
  readonly families: readonly FamilyState[]
  /** Kinds of objects that the source does not tell about at present: what is known of them may be old. */
  readonly unheard?: readonly Unheard[] | undefined
  /** Backends that get no new connections until they answer again. */
  readonly ejected?: readonly EjectedBackend[] | undefined
  /** The cgroup whose processes choose an endpoint when they connect; absent: none do. */
  readonly socketBalancing?: string | undefined
}

export interface Unheard {
  /** `services`, `endpoints`, `node`, `service CIDRs` */
  readonly what: string
  readonly sinceMs: number
  readonly error: string
}

export interface EjectedBackend {
  /** `ip:port`, `[ip]:port`. */
  readonly backend: string
  readonly protocol: string
  /** How a client failed there. */
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly sinceMs: number
  /** When it is tried again. */
  readonly untilMs?: number | undefined
}

/** One IP family. With the argument `service`, its lists have what is of that service only; with `only=objects`, `ports` is empty. */
export interface FamilyState {
  readonly family: Family
  /** What the settings, the Node and the machine come to. */
  readonly node: NodeView
  readonly sync: SyncState
  readonly drift: DriftState
  /** As API objects of this family, reduced to what the proxy reads and can use. A ServiceModel that is given them decides the same. */
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
  /** What was decided: what the kernel should hold, but for what `sync` says. restorePort() makes views of them. */
  readonly ports: readonly PortState[]
  /** With least connections: the rungs of `src/model/shares.ts`, by service port and `ip:port`, of backends that get less than others now. */
  readonly rungs?: Readonly<Record<string, Readonly<Record<string, number>>>> | undefined
}

export interface SyncState {
  /** Whether all objects have been listed once; nothing is programmed before. */
  readonly hasBegun: boolean
  /** The last time that the kernel acknowledged; absent: never. */
  readonly lastSyncMs?: number | undefined
  /** The last time that all of it was compared with the kernel. */
  readonly lastFullSyncMs?: number | undefined
  /** Since when changes wait that the kernel does not have; absent: none do. */
  readonly waitingSinceMs?: number | undefined
  /** Service ports whose rules the kernel refused. */
  readonly refused: number
}

/** Whether the kernel holds what was decided. */
export interface DriftState {
  readonly holds: boolean
  /** Since when it does, or does not. */
  readonly sinceMs: number
  /** Why it does not. */
  readonly reason?: string | undefined
  /** Another program may have changed our rules, and no comparison has followed yet. */
  readonly suspectedSinceMs?: number | undefined
  /** The last time that all of it was compared with the kernel. */
  readonly comparedMs?: number | undefined
  /** How often another program had changed it. */
  readonly times: number
  /** The last of these, the newest first. */
  readonly found: readonly FoundDrift[]
}

/** What another program had changed, and has been restored. */
export interface FoundDrift {
  /** When the change was noticed; else the time of the comparison before, which found nothing. */
  readonly sinceMs?: number | undefined
  readonly restoredMs: number
  readonly operations: number
  /** The first of the commands that restored it. */
  readonly sample: readonly string[]
}

/** The same before it is JSON: lists may be made as they are sent. */
export type StateToSend = Omit<StateAnswer, 'families'> & {
  readonly families: readonly (Omit<FamilyState, 'services' | 'slices' | 'ports'> & {
    readonly services: Iterable<Service>
    readonly slices: Iterable<EndpointSlice>
    readonly ports: Iterable<PortState>
  })[]
}
