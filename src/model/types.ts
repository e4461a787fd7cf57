// What the proxy has decided, before a mode turns it into rules.
//
// A service port becomes a list of frontends. All policy - traffic policies, topology, terminating endpoints, short
// circuits for pods and the node, masquerading - is decided here, once, for every mode.

import type { Cidr, Family } from '../lib/ip.ts'
import type { Protocol } from '../kube/types.ts'
import type { Balance } from './balance.ts'
import type { EndpointEnds } from './ends.ts'
import type { Limits } from './limits.ts'
import type { BackendList } from './backend-list.ts'

/** `namespace/name:port`, or `namespace/name` for an unnamed port. */
export type ServicePortName = string

/** Where a frontend sends a connection. */
export interface Backend {
  /** Canonical text of the address. */
  readonly ip: string
  readonly port: number
  /** Whether it runs on this node. */
  readonly isLocal: boolean
  /** Its endpoint names no node, so it may run on this one and connect to itself. Absent: isLocal decides. */
  readonly mayBeLocal?: boolean | undefined
  /** Its share of new connections, for modes that can weigh; absent: 1. */
  readonly weight?: number | undefined
}

/** A traffic policy, and the list of backends that it allows. */
export type Policy = 'Cluster' | 'Local'

export type Verdict =
  /**
   * To one of these, never empty. A service port has at most two lists: the one that Cluster policy uses and the one that
   * Local policy uses. Verdicts with the same policy share one object.
   */
  | { readonly kind: 'to'; readonly policy: Policy; readonly backends: BackendList }
  /** Refuse at once: the service has no usable endpoint anywhere. */
  | { readonly kind: 'reject'; readonly reason: 'has no endpoints' }
  /** Drop silently: the policy is Local and no endpoint is on this node, so a load balancer should try another node. */
  | { readonly kind: 'drop'; readonly reason: 'has no local endpoints' }
  /** As drop, and the Service is annotated: what its routes lead to may have endpoints. Never at a cluster IP or a node port. */
  | { readonly kind: 'leave'; readonly reason: 'has no local endpoints, and is annotated to leave such packets alone' }

/** What happens to a connection, by where it comes from. */
export interface Route {
  readonly verdict: Verdict
  /**
   * Whether the source becomes an address of this node. (Hairpin connections are masqueraded in any case.) False when
   * the verdict sends nowhere.
   */
  readonly masquerade: boolean
  /** Why the source is kept or not. Absent: nothing is sent. */
  readonly why?: string | undefined
}

export type FrontendKind = 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort'

export interface Frontend {
  readonly kind: FrontendKind
  /** Canonical text of the address; undefined for a node port, which is open on NodeView.nodePortAddresses. */
  readonly address: string | undefined
  readonly protocol: Protocol
  readonly port: number
  /** For sources that the local detector calls pods of this node (or of the cluster, when it goes by the cluster CIDR). */
  readonly fromPods: Route
  /** For sources that are addresses of this node and are not pods. */
  readonly fromNode: Route
  /** For all other clients. */
  readonly fromOthers: Route
  /** Whether clients from outside get another list than pods and the node do: externalTrafficPolicy Local. */
  readonly isSplit: boolean
  /** Only these sources may connect; undefined: any. Checked before everything else. */
  readonly allowedSources: readonly Cidr[] | undefined
  /** ClientIP affinity, in seconds; undefined: none. */
  readonly affinitySeconds: number | undefined
  /** How many connections are allowed, the same for all frontends of a service port; absent: any number. */
  readonly limits?: Limits | undefined
}

/** What a client dials. */
export type FrontendAddress = Pick<Frontend, 'address' | 'protocol' | 'port'>

