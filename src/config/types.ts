// The configuration of the program: the file's shape (fields.ts), where settings that a file has once per mode are those of the
// active mode. kube-proxy does the same between v1alpha1 and its internal type.
//
// Durations are numbers of milliseconds and their names end in `Ms`: `conntrack.udpTimeoutMs`.

import type { detectLocalModes, FileConfiguration } from './fields.ts'

export type DetectLocalMode = (typeof detectLocalModes)[number]

type Settled = 'syncPeriodMs' | 'minSyncPeriodMs' | 'masqueradeAll'
type MovedElsewhere =
  | 'iptables'
  | 'ipvs'
  | 'nftables'
  | 'detectLocal'
  | 'clusterCIDR'
  | 'portRange'
  | 'udpIdleTimeoutMs'
  | 'chooseAtConnect'
  | 'detectLocalMode'

export interface KubeProxyConfiguration extends Omit<FileConfiguration, MovedElsewhere> {
  readonly iptables: Omit<FileConfiguration['iptables'], Settled>
  readonly ipvs: Omit<FileConfiguration['ipvs'], Settled>
  readonly nftables: Omit<FileConfiguration['nftables'], Settled>
  /** The active mode's period of full checks. */
  readonly syncPeriodMs: number
  /** The active mode's least time between two updates. See {@link LoadedConfiguration}. */
  readonly minSyncPeriodMs: number
  /** The active mode's masqueradeAll. */
  readonly masqueradeAll: boolean
  readonly detectLocalMode: DetectLocalMode
  readonly detectLocal: FileConfiguration['detectLocal'] & { readonly clusterCIDRs: readonly string[] }
  /** Settings of the userspace mode, which kube-proxy no longer has. */
  readonly userspace: {
    /** `a-b`; empty for any free port. */
    readonly portRange: string
    readonly udpIdleTimeoutMs: number
  }
}

/** A configuration that has been decoded, completed and validated. */
export interface LoadedConfiguration {
  readonly config: KubeProxyConfiguration
  /** The default is kube-proxy's 1 s, which a mode with cheap updates may shorten; a given value counts. */
  readonly minSyncPeriod: 'given' | 'defaulted'
  /** kube-proxy writes an Event about a defaulted mode. */
  readonly mode: 'given' | 'defaulted'
}

/** A change of the configuration file while the program runs. */
export type ConfigurationChange =
  | { readonly kind: 'changed'; readonly loaded: LoadedConfiguration }
  /** The file cannot be read, decoded or accepted. The running configuration stays. */
  | { readonly kind: 'invalid'; readonly error: Error }
