// Reads what is in the kernel of this machine for a family, in the form that packets can walk through.

import type { Family } from '../lib/ip.ts'
import { messageOf } from '../lib/errors.ts'
import { modeNamed } from '../modes/all.ts'
import type { KernelState } from './explain.ts'

export async function readKernelState(mode: string, family: Family): Promise<KernelState> {
  const nowMs = Date.now()
  const what = `the ${mode} mode for IPv${family}`
  try {
    const machine = await modeNamed(mode).load()
    const walkable = await machine.readWalkable({ family, now: () => nowMs })
    return walkable === undefined ? { kind: 'nothing', what } : { kind: 'walkable', walkable, when: 'read now', nowMs }
  } catch (error) {
    return { kind: 'unknown', what, error: messageOf(error) }
  }
}
