// Before a proxy that carries connections itself ends, it leaves its services to the kernel: it writes the rules of another mode, and
// new clients reach endpoints without a process. So there is no gap while the last connections end, nor during a restart. The next
// proxy removes those rules when its own are in place, as it does with all rules of other modes.

import type { KubeProxyConfiguration } from '../config/types.ts'
import { systemClock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { NodeView, ServicePortView } from '../model/types.ts'
import { modeNamed, modes } from '../modes/all.ts'
import type { Mode, RunningMode } from '../modes/contract.ts'

/** What one family is left with. */
export interface LeftState {
  readonly node: NodeView
  readonly views: Iterable<ServicePortView>
}

export interface LeaveOptions {
  readonly mode: Mode
  readonly running: Pick<RunningMode, 'serves'>
  readonly families: readonly Family[]
  readonly config: KubeProxyConfiguration
  readonly left: readonly LeftState[]
  readonly metrics: Metrics
  readonly log: Logger
}

/** A failure is logged. */
export async function leaveToKernel(options: LeaveOptions): Promise<void> {
  const { mode, log } = options
  if (mode.leavesTo === undefined) return
  const heir = modeNamed(mode.leavesTo)
  try {
    if (await isAlone(options, [])) await leaveTo(heir, options)
  } catch (error) {
    log.error(error, 'Cannot leave services to the kernel: new connections get no answer until a proxy is back')
  }
}

async function leaveTo(heir: Mode, options: LeaveOptions): Promise<void> {
  const { config, log } = options
  let isLeft = false
  try {
    await program(heir, options)
    // A proxy that started meanwhile has already cleaned up, and would not remove these rules.
    isLeft = await isAlone(options, [heir])
    if (isLeft) log.info('New connections go by rules of another mode until a proxy is back', { mode: heir.name })
  } finally {
    const machine = await heir.load()
    if (!isLeft) await machine.cleanup(log, config)
  }
}

async function program(heir: Mode, { families, config, left, metrics, log }: LeaveOptions): Promise<void> {
  const machine = await heir.load()
  const running = await machine.open({ config, log, families, clock: systemClock, onForeignChange: () => {} })
  try {
    for (const { node, views } of left) {
      // The table is new: there are no clients to forget.
      const affinity = { onFailed: () => {}, onMended: () => {} }
      const programmer = running.programmer(node.family, { metrics, onRefused: () => {}, affinity })
      try {
        await programmer.syncAll(node, views)
      } finally {
        programmer.close()
      }
    }
  } finally {
    await running.close()
  }
}

/** Whether no other proxy serves this node: one of the same mode that has taken over, or one whose rules are those of another. */
async function isAlone({ mode, running, config, families }: LeaveOptions, but: readonly Mode[]): Promise<boolean> {
  if (running.serves?.() !== true) return false
  for (const other of modes) {
    if (other === mode || but.includes(other)) continue
    const machine = await other.load()
    const present = (await machine.readPresent?.({ config, families })) ?? []
    if (present.length > 0) return false
  }
  return true
}
