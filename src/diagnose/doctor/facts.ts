// What the doctor looks at: facts about the service, the proxy, the kernel and the machine. They are read by read-facts.ts and
// judged by examine.ts, which knows nothing else. What is undefined was not looked at, and is no fact.

import type { ExplainedSending, Explanation } from '../explain/explanation.ts'
import type { Way } from '../../links/find-ways.ts'
import type { Owner } from './owners.ts'

/** The endpoints that an address of the service leads this client to. */
export interface EndpointFacts {
  /** In the order of `tries`; undefined: not looked up. */
  readonly ways: readonly WayFact[] | undefined
  readonly tries: readonly TryFact[]
  /** How packets to endpoints that do not answer ended; undefined: none was sent for that. */
  readonly ends: readonly EndFact[] | undefined
  /** A connection from this node to the address itself; undefined: not tried. */
  readonly serviceTry: TryFact | undefined
  /** How its packet ended; undefined: none was sent for that. */
  readonly serviceEnd?: EndFact | undefined
}

/** Of an endpoint that does not answer, as its own network has it. */
export interface InsideFact {
  /** Addresses at which something listens on the endpoint's port. */
  readonly listensAt: readonly string[]
  /** Ports on which something else listens. */
  readonly otherPorts: readonly number[]
  /** Connections on that port that the program has not accepted. */
  readonly waiting: number
  readonly wayBack: Way
  /** What to put before a command that shall run there. */
  readonly enter: string | null
}

export interface ServiceExamination extends EndpointFacts {
  readonly asked: {
    readonly service: string
    readonly port: string
    readonly from: string
    /** One kind of address was asked for. */
    readonly via: string | undefined
  }
  readonly proxy: ProxyFact
  readonly installation: Installation
  /** Why the API server said nothing; undefined: it did, or was not asked. */
  readonly apiError?: string | undefined
  readonly service: ServiceFact | undefined
  /** Names near the one that was asked for, where there is no such service. */
  readonly near: readonly string[]
  readonly explanation: Explanation | undefined
  /** Why this client has nothing to dial: the service has no such address. */
  readonly nothingToDial?: string | undefined
  /** The other addresses of the service that this client may dial. */
  readonly others: readonly OtherFrontend[]
  readonly machine: MachineFacts
  /** Undefined: no packet would pass, so none was followed. */
  readonly foreign: ForeignFacts | undefined
  /** To the client, for answers that pass through this node; undefined: it is this node, or has no address of its own. */
  readonly wayBack: WayFact | undefined
  /** Flows to the service that the connection tracker keeps with an endpoint that is gone; undefined: not looked at. */
  readonly staleFlows: readonly StaleFlow[] | undefined
  readonly dns: DnsFact
}

/** Of the node, for all of its Services. */
export interface NodeExamination extends Pick<
  ServiceExamination,
  'proxy' | 'installation' | 'apiError' | 'machine' | 'foreign'
> {
  /** Whether the kernel holds what was decided, by family. */
  readonly drift: readonly {
    readonly family: number
    readonly holds: boolean
    readonly sinceMs: number
    readonly reason?: string | undefined
    readonly times: number
  }[]
}

/** Commands as they are on this installation. */
export interface Installation {
  /** Shows what the proxy logged. */
  readonly logs: string
  /** Shows whether and where it runs. */
  readonly status: string
}

export type ProxyFact =
  | {
      readonly kind: 'answers'
      readonly mode: string
      readonly node: string
      /** What it does not hear of, since when and why. */
      readonly unheard: readonly string[]
    }
  /** Another kube-proxy: its rules can be read, and it cannot be asked. */
  | { readonly kind: 'other'; readonly mode: string; readonly node: string }
  | { readonly kind: 'silent'; readonly error: string }
  | { readonly kind: 'none'; readonly error: string }

