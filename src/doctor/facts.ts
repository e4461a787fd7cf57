// What the doctor looks at: facts about the service, the proxy, the kernel and the machine. They are read by read-facts.ts and
// judged by examine.ts, which knows nothing else.

import type { Explanation } from '../explain/explanation.ts'

export interface Facts {
  readonly asked: { readonly service: string; readonly port: string; readonly from: string }
  readonly proxy: ProxyFact
  /** Undefined: no API server was asked. */
  readonly api: { readonly server: string } | undefined
  readonly service: ServiceFact | undefined
  /** Names near the one that was asked for, where there is no such service. */
  readonly near: readonly string[]
  readonly explanation: Explanation | undefined
  /** Why there is no explanation: the question makes no sense for this service. */
  readonly mistake: string | undefined
  readonly machine: MachineFacts
  readonly foreign: readonly ForeignFact[]
  readonly tries: readonly TryFact[]
  /** A connection from this node to the service itself; undefined: not tried. */
  readonly serviceTry: TryFact | undefined
}

/** Of the node, for all of its Services. */
export interface NodeFacts extends Pick<Facts, 'proxy' | 'machine' | 'foreign'> {
  /** Whether the kernel holds what was decided, by family. */
  readonly drift: readonly {
    readonly family: number
    readonly holds: boolean
    readonly sinceMs: number
    readonly reason?: string | undefined
    readonly times: number
  }[]
}

export type ProxyFact =
  | { readonly kind: 'answers'; readonly mode: string; readonly node: string }
  | { readonly kind: 'silent'; readonly error: string }
  | { readonly kind: 'none'; readonly error: string }

export interface ServiceFact {
  readonly type: string
  readonly clusterIP: string
  readonly externalName: string
  /** The label service.kubernetes.io/service-proxy-name. */
  readonly proxyName: string | undefined
  readonly selector: Readonly<Record<string, string>> | undefined
  readonly ports: readonly {
    readonly name: string
    readonly port: number
    readonly protocol: string
    readonly targetPort: string
  }[]
  /** Those that the selector matches; undefined: pods cannot be seen. */
  readonly pods: readonly PodFact[] | undefined
  /** How many endpoints its slices have, and the ports that they are for. */
  readonly endpoints: number
  readonly endpointPorts: readonly string[]
}

export interface PodFact {
  readonly name: string
  readonly phase: string
  readonly ready: boolean
  /** Why it is not ready, as far as its conditions say. */
  readonly why: string
  /** Names of its containers' ports. */
  readonly portNames: readonly string[]
}

export interface MachineFacts {
  /** False: off. Undefined: not known. */
  readonly forwarding: boolean | undefined
  readonly conntrack: { readonly count: number; readonly max: number } | undefined
  /** Interfaces with a small MTU. */
  readonly smallMtus: readonly { readonly name: string; readonly mtu: number }[]
  /** Interfaces on which rp_filter is strict. */
  readonly strictRpFilter: readonly string[]
  /** Packets that rp_filter dropped while endpoints were dialled. */
  readonly rpFiltered: number
}

/** A rule of another program that a packet of this connection does not survive. */
export interface ForeignFact {
  readonly table: string
  readonly chain: string
  readonly rule: string
  readonly verdict: 'drop' | 'reject' | 'translated'
  readonly packet: string
  /** The command that shows it. */
  readonly next: string
}

export interface TryFact {
  readonly to: string
  /** `-n NAMESPACE POD`, for kubectl; '' where the pod is not known. */
  readonly pod: string
  readonly result: 'connected' | 'refused' | 'no answer' | 'no route' | 'not tried'
  readonly error: string
}
