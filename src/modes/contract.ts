// What a mode is to the rest of the program. Everything that others need to know of one is in its descriptor,
// modes/NAME/mode.ts; the code behind it touches this machine and is loaded when the mode is used.

import type { ModeFacts } from '../config/modes.ts'
import type { KubeProxyConfiguration } from '../config/types.ts'
import type { Clock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { ModeMetric } from '../metrics/metrics.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Programmer, ProgrammerReports } from './programmer.ts'

/** A mode's descriptor. */
export interface Mode extends ModeFacts {
  /** Whether a change costs so little that it need not wait for others. */
  readonly changesAreCheap: boolean
  /** Settings of its own that cannot change while it runs: `ipvs`, `conntrack.tcpBeLiberal`. */
  readonly restartFields: readonly string[]
  /** Which of the metrics that only some modes have are shown in this one, as kube-proxy does. */
  readonly metrics: readonly ModeMetric[]
  /** Whether it can send more connections to one endpoint than to another. */
  readonly weighs: boolean
  /**
   * Where a connection whose backend does not answer gets another one: in the kernel, there behind IPVS, which has to see that
   * it failed, or in the mode itself.
   */
  readonly retries: 'kernel' | 'behind IPVS' | 'mode'
  /** Links that it gives the addresses of services: those are not the node's own. */
  readonly serviceLinks: readonly string[]
  load(): Promise<ModeOnMachine>
}

/** A mode's hands on this machine. */
export interface ModeOnMachine {
  /** The part of open() that needs more rights than the rest: kernel settings and modules. For --init-only. */
  init?(config: KubeProxyConfiguration, log: Logger): void | Promise<void>
  /** Looks whether this machine can run the mode, for `kube-proxy check`: reads, and changes nothing. */
  look(options: LookOptions): ModeOutlook | Promise<ModeOutlook>
  /** Throws an UnsupportedError when this machine cannot run the mode. */
  open(options: ModeOptions): RunningMode | Promise<RunningMode>
  /** Removes all that the mode put into this machine; harmless when it never ran. */
  cleanup(log: Logger, config: KubeProxyConfiguration): void | Promise<void>
}

export interface LookOptions {
  readonly config: KubeProxyConfiguration
  readonly families: readonly Family[]
}

/** Something that is not as it should be, and what a person can do about it. */
export interface Advice {
  readonly what: string
  readonly todo: string
}

/** What a mode finds on this machine when it only looks. */
export interface ModeOutlook {
  /** What it lacks: it cannot run while there is any. */
  readonly lacks: readonly Advice[]
  /** It runs, but perhaps not as meant. */
  readonly warnings: readonly Advice[]
  /** What it would work with: `iptables-nft 1.8.9, because kubelet uses it`. */
  readonly uses: readonly string[]
  /** What is in the kernel that is of this mode, written by kube-proxy or by this program. */
  readonly present: readonly string[]
}

export interface ModeOptions {
  readonly config: KubeProxyConfiguration
  readonly log: Logger
  readonly families: readonly Family[]
  readonly clock: Clock
  /** Called when another program changes what this mode has programmed. */
  readonly onForeignChange: (family: Family) => void
}

/** A mode at work. */
export interface RunningMode {
  programmer(family: Family, reports: ProgrammerReports): Programmer
  /** `ip:port` of the programs that answer UDP flows of a service port, in a mode in which those are not the endpoints. */
  readonly flowTargets?: (family: Family, view: ServicePortView) => readonly string[]
  /** The backends that fail, for a mode that tries others itself. */
  readonly failing?: (family: Family) => readonly { readonly ip: string; readonly port: number }[]
  /** Lines for people, shown by /statusz. */
  readonly status?: () => string
  /**
   * For a mode that carries connections itself, before the process ends: lets them come to their end and takes the rules
   * away. When the signal is aborted it is to hurry. Without this, rules stay.
   */
  readonly end?: (signal: AbortSignal) => Promise<void>
  /** Called when its programmers are closed. Whatever fails, the rest of it is closed. */
  close(): void | Promise<void>
}
