// What the server of the page and the page say to each other. Types alone: both sides import them, and nothing else of each other
// but commands.ts and patch.ts, which are pure.
//
//   GET  /?token=T          the page, with the first Snapshot inside; sets the cookie, and the page takes the token out of the URL
//   GET  /page.js /page.css what the page is made of
//   GET  /api/events        Server-Sent Events: `snapshot`, `update`, `traffic`, `change`, `load`, `end`, as in UiEvents
//   GET  /api/service       a Service in detail: ServiceQuery -> ServiceDetail
//   POST /api/explain       a packet: ExplainQuestion -> ExplainAnswer
//   POST /api/act           something is done, in a sandbox alone: Action -> ActAnswer
//
// Everything but the page's own files needs the cookie that GET / sets, or the token. POST bodies are application/json. What is
// refused comes with a status of 400 or more and a Refusal. Times are milliseconds since 1970 on the server's clock.

import type { Explanation } from '../diagnose/explain/explanation.ts'
import type { SyncChange } from '../serve/control/changes.ts'
import type { Patch } from './patch.ts'

/** The id of the element of the page that has the first snapshot: `<script type="application/json" id="snapshot">`. */
export const SNAPSHOT_ELEMENT = 'snapshot'

/** Every answer that is no answer. */
export interface Refusal {
  readonly error: string
}

/** The Server-Sent Events, by their names; `data` is one of these as JSON. The first is a snapshot. */
export interface UiEvents {
  /** All of it, once. */
  readonly snapshot: Snapshot
  /** What is another one since then, whenever something changed: at most 5 per second. */
  readonly update: Patch
  /** Every second, while there is a client. */
  readonly traffic: TrafficReport
  /** One for each sync of a proxy. Those since the first client came are told to each later one, up to MOST_CHANGES. */
  readonly change: ChangeEntry
  /** Every second while a load runs, and once when it ends. */
  readonly load: LoadReport
  /** The server ends: the page says so and does not try again at once. */
  readonly end: { readonly reason: string }
}

/** The newest that the server remembers, for all nodes together. */
export const MOST_CHANGES = 200

// ---------------------------------------------------------------------------------------------------------------- the cluster

export interface Snapshot {
  /** A miniature cluster in which everything may be tried, or a real node that is only looked at. */
  readonly kind: 'sandbox' | 'node'
  /** Of the sandbox or of the node. */
  readonly name: string
  /** What this page may do: what is false is not shown. */
  readonly can: Capabilities
  /** What commands.ts needs to write commands as they are typed here. */
  readonly terminal: Terminal
  readonly apiServer: ApiServerState
  readonly nodes: readonly NodeInfo[]
  /** Of a node: the endpoints that no Pod is known of are not here. Empty where pods are not known. */
  readonly pods: readonly PodInfo[]
  readonly services: readonly ServiceInfo[]
  readonly deployments: readonly DeploymentInfo[]
  /** The machine outside of the cluster: of a sandbox alone. */
  readonly outside: OutsideInfo | null
  /** What there was no room for; nothing is left out silently. */
  readonly leftOut: { readonly services: number; readonly pods: number; readonly backends: number }
  /** The load that runs. */
  readonly load: LoadRequest | null
}

export interface Capabilities {
  /** POST /api/act. */
  readonly act: boolean
  /** Where a real packet may be sent from: `node` alone, or anywhere in the sandbox. `nowhere`: there is no nft. */
  readonly send: 'anywhere' | 'node' | 'nowhere'
  /** Modes that a node may be switched to; empty where it may not. */
  readonly modes: readonly string[]
}

export interface Terminal {
  /** How the program is called: `sudo ./bin/kube-proxy`. */
  readonly program: string
  /** The sandbox's name where it has to be given: undefined for the usual one. */
  readonly sandbox: string | null
  /** The value of KUBECONFIG; null where kubectl has its own. */
  readonly kubeconfig: string | null
}

