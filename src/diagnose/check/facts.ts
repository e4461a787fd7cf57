// What `kube-proxy check` knows of a machine and its cluster: read first, judged later.

import type { SocketOutlook } from '../../connect/probe.ts'
import type { RunOptions } from '../../config/run-options.ts'
import type { ModeOutlook } from '../../modes/contract.ts'
import type { ConfigProblems } from '../../model/config-problems.ts'
import type { NftablesState } from '../../nftables/probe.ts'
import type { Capability } from '../../system/capabilities.ts'
import type { HostSetting } from '../../system/host-setup.ts'
import type { ModuleState } from '../../system/kernel-modules.ts'

export interface CheckFacts {
  readonly kernel: KernelFacts
  readonly capabilities: ReadonlySet<Capability>
  readonly modes: ReadonlyMap<string, ModeOutlook>
  readonly conntrack: ConntrackFacts
  readonly settings: readonly SettingFact[]
  readonly others: OtherFacts
  readonly api: ApiFacts
  readonly node: CheckedNode
  readonly configuration: ConfigurationFacts
  /** Undefined where sockets shall not choose. */
  readonly sockets: SocketOutlook | undefined
}

export interface KernelFacts {
  /** `uname -r` */
  readonly release: string
  readonly nftables: NftablesState
  readonly modules: Readonly<Record<string, ModuleState>>
}

export interface ConntrackFacts {
  /** Undefined where the kernel does not track connections, or not yet. */
  readonly count: number | undefined
  readonly max: number | undefined
  readonly module: ModuleState
}

/** A kernel setting that the proxy wants. */
export interface SettingFact extends HostSetting {
  /** Undefined when it cannot be read. */
  readonly present: number | undefined
  readonly isWritable: boolean
}

export interface OtherFacts {
  /** Processes called kube-proxy that share this network. */
  readonly processes: readonly { readonly pid: number; readonly command: string }[]
  /** The ports that the proxy listens on, and whether another program does already. */
  readonly ports: readonly PortFact[]
  /** By mode: what is in the kernel that is of it. */
  readonly rules: ReadonlyMap<string, readonly string[]>
  readonly mark: MarkFact
}

/** The bit of the packet mark that asks for masquerading. */
export interface MarkFact {
  readonly bit: number
  /** Chains of other programs that set it. */
  readonly setters: readonly string[]
}

export interface PortFact {
  /** `healthz` or `metrics` */
  readonly name: string
  readonly address: string
  readonly isTaken: boolean
}

export type ApiFacts =
  | { readonly kind: 'files'; readonly folder: string }
  /** Nothing says where it is, and this is no pod. */
  | { readonly kind: 'not named' }
  /** The kubeconfig, or what a pod finds in its cluster, cannot be used. */
  | { readonly kind: 'no access'; readonly reason: string }
  | {
      readonly kind: 'asked'
      readonly server: string
      readonly warnings: readonly string[]
      /** `v1.36.4`; undefined when the server did not answer. */
      readonly version: string | undefined
      readonly requests: readonly ApiRequestFact[]
      /** How far ahead of ours its clock is, in milliseconds, give or take the second that the header leaves open. */
      readonly clockAheadMs: number | undefined
    }

export interface ApiRequestFact {
  readonly verb: 'list' | 'watch'
  readonly resource: string
  /** 200; 0 when there was no answer. */
  readonly status: number
  readonly reason: string
}

export interface CheckedNode {
  readonly name: string
  /** `unknown`: the API server did not answer. */
  readonly object: 'exists' | 'does not exist' | 'unknown'
  /** status.addresses of the Node that are IP addresses. */
  readonly addresses: readonly { readonly type: string; readonly address: string }[]
  readonly machineAddresses: readonly string[]
  readonly problems: ConfigProblems
}

export interface ConfigurationFacts extends Pick<RunOptions, 'config' | 'standIns' | 'mode' | 'minSyncPeriod'> {
  /** `--config`, if given. */
  readonly file: string | undefined
  /** What the loader warned about. */
  readonly warnings: readonly string[]
}
