// The protocol between the page and its server. Both sides import these types, and the pure commands.ts and patch.ts.
//
//   GET  /?token=T          the page, with the first Snapshot inside; sets the cookie, and the page takes the token out of the URL
//   GET  /page.js /page.css script and styles
//   GET  /api/events        Server-Sent Events: `snapshot`, `update`, `traffic`, `change`, `load`, `end`, as in UiEvents
//   GET  /api/service       a Service in detail: ServiceQuery -> ServiceDetail
//   POST /api/explain       a packet: ExplainQuestion -> ExplainAnswer
//   POST /api/doctor        what is wrong: DoctorRequest -> DoctorAnswer
//   POST /api/act           an action, in a sandbox only: Action -> ActAnswer
//
// All of it needs the cookie that GET / sets, or the token. POST bodies are application/json. Errors have a status of 400 or more
// and a Refusal. Times are milliseconds since 1970 on the server's clock.

import type { DoctorAnswers, DoctorFinding } from '../diagnose/doctor/verdict.ts'
import type { Explanation } from '../diagnose/explain/explanation.ts'
import type { Balance } from '../model/balance.ts'
import type { SyncChange } from '../serve/control/changes.ts'
import type { Patch } from './patch.ts'

/** The id of the element of the page that has the first snapshot: `<script type="application/json" id="snapshot">`. */
export const SNAPSHOT_ELEMENT = 'snapshot'

/** The body of an error. */
export interface Refusal {
  readonly error: string
}

/** The Server-Sent Events by name; `data` is JSON. The first is a snapshot. */
export interface UiEvents {
  /** Once. */
  readonly snapshot: Snapshot
  /** The difference to the last snapshot: at most 5 per second. */
  readonly update: Patch
  /** Every second. */
  readonly traffic: TrafficReport
  /** One for each sync of a proxy. A new page also gets the last MOST_CHANGES. */
  readonly change: ChangeEntry
  /** When a load begins, every second while it runs, and once when it ends. */
  readonly load: LoadReport
  /** The server ends: the page does not reconnect. */
  readonly end: { readonly reason: string }
}

/** How many changes the server keeps, for all nodes together. */
export const MOST_CHANGES = 200

// ---------------------------------------------------------------------------------------------------------------- the cluster

export interface Snapshot {
  /** A miniature cluster with actions, or a real node, which is read-only. */
  readonly kind: 'sandbox' | 'node'
  /** Of the sandbox or of the node. */
  readonly name: string
  /** The page hides what is not possible. */
  readonly can: Capabilities
  /** For commands.ts. */
  readonly terminal: Terminal
  readonly apiServer: ApiServerState
  readonly nodes: readonly NodeInfo[]
  /** Empty where pods are not known. */
  readonly pods: readonly PodInfo[]
  readonly services: readonly ServiceInfo[]
  readonly deployments: readonly DeploymentInfo[]
  /** The machine outside of the cluster; only in a sandbox. */
  readonly outside: OutsideInfo | null
  /** How many objects are left out. */
  readonly leftOut: { readonly services: number; readonly pods: number; readonly backends: number }
  /** The load that runs. */
  readonly load: LoadRequest | null
}

export interface Capabilities {
  /** POST /api/act. */
  readonly act: boolean
  /** Where a real packet may be sent from: `node` alone, or anywhere in the sandbox. `nowhere`: there is no nft. */
  readonly send: 'anywhere' | 'node' | 'nowhere'
  /** Modes for the action `mode`. */
  readonly modes: readonly string[]
}

export interface Terminal {
  /** How the program is called: `sudo ./bin/kube-proxy`. */
  readonly program: string
  /** The sandbox's name; null for the default one. */
  readonly sandbox: string | null
  /** The value of KUBECONFIG; null where kubectl has its own. */
  readonly kubeconfig: string | null
}

export interface ApiServerState {
  readonly url: string
  /** Whether nodes can reach it. Always `unknown` on a node. */
  readonly state: 'there' | 'away' | 'unknown'
}

