// What a mode would program, in the words of the programs that could do it in its place. Nothing is changed.

import type { KubeProxyConfiguration } from '../config/types.ts'
import type { Family } from '../lib/ip.ts'
import type { NodeView, ServicePortView } from '../model/types.ts'

export interface DryRunOptions {
  readonly config: KubeProxyConfiguration
  /** Its family is the one of the dry run. */
  readonly node: NodeView
  readonly views: readonly ServicePortView[]
  /** Every address of the node, of both families. */
  readonly machineAddresses: readonly string[]
  /**
   * `this machine`: the difference to what it has, as commands. `empty`: all of it, as if the kernel had nothing yet; this
   * machine is not looked at.
   */
  readonly kernel: 'this machine' | 'empty'
}

/** The programs that read the scripts of a dry run, each with the arguments that make it do so. */
export const scriptReaders = {
  nft: 'nft -f -',
  'iptables-restore': 'iptables-restore --noflush',
  'ip6tables-restore': 'ip6tables-restore --noflush',
  ipvsadm: 'ipvsadm -R',
  ip: 'ip -batch -',
} as const

export type ScriptReader = keyof typeof scriptReaders

export interface DryRunScript {
  readonly program: ScriptReader
  /** Empty when there is nothing to do. */
  readonly text: string
  /** Removes what a running proxy keeps, empty, for its next use; absent: there is nothing of that kind. */
  readonly leftovers?: string
}

export interface DryRun {
  /** In the order in which they are to be read. */
  readonly scripts: readonly DryRunScript[]
  /** What cannot be said in their words. */
  readonly remarks: readonly string[]
}

/** Lines, as a text. */
export function scriptOf(program: ScriptReader, lines: readonly string[]): DryRunScript {
  return { program, text: lines.map((line) => `${line}\n`).join('') }
}

export function restoreProgram(family: Family): ScriptReader {
  return family === 4 ? 'iptables-restore' : 'ip6tables-restore'
}
