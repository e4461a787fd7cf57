// What a mode is to the proxy: something that programs this machine, one IP family at a time.

import type { KubeProxyConfiguration } from '../config/types.ts'
import type { Clock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Programmer, ProgrammerReports } from './programmer.ts'

export interface Mode {
  readonly name: string
  /** Whether a change costs so little that it need not wait for others. */
  readonly changesAreCheap: boolean
  /** The part of open() that needs more rights than the rest: kernel settings and modules. For --init-only. */
  init?(config: KubeProxyConfiguration, log: Logger): void | Promise<void>
  open(options: ModeOptions): RunningMode | Promise<RunningMode>
  /** Removes all that the mode put into this machine; harmless when it never ran. */
  cleanup(log: Logger, config: KubeProxyConfiguration): void | Promise<void>
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
  /** `ip:port` of what answers UDP flows of a service port, in a mode in which that is not the endpoints. */
  readonly flowTargets?: (family: Family, view: ServicePortView) => readonly string[]
  /** Lines for people, shown by /statusz. */
  readonly status?: () => string
  /**
   * For a mode that carries connections itself, before the process ends: lets them come to their end and takes the rules
   * away. When the signal is aborted it is to hurry. Without this, rules stay.
   */
  readonly end?: (signal: AbortSignal) => Promise<void>
  close(): void
}