export interface NodeInfo {
  readonly name: string
  readonly addresses: readonly string[]
  readonly podRanges: readonly string[]
  readonly zone: string | null
  /** The mode in force; the configured one while the proxy does not answer. */
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
    /** Whether the kernel has the rules that the proxy decided on; if not, `reason`. */
    readonly holds: boolean
    readonly reason: string | null
    /** How often another program had changed the rules. */
    readonly drifts: number
  }[]
  /** Why it does not answer. */
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
  /** The failure that it simulates. */
  readonly fail: FailureMode
  readonly labels: Readonly<Record<string, string>>
  /** The Deployment that it belongs to. */
  readonly deployment: string | null
  readonly hostNetwork: boolean
}

export type FailureMode = 'none' | 'refuse' | 'hang' | 'die' | 'slow'

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
  /** Whether clients whose pod does not answer get another: by the annotation, or by the proxies' default. */
  readonly connectRetry: boolean
  /** How an endpoint is chosen for a connection: by the annotation, or by the proxies' default. */
  readonly balance: Balance
  /** The nodes that choose otherwise, because their mode cannot, or by their configuration. */
  readonly otherBalances: Readonly<Record<string, Balance>>
  /** The port of each node's health check for load balancers; null: none. */
  readonly healthCheckNodePort: number | null
  /** Empty where it is not known. */
  readonly selector: Readonly<Record<string, string>>
  readonly ports: readonly ServicePortInfo[]
  /** A service of the cluster itself, such as the API and DNS. */
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
  /** By node: why the proxy does not send pods of that node there when they dial the cluster IP. */
  readonly notOn: Readonly<Record<string, string>>
  /** The nodes on which it is ejected because it does not answer. */
  readonly ejectedOn: readonly string[]
}

// ---------------------------------------------------------------------------------------------------------------- what flows

export interface TrafficReport {
  readonly nodes: readonly NodeTraffic[]
  /** What became of TCP connections to Services that ended, or got their answer, since the last report. Empty on a node. */
  readonly outcomes: readonly OutcomeRow[]
}

/** Numbers of connections. */
export interface OutcomeRow {
  /** ServicePortInfo.id. */
  readonly service: string
  /** BackendInfo.address; null: they reached no endpoint. */
  readonly backend: string | null
  /** `outside`, a node's name, `NAMESPACE/POD`, an address. */
  readonly client: string
  readonly answered: number
  readonly refused: number
  readonly timedOut: number
  /** Broken off after they were made. */
  readonly cut: number
  /** The endpoint did not answer, and the client got another: not a failure. */
  readonly retried: number
}

export interface NodeTraffic {
  readonly node: string
  /** Why there are no rows: the mode cannot count, the proxy is away. */
  readonly error: string | null
  /** The period of the rates; 0 for the first report, which has none. */
  readonly overMs: number
  /** The rows with traffic since the last report. */
  readonly rows: readonly TrafficRow[]
}

export interface TrafficRow {
  /** `namespace/name:port`: ServicePortInfo.id. */
  readonly service: string
  /** `tcp 10.0.0.1:80`; null: a relaying proxy counts by backend only. Another row has the same traffic by frontend. */
  readonly frontend: string | null
  /** BackendInfo.address; null: refused, or another row has the backend. */
  readonly backend: string | null
  /** All per second. A connection counts again when its first packet is retransmitted. */
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
  /** The proxy's problems with the objects. */
  readonly problems: readonly string[]
  /** The kernel's tables, one for each IP family. */
  readonly kernel: readonly {
    readonly family: 4 | 6
    /** `table ip kube-proxy, read now`. */
    readonly what: string
    readonly error: string | null
    /** Differences from the proxy's decisions. */
    readonly differences: readonly string[]
  }[]
  /** The rules, elements and virtual servers that packets to the frontends meet, in this order. */
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
    /** BackendDetail.id. */
    readonly backends: readonly string[]
  }[]
  /** KernelObject.id. */
  readonly objects: readonly string[]
}

