// What a mode is to the rest of the program. Everything that others need to know of one is in its descriptor,
// modes/NAME/mode.ts; the code behind it touches this machine and is loaded when the mode is used.

import type { ModeFacts } from '../config/modes.ts'
import type { KubeProxyConfiguration } from '../config/types.ts'
import type { Clock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { Walkable } from '../packet-walk/types.ts'
import type { ModeMetric } from '../metrics/metrics.ts'
import type { Printable } from '../metrics/registry.ts'
import type { Balance } from '../model/balance.ts'
import type { Frontend, Policy, ServicePortView } from '../model/types.ts'
import type { SharedTables } from '../reconcile/pacing.ts'
import type { Programmer, ProgrammerReports } from '../reconcile/programmer.ts'
import type { DryRun, DryRunOptions } from './dry-run.ts'
import type { TrafficCounter } from './traffic.ts'

export type { Carried, Counted, TrafficCounter } from './traffic.ts'

/** A mode's descriptor. */
export interface Mode extends ModeFacts {
  /** Whether a change costs so little that it need not wait for others. */
  readonly changesAreCheap: boolean
  readonly balances: readonly Balance[]
  /** Settings of its own that cannot change while it runs: `ipvs`, `conntrack.tcpBeLiberal`. */
  readonly restartFields: readonly string[]
  /** Which of the metrics that only some modes have are shown in this one, as kube-proxy does. */
  readonly metrics: readonly ModeMetric[]
  /**
   * Where a connection whose backend does not answer gets another one: in the kernel, there behind IPVS, which has to see that
   * it failed, or in the mode itself.
   */
  readonly retries: 'kernel' | 'behind IPVS' | 'mode'
  /** Who translates connections: rules of netfilter, IPVS, or the proxy, which then carries them itself. */
  readonly translates: 'by rules' | 'by IPVS' | 'by relaying'
  /** With which frontends a new connection is compared; absent: they are looked up, however many there are. */
  readonly comparesFrontends?: 'one by one'
  /** For a mode that carries connections itself: the one whose rules serve clients while no proxy runs. */
  readonly leavesTo?: string
  /** Links that it gives the addresses of services: those are not the node's own. */
  readonly serviceLinks: readonly string[]
  /** What it does where the model decides nothing, or what it cannot do of what the model decides. */
  readonly semantics: ModeSemantics
  load(): Promise<ModeHost>
}

/** Where modes differ, as kube-proxy's do. Everything else is the model's. */
export interface ModeSemantics {
  /** The addresses of services at which a connection to a port that the service does not have is refused. */
  readonly guards: 'no addresses' | 'cluster IPs' | 'all addresses'
  /** With a connection to an address of the service ranges that no service has. */
  readonly unallocated: 'drop' | 'untouched'
  /**
   * How node ports are open on loopback addresses where the configuration allows it: by the kernel's rules, for IPv4 alone, or by
   * listeners of the proxy.
   */
  readonly localhostNodePorts: 'never' | 'by rules' | 'by listeners'
  /** Whether the node's own connections to external addresses are refused where there are no endpoints. */
  readonly refusesNode: boolean
  /** The addresses of this node at which a node port without endpoints is refused. */
  readonly refusesNodePorts: 'where they are open' | 'on every address'
  /** When loadBalancerSourceRanges are looked at: before everything else, or only where there is an endpoint to reach. */
  readonly sourceRanges: 'first' | 'with endpoints'
  /** Whose connections to themselves are masqueraded: those of endpoints that run, or may run, on this node, or of all. */
  readonly hairpin: 'of this node' | 'all'
  readonly protocols: readonly Frontend['protocol'][]
  /** Whether it can limit connections: `connection-limits`. */
  readonly canLimit: boolean
  /** Who answers pings to addresses of services: the kernel, for they are the node's, or the node by the mode's rules, with `--answer-ping`. */
  readonly pings: 'by the kernel' | 'by rules'
}

/** Host-side implementation of a mode. A mode needs open() and cleanup(); what else it can do has a default. */
export interface ModeHost {
  /** The part of open() that needs more rights than the rest: kernel settings and modules. For --init-only. */
  init?(config: KubeProxyConfiguration, log: Logger): void | Promise<void>
  /** The part of cleanup() that needs more rights than the rest: kernel settings. For --init-only of another mode. */
  giveBack?(log: Logger): void | Promise<void>
  /** Looks whether this machine can run the mode, for `kube-proxy check`: reads, and changes nothing. */
  look?(options: LookOptions): ModeOutlook | Promise<ModeOutlook>
  /** What is in the kernel that is of this mode, written by kube-proxy or by this program. It may be much to read. */
  readPresent?(options: LookOptions): readonly string[] | Promise<readonly string[]>
  /** Throws an UnsupportedError when this machine cannot run the mode. */
  open(options: ModeOptions): RunningMode | Promise<RunningMode>
  /** What the mode has in the kernel now, for explain; undefined: nothing. Changes nothing. */
  readWalkable?(options: WalkableOptions): Walkable | undefined | Promise<Walkable | undefined>
  /** The commands that open() and its programmers would run. Changes nothing. For `kube-proxy plan` and `kube-proxy render`. */
  dryRun?(options: DryRunOptions): DryRun | Promise<DryRun>
  /** Removes all that the mode put into this machine; harmless when it never ran. */
  cleanup(log: Logger, config: KubeProxyConfiguration): void | Promise<void>
  /** After kube-proxy has taken a node back and runs in this mode: removes what it does not, and nothing that it uses. */
  cleanupLeftovers?(log: Logger): void | Promise<void>
}

export interface LookOptions {
  readonly config: KubeProxyConfiguration
  readonly families: readonly Family[]
}

export interface WalkableOptions {
  readonly family: Family
  /** The clock of the walks, in milliseconds: what affinity remembers ends on it. */
  readonly now: () => number
}

/** Something that is not as it should be, and what a person can do about it. */
export interface Advice {
  readonly what: string
  readonly todo: string
}

/** What a mode finds on this machine without changing anything. */
export interface ModeOutlook {
  /** What it lacks: it cannot run while there is any. */
  readonly lacks: readonly Advice[]
  /** It runs, but perhaps not as meant. */
  readonly warnings: readonly Advice[]
  /** What it would work with: `iptables-nft 1.8.9, because kubelet uses it`. */
  readonly uses: readonly string[]
}

export interface ModeOptions {
  readonly config: KubeProxyConfiguration
  readonly log: Logger
  readonly families: readonly Family[]
  readonly clock: Clock
  /** For a mode that serves node ports on localhost by listeners: whether it is to look after them. */
  readonly localhostNodePorts?: boolean
  /** Called when another program changes what this mode has programmed. */
  readonly onForeignChange: (family: Family, certainty?: 'certain' | 'perhaps') => void
  /** Called when another process had taken over and is gone: this one serves again, with what the other may have left. */
  readonly onTakenBack?: () => void
}

export interface RememberedQuestion {
  readonly family: Family
  readonly view: Pick<ServicePortView, 'name' | 'protocol'>
  readonly list: Policy
  readonly client: string
}

export interface RememberedBackend {
  readonly ip: string
  readonly port: number
  readonly leftMs: number
}

/** A mode at work. */
export interface RunningMode {
  programmer(family: Family, reports: ProgrammerReports): Programmer
  /** For a mode whose tables other programs use, too. */
  readonly sharedTables?: SharedTables
  /** `ip:port` of the programs that answer UDP flows of a service port, in a mode in which those are not the endpoints. */
  readonly flowTargets?: (family: Family, view: ServicePortView) => readonly string[]
  /** The backends that fail, in a mode that retries itself. */
  readonly failing?: (family: Family) => readonly { readonly ip: string; readonly port: number }[]
  /** Counts the traffic of services until it is closed. Absent: the mode cannot count. */
  readonly traffic?: (family: Family) => TrafficCounter
  /** The affinity entries of a client, by its address, in a mode where the proxy has them. Absent: the kernel has them. */
  readonly remembered?: (question: RememberedQuestion) => Promise<readonly RememberedBackend[]>
  /** Whether this kernel has what limits take; asked when a service wants some. Absent: as the mode's descriptor says. */
  readonly canLimit?: () => boolean
  /** For `/metrics`: what was over the limits of services. */
  readonly overLimit?: Printable
  /** Lines for people, shown by /statusz. */
  readonly status?: () => string
  /**
   * For a mode that carries connections itself, before the process ends: lets them come to their end and takes the rules
   * away. When the signal is aborted it is to hurry. Without this, rules stay.
   */
  readonly end?: (signal: AbortSignal) => Promise<void>
  /** With `end`: whether clients are led to this process, and not to another that has taken over from it. */
  readonly serves?: () => boolean
  /** Called when its programmers are closed. Whatever fails, the rest of it is closed. */
  close(): void | Promise<void>
}