export interface ApiServerState {
  readonly url: string
  /** Whether nodes can reach it. On a node: `unknown`, the proxy does not tell. */
  readonly state: 'there' | 'away' | 'unknown'
}

export interface NodeInfo {
  readonly name: string
  readonly addresses: readonly string[]
  readonly podRanges: readonly string[]
  readonly zone: string | null
  /** The mode in force; the one asked for while the proxy cannot be asked. */
  readonly mode: string
  readonly proxy: ProxyInfo
}

export interface ProxyInfo {
  /** `starting`: it runs and has not programmed anything yet. `away`: there is no process, or it does not answer. */
  readonly state: 'ready' | 'starting' | 'away'
  readonly pid: number | null
  readonly restarts: number
  /** Per IP family. */
  readonly families: readonly {
    readonly family: 4 | 6
    /** Service ports whose rules the kernel refused. */
    readonly refused: number
    /** Whether the kernel holds what was decided; why not. */
    readonly holds: boolean
    readonly reason: string | null
    /** How often another program had changed the rules. */
    readonly drifts: number
  }[]
  /** Why it cannot be asked. */
  readonly error: string | null
}

export interface PodInfo {
  readonly namespace: string
  readonly name: string
  readonly node: string
  readonly ips: readonly string[]
  readonly phase: string
  readonly ready: boolean
  readonly terminating: boolean
  /** What it was told to do wrong. */
  readonly fail: FailureMode
  readonly labels: Readonly<Record<string, string>>
  /** The Deployment that it belongs to. */
  readonly deployment: string | null
  readonly hostNetwork: boolean
}

export type FailureMode = 'none' | 'refuse' | 'hang' | 'die'

export interface DeploymentInfo {
  readonly namespace: string
  readonly name: string
  readonly replicas: number
  readonly ready: number
}

export interface OutsideInfo {
  /** `machine`: what commands call it. */
  readonly name: string
  readonly addresses: readonly string[]
}

export interface ServiceInfo {
  readonly namespace: string
  readonly name: string
  readonly type: string
  readonly clusterIPs: readonly string[]
  readonly externalIPs: readonly string[]
  readonly loadBalancerIPs: readonly string[]
  readonly loadBalancerSourceRanges: readonly string[]
  readonly internalTrafficPolicy: 'Cluster' | 'Local'
  readonly externalTrafficPolicy: 'Cluster' | 'Local'
  /** ClientIP affinity in seconds; null: none. */
  readonly affinitySeconds: number | null
  /** Whether clients whose pod does not answer get another: the annotation, or what the proxies do without one. */
  readonly connectRetry: boolean
  /** The port on which each node tells load balancers whether it has local endpoints; null: none. */
  readonly healthCheckNodePort: number | null
  /** What pods it is for; empty where that is not known. */
  readonly selector: Readonly<Record<string, string>>
  readonly ports: readonly ServicePortInfo[]
  /** Of the API's own and the name server: shown apart. */
  readonly system: boolean
}

export interface ServicePortInfo {
  /** `namespace/name:port`, as the traffic report has it. */
  readonly id: string
  /** '' where it has none. */
  readonly name: string
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly port: number
  readonly nodePort: number | null
  readonly backends: readonly BackendInfo[]
  /** How many more there are than are listed. */
  readonly moreBackends: number
}

export interface BackendInfo {
  /** `ip:port`, `[ip]:port`, as the traffic report has it. */
  readonly address: string
  /** The pod of this address, `namespace/name`; null: not known. */
  readonly pod: string | null
  /** '' where it is not known. */
  readonly node: string
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
  /** The proxies that do not send a pod of their node there when it dials the cluster IP, by the node's name, and why. */
  readonly notOn: Readonly<Record<string, string>>
  /** The nodes on which it is ejected because it does not answer. */
  readonly ejectedOn: readonly string[]
}

// ---------------------------------------------------------------------------------------------------------------- what flows

export interface TrafficReport {
  readonly nodes: readonly NodeTraffic[]
}