export interface BackendDetail {
  /** `tcp 10.1.0.5:3000 of default/web:http`. */
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
  /** In the syntax of its own tool. */
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
  /** Which address of a service; absent: by the kind of client. */
  readonly via?: 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort' | undefined
  readonly family?: 4 | 6 | undefined
  /** Whether a real packet is sent and traced too. */
  readonly send?: boolean | undefined
}

export interface ExplainAnswer {
  readonly node: string
  /** As `kube-proxy explain -o json` prints it; `sent` has the trace. */
  readonly explanation: Explanation
  /** As `kube-proxy explain -o svg` prints it, for an image: `<img src="data:image/svg+xml,...">`. */
  readonly svg: string
  /** The equivalent command. */
  readonly command: string
}

// ---------------------------------------------------------------------------------------------------------------- the doctor

export interface DoctorRequest {
  /** The node that is examined; absent: the node of the pod that it is from, or the first. */
  readonly node?: string | undefined
  /** `NAMESPACE/SERVICE`; absent: the whole node. */
  readonly service?: string | undefined
  /** As of ExplainQuestion; absent: `node`. */
  readonly from?: string | undefined
}

export interface DoctorAnswer extends DoctorAnswers {
  readonly node: string
  /** Of the whole node: Services that have a problem of their own. */
  readonly services: readonly { readonly service: string; readonly finding: DoctorFinding }[]
  /** The equivalent command. */
  readonly command: string
}

// ---------------------------------------------------------------------------------------------------------------- hands on

/** The actions in a sandbox. commandFor() in commands.ts has the equivalent commands. */
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
  /** The annotation service.kube-proxy-ts.io/balance; random: without it. */
  | (OfService & { readonly action: 'balance'; readonly value: Balance })
  /** Finds the interface of the machine, the nodes and the pods that has an address. Changes nothing. */
  | { readonly action: 'find-address'; readonly address: string }
  | { readonly action: 'flush'; readonly node: string }
  | { readonly action: 'kill-proxy'; readonly node: string }
  | { readonly action: 'mode'; readonly node: string; readonly mode: string }
  | { readonly action: 'api-server-away' }
  | { readonly action: 'api-server-back' }
  | ({ readonly action: 'load' } & LoadRequest)
  | { readonly action: 'load-end' }
  /** A failure of the game in the example, and a client that meets it. The one before is mended. */
  | { readonly action: 'plant'; readonly failure: Planted }

/** What the game plants. But for `none`: the codes of the doctor's findings. */
export const plants = [
  'none',
  'selector-matches-nothing',
  'endpoint-refuses',
  'target-port-name',
  'pods-not-ready',
  'endpoint-silent',
  'internal-policy-local',
  'source-not-allowed',
  'foreign-rule',
  'forwarding-off',
  'no-route',
] as const
export type Planted = (typeof plants)[number]

interface OfService {
  readonly namespace: string
  readonly service: string
}

export type ActAnswer =
  | { readonly ok: true; readonly did: string; readonly command: string; readonly begunMs: number }
  | { readonly ok: false; readonly error: string; readonly command: string }

/** A client that connects again and again, each time with a new connection. One at a time. */
export interface LoadRequest {
  /** `outside`, a node's name, `NAMESPACE/POD`. */
  readonly from: string
  /** `NAMESPACE/SERVICE[:PORT]`. */
  readonly to: string
  /** 1 to 50. */
  readonly perSecond: number
  /** Which address is dialled; absent: the cluster IP. */
  readonly via?: 'clusterIP' | 'loadBalancerIP' | undefined
}

export interface LoadReport {
  readonly request: LoadRequest
  /** The address that is dialled. */
  readonly url: string
  readonly running: boolean
  /** Since it began. */
  readonly answered: number
  readonly failed: number
  /** What `failed` is made of. The rest, if any, could not be tried. */
  readonly refused: number
  readonly timedOut: number
  readonly cut: number
  /** Answers since it began, by the pod's name. */
  readonly byPod: Readonly<Record<string, number>>
  readonly lastError: string | null
  /** From connect to the answer in the last second; null: none was answered. */
  readonly medianMs: number | null
  /** The slowest but one in a hundred. */
  readonly p99Ms: number | null
}