/** One port of one service, for one IP family. */
export interface ServicePortView {
  readonly name: ServicePortName
  readonly namespace: string
  readonly service: string
  /** '' when unnamed. */
  readonly portName: string
  readonly protocol: Protocol
  /** The cluster IP first, then load-balancer IPs, external IPs, the node port. Without those that another service owns. */
  readonly frontends: readonly Frontend[]
  /** The lists of backends that frontends use, by policy; absent: no frontend does. The verdicts share these objects. */
  readonly lists: Readonly<Partial<Record<Policy, BackendList>>>
  /**
   * Every backend that some frontend may choose: the union of the lists, without duplicates. Like those, in
   * order of address and port. A list that did not change is the same object in the next view.
   */
  readonly backends: BackendList
  /**
   * `ip:port` (`[ip]:port` for IPv6) of every endpoint that still serves, whatever the policies say: what an existing
   * flow may keep using. Only UDP ports have it, for only their flows outlive their endpoints; empty for the others.
   */
  readonly serving: readonly string[]
  /** Whether a client whose backend does not answer gets another one: `--connect-retry`, or the Service's annotation. */
  readonly connectRetry?: true | undefined
  /** Ejected backends. Absent: none. */
  readonly ejected?: readonly Backend[] | undefined
  /** The port of the health check for the service's load balancers; absent: none. */
  readonly healthCheckNodePort?: number | undefined
  /** The endpoints with which their TCP connections are to end. Absent: connections stay. */
  readonly ends?: EndpointEnds | undefined
}

/** A service port whose view changed: new without `before`, gone without `after`. */
export interface ServicePortChange {
  readonly name: ServicePortName
  readonly before: ServicePortView | undefined
  readonly after: ServicePortView | undefined
}

/** A service with a health check for load balancers on its own port. */
export interface HealthCheck {
  readonly namespace: string
  readonly service: string
  /** spec.healthCheckNodePort */
  readonly port: number
  /** How many different addresses of ready endpoints of the service are on this node. */
  readonly localEndpoints: number
}

/** What the change metrics report. Totals only grow; pending ones count since the last takeChanges(). */
export interface ChangeCounts {
  readonly servicesPending: number
  readonly servicesTotal: number
  readonly endpointsPending: number
  readonly endpointsTotal: number
}

/** Service ports that have endpoints but none on this node though a policy is Local, by that policy. */
export interface NoLocalEndpoints {
  readonly internal: number
  readonly external: number
}

/** How the proxy recognizes connections from pods. */
export type LocalDetector =
  | { readonly kind: 'none' }
  | { readonly kind: 'cidr'; readonly cidrs: readonly Cidr[] }
  | { readonly kind: 'interface'; readonly name: string }
  | { readonly kind: 'interfacePrefix'; readonly prefix: string }

/** The addresses of this node on which node ports are open. */
export type NodePortAddresses =
  | { readonly kind: 'all' }
  /**
   * Canonical texts. Loopback addresses, which only the node itself can use and few modes can serve, are in `loopback`.
   */
  | { readonly kind: 'only'; readonly addresses: readonly string[]; readonly loopback?: readonly string[] }

/**
 * Node ports on 127.0.0.1 and ::1 in a mode whose rules cannot translate them: the proxy listens there, or connections are
 * refused.
 */
export type LocalhostNodePorts = 'served by listeners' | 'refused'

/** The node, for one IP family. */
export interface NodeView {
  readonly family: Family
  readonly nodeName: string
  /** This node's primary address of the family, canonical. */
  readonly nodeIp: string
  readonly zone: string | undefined
  readonly localDetector: LocalDetector
  readonly masqueradeAll: boolean
  /** The mark bit, as a number: 1 << 14. */
  readonly masqueradeMark: number
  readonly nodePortAddresses: NodePortAddresses
  /** Absent: the mode handles them itself, or not at all. */
  readonly localhostNodePorts?: LocalhostNodePorts
  /** Whether cluster IPs and load-balancer IPs answer pings; absent: no. */
  readonly answerPing?: true
  /** How Services that do not say choose a backend; absent: as the mode does. */
  readonly balance?: Balance
  /** The ranges of cluster IPs, as far as the API server has them. */
  readonly serviceCidrs: readonly Cidr[]
}