export interface NodeTraffic {
  readonly node: string
  /** Why there is nothing: the mode cannot count, the proxy is away. */
  readonly error: string | null
  /** What the rates are the mean over; 0 for the first report, which has none. */
  readonly overMs: number
  /** Those that moved since the report before. */
  readonly rows: readonly TrafficRow[]
}

export interface TrafficRow {
  /** `namespace/name:port`: ServicePortInfo.id. */
  readonly service: string
  /** `tcp 10.0.0.1:80`; null: told by a proxy that carries connections itself, by backend only. Another row has the same by frontend. */
  readonly frontend: string | null
  /** BackendInfo.address; null: nothing was sent anywhere, or another row has the backend. */
  readonly backend: string | null
  /** All per second. A connection whose first packet is sent again counts again. */
  readonly connections: number
  readonly packets: number
  readonly bytes: number
  readonly refused: number
  readonly dropped: number
  readonly ejected: boolean
}

// ---------------------------------------------------------------------------------------------------------------- changes

/** What a proxy did to its kernel, and why. */
export interface ChangeEntry extends Omit<SyncChange, 'number'> {
  /** Unique for this server, growing. */
  readonly id: number
  readonly node: string
  readonly mode: string
}

// ---------------------------------------------------------------------------------------------------------------- a service

/** The arguments of GET /api/service. */
export interface ServiceQuery {
  readonly namespace: string
  readonly name: string
  readonly node: string
}

export interface ServiceDetail {
  readonly namespace: string
  readonly name: string
  readonly node: string
  readonly mode: string
  readonly frontends: readonly FrontendDetail[]
  readonly backends: readonly BackendDetail[]
  /** What the proxy makes of the objects and could not do, in words. */
  readonly problems: readonly string[]
  /** What was read of the kernel: one for each IP family. */
  readonly kernel: readonly {
    readonly family: 4 | 6
    /** `table ip kube-proxy, read now`. */
    readonly what: string
    readonly error: string | null
    /** Where it differs from what was decided. */
    readonly differences: readonly string[]
  }[]
  /** The rules, elements, virtual servers that packets to the frontends meet, in the order in which they do. */
  readonly objects: readonly KernelObject[]
}

export interface FrontendDetail {
  /** `tcp 10.0.0.1:80`; for a node port `tcp *:30080`. */
  readonly id: string
  readonly port: string
  readonly family: 4 | 6
  readonly kind: 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort'
  readonly affinitySeconds: number | null
  /** CIDRs; null: any source. */
  readonly allowedSources: readonly string[] | null
  /** By where a connection comes from. */
  readonly routes: readonly {
    readonly from: 'pods of this node' | 'this node' | 'others'
    readonly outcome: 'to' | 'reject' | 'drop' | 'untouched'
    readonly because: string
    readonly masquerade: boolean | 'depends on the backend' | null
    readonly masqueradeWhy: string | null
    /** BackendDetail.id of those that it may be sent to. */
    readonly backends: readonly string[]
  }[]
  /** KernelObject.id. */
  readonly objects: readonly string[]
}

export interface BackendDetail {
  /** `tcp 10.1.0.5:3000`, and of which port of the service, where it has several. */
  readonly id: string
  readonly address: string
  readonly port: string
  readonly pod: string | null
  readonly node: string
  /** For a pod of this node that dials the cluster IP; for another client, see the frontend's routes. */
  readonly eligible: boolean
  /** Why not; for an eligible one, what is special about it. */
  readonly why: string
  /** The same for a client from outside the cluster that dials an external address; null: the service has none. */
  readonly external: { readonly eligible: boolean; readonly why: string } | null
  readonly ejected: boolean
  /** KernelObject.id. */
  readonly objects: readonly string[]
}

