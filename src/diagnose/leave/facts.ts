// What `kube-proxy check --from` knows: the same node and the same cluster, decided for two modes.

import type { KubeProxyConfiguration } from '../../config/types.ts'
import type { Service } from '../../kube/types.ts'
import type { Family } from '../../lib/ip.ts'
import type { Mode } from '../../modes/contract.ts'
import type { Decided } from '../explain/known.ts'

/** The modes that can be left, and those to go to. */
export const leftModes = ['ipvs', 'iptables'] as const
export const newModes = ['nftables', 'iptables'] as const
export type LeftMode = (typeof leftModes)[number]
export type NewMode = (typeof newModes)[number]

export interface Side {
  readonly mode: Mode
  readonly config: KubeProxyConfiguration
  readonly families: Readonly<Partial<Record<Family, Decided>>>
}

export interface LeavingFacts {
  readonly from: Side
  readonly to: Side
  /** Those that a proxy serves. */
  readonly services: readonly Service[]
  /** Without those of services. */
  readonly machineAddresses: readonly string[]
  readonly machine: MachineFacts
  /** Whether the configuration is a file: flags set some things for every mode. */
  readonly hasFile: boolean
}

/** What only the node itself can tell. */
export interface MachineFacts {
  /** Why it cannot run the new mode. */
  readonly lacks: readonly string[]
  /** On which programs of this node listen, or have bound a UDP socket. */
  readonly bound: readonly { readonly address: string; readonly port: number; readonly protocol: 'TCP' | 'UDP' }[]
  /** net.ipv4.vs.sloppy_tcp */
  readonly sloppyTcp: boolean
}