export interface ServiceFact {
  readonly type: string
  readonly clusterIP: string
  /** It has the type LoadBalancer, and nobody has given it an address. */
  readonly awaitsLoadBalancer: boolean
  readonly loadBalancerClass: string | undefined
  readonly externalName: string
  /** The label service.kubernetes.io/service-proxy-name. */
  readonly proxyName: string | undefined
  /** 'not known': no API server was asked. Undefined: it has none. */
  readonly selector: Readonly<Record<string, string>> | 'not known' | undefined
  readonly ports: readonly {
    readonly name: string
    readonly port: number
    readonly protocol: string
    /** Undefined: no API server was asked. */
    readonly targetPort: string | undefined
    readonly nodePort: number
  }[]
  /** Those that the selector matches; undefined: pods cannot be seen. */
  readonly pods: readonly PodFact[] | undefined
  /** What the EndpointSlices say, which the proxy knows itself. */
  readonly endpoints: { readonly count: number; readonly ready: number; readonly draining: number }
  /** `http 3000/TCP` */
  readonly endpointPorts: readonly string[]
  /** `IPv4`, `IPv6`, of its slices with endpoints. */
  readonly endpointFamilies: readonly string[]
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

/** An address of the service beside the one that the first explanation is about. */
export interface OtherFrontend extends EndpointFacts {
  /** `its node port 172.30.0.11:30000/TCP` */
  readonly label: string
  readonly kind: string
  /** Undefined: it is open on no address of this node. */
  readonly explanation: Explanation | undefined
}

export interface ForwardingOff {
  /** `net.ipv4.ip_forward` */
  readonly setting: string
  /** Only of what comes in by this link. */
  readonly link?: string | undefined
}

export interface MachineFacts {
  /** Settings that keep this machine from forwarding packets. Undefined: not known. */
  readonly forwardingOff: readonly ForwardingOff[] | undefined
  readonly conntrack: { readonly count: number; readonly max: number } | undefined
  /** Interfaces with an MTU that IPv6 would not accept. */
  readonly smallMtus: readonly { readonly name: string; readonly mtu: number }[]
  /** What pods of this node may send at once, by the link that leads to them; undefined: no pod of this node is known. */
  readonly podMtu: { readonly link: string; readonly mtu: number } | undefined
  /** Interfaces on which rp_filter is strict. */
  readonly strictRpFilter: readonly string[]
  /** Packets that rp_filter dropped while endpoints were dialled. */
  readonly rpFiltered: number
}

export interface ForeignFacts {
  readonly found: readonly ForeignFact[]
  /** What keeps this node's own attempts from endpoints, and the packets of the question not. */
  readonly walls: readonly ForeignDoubt[]
  /** What could not be read, or not be followed, and may drop packets. */
  readonly doubts: readonly ForeignDoubt[]
  /** Programs that enforce network policies on this node, by their rules. */
  readonly policyEngines: readonly string[]
}

export interface ForeignDoubt {
  readonly what: string
  /** Of a connection that this node opens, so that its attempt shows whether the packet passes. */
  readonly isOfThisNode: boolean
  /** The command that shows it. */
  readonly next: string
}

/** A rule of another program that a packet of this connection does not survive. */
export interface ForeignFact {
  readonly table: string
  readonly chain: string
  readonly rule: string
  readonly verdict: 'drop' | 'reject' | 'translated' | 'untracked'
  /** The program that owns the rule, where its place shows that. */
  readonly owner?: Owner | undefined
  readonly packet: string
  /** The command that shows it. */
  readonly next: string
}

export interface WayFact {
  readonly to: string
  readonly way: Way
  /** Where the route and the EndpointSlice do not agree: why the endpoint cannot answer. */
  readonly mismatch?: string | undefined
  /** Of the client's own packets, where rules of policy routing (`ip rule`) lead them another way. */
  readonly ofClient?: ClientWay | undefined
  /** The next hop, where nobody answers for its address (ARP, ND). */
  readonly silentHop?: string | undefined
}

export interface ClientWay {
  /** `packets of 10.244.1.3 that come in by cni0` */
  readonly packets: string
  readonly way: Way
  /** The command that shows it. */
  readonly shown: string
}

export interface TryFact {
  readonly to: string
  /** `-n NAMESPACE POD`, for kubectl; '' where the pod is not known. */
  readonly pod: string
  /** `unreachable`: there is no route, or another machine says so. */
  /** `not possible`: this machine did not even send a packet. */
  readonly result: 'connected' | 'refused' | 'no answer' | 'unreachable' | 'not possible'
  readonly error: string
  /** Of an endpoint: what its own network says, where it did not answer. */
  readonly inside?: InsideFact | undefined
  /** Of an endpoint: the Service selects pods, and none of this cluster has the address. */
  readonly isNobodys?: boolean
  /** Of several attempts that failed: `3 of 8`. */
  readonly share?: string
}

/** How a packet ended that was sent to an endpoint. */
export interface EndFact extends Pick<ExplainedSending, 'answer' | 'droppedBy' | 'drops' | 'dropsError'> {
  readonly to: string
}

export interface StaleFlow {
  readonly protocol: string
  /** `ip:port` */
  readonly client: string
  readonly dialled: string
  /** Where its packets still go. */
  readonly endpoint: string
}

export type DnsFact =
  /** Not a question of this client, or of this cluster. */
  | { readonly kind: 'not asked' }
  | { readonly kind: 'answers'; readonly name: string; readonly server: string; readonly address: string }
  | { readonly kind: 'wrong'; readonly name: string; readonly server: string; readonly answer: string }
  | { readonly kind: 'silent'; readonly name: string; readonly server: string; readonly error: string }