export interface KernelObject {
  readonly id: string
  readonly family: 4 | 6
  /** `prerouting`, `output`, ... */
  readonly hook: string
  /** A chain with its table, `IPVS`, a listener. */
  readonly place: string
  /** In the words of its own tool. */
  readonly rule: string
  readonly comment: string | null
  /** Elements of sets and maps that packets found there. */
  readonly found: readonly string[]
  readonly packets: number | null
  readonly bytes: number | null
  /** FrontendDetail.id and BackendDetail.id. */
  readonly frontends: readonly string[]
  readonly backends: readonly string[]
}

// ---------------------------------------------------------------------------------------------------------------- a packet

export interface ExplainQuestion {
  /** The node whose proxy and kernel are asked; absent: the node of the pod that it is from, or the first. */
  readonly node?: string | undefined
  /** `node`, `outside`, `NAMESPACE/POD`, an address. */
  readonly from: string
  /** `NAMESPACE/SERVICE[:PORT][/PROTOCOL]`, `ADDRESS:PORT[/PROTOCOL]`, a URL. */
  readonly to: string
  /** Which address of a service; absent: as it fits the client. */
  readonly via?: 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort' | undefined
  readonly family?: 4 | 6 | undefined
  /** Whether a real packet is sent and traced too. */
  readonly send?: boolean | undefined
}

export interface ExplainAnswer {
  readonly node: string
  /** As `kube-proxy explain -o json` prints it; `sent` has the trace. */
  readonly explanation: Explanation
  /** As `kube-proxy explain -o svg` prints it. To be shown as an image: `<img src="data:image/svg+xml,...">`. */
  readonly svg: string
  /** The command that says the same. */
  readonly command: string
}

// ---------------------------------------------------------------------------------------------------------------- hands on

/** What can be done in a sandbox. commandFor() in commands.ts has the command that does the same. */
export type Action =
  | { readonly action: 'scale'; readonly namespace: string; readonly deployment: string; readonly replicas: number }
  | { readonly action: 'fail'; readonly namespace: string; readonly pod: string; readonly how: FailureMode }
  | { readonly action: 'delete-pod'; readonly namespace: string; readonly pod: string }
  | (OfService & {
      readonly action: 'policy'
      readonly field: 'internalTrafficPolicy' | 'externalTrafficPolicy'
      readonly value: 'Cluster' | 'Local'
    })
  | (OfService & { readonly action: 'affinity'; readonly value: 'None' | 'ClientIP' })
  /** The annotation service.kube-proxy-ts.io/connect-retry. */
  | (OfService & { readonly action: 'connect-retry'; readonly value: 'on' | 'off' })
  /** Which interface of the machine, the nodes and the pods has an address? Looks, and changes nothing. */
  | { readonly action: 'find-address'; readonly address: string }
  | { readonly action: 'flush'; readonly node: string }
  | { readonly action: 'kill-proxy'; readonly node: string }
  | { readonly action: 'mode'; readonly node: string; readonly mode: string }
  | { readonly action: 'api-server-away' }
  | { readonly action: 'api-server-back' }
  | ({ readonly action: 'load' } & LoadRequest)
  | { readonly action: 'load-end' }

interface OfService {
  readonly namespace: string
  readonly service: string
}

export type ActAnswer =
  | { readonly ok: true; readonly did: string; readonly command: string }
  | { readonly ok: false; readonly error: string; readonly command: string }

/** A client that connects again and again, each time with a new connection. One at a time. */
export interface LoadRequest {
  /** `outside`, a node's name, `NAMESPACE/POD`. */
  readonly from: string
  /** `NAMESPACE/SERVICE[:PORT]`. */
  readonly to: string
  /** 1 to 50. */
  readonly perSecond: number
}

export interface LoadReport {
  readonly request: LoadRequest
  /** The address that is dialled. */
  readonly url: string
  readonly running: boolean
  /** Since it began. */
  readonly answered: number
  readonly failed: number
  /** How often which pod answered, by its name, since it began. */
  readonly byPod: Readonly<Record<string, number>>
  readonly lastError: string | null
  /** From connect to the answer in the last second; null: none was answered. */
  readonly medianMs: number | null
}
