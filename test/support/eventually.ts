import { setTimeout as sleep } from 'node:timers/promises'
import { patience } from './patience.ts'

/**
 * Tries until the attempt has nothing to complain about, and fails with its last complaint when the time is over, or at
 * once when the complaint is fatal. The time is that of an idle machine; a busy one gets more.
 */
export async function eventually(
  what: string,
  attempt: () => Complaint | Promise<Complaint>,
  { withinMs = 5000, everyMs = 20 }: { withinMs?: number; everyMs?: number } = {},
): Promise<void> {
  const started = performance.now()
  let busiest = 1
  for (;;) {
    // An attempt that began on a busy machine may end on an idle one.
    busiest = Math.max(busiest, patience())
    const complaint = await attempt()
    if (complaint === undefined) return
    if (typeof complaint !== 'string') throw new Error(`Cannot see that ${what}: ${complaint.fatal}`)
    const passedMs = performance.now() - started
    if (passedMs > withinMs * busiest)
      throw new Error(`Cannot see within ${Math.round(passedMs)} ms that ${what}: ${complaint}`)
    await sleep(everyMs)
  }
}

/**
 * Looks again and again for a while, and fails at the first complaint. For what must not happen and has no later event that
 * would prove it: prefer such an event where there is one. Too short a time passes what is late; it never fails what is right.
 */
export async function staysQuiet(
  what: string,
  attempt: () => Complaint | Promise<Complaint>,
  { forMs = 300, everyMs = 20 }: { forMs?: number; everyMs?: number } = {},
): Promise<void> {
  const started = performance.now()
  for (;;) {
    const complaint = await attempt()
    const passedMs = performance.now() - started
    if (complaint !== undefined) {
      const why = typeof complaint === 'string' ? complaint : complaint.fatal
      throw new Error(`After ${Math.round(passedMs)} ms it is not so that ${what}: ${why}`)
    }
    if (passedMs > forMs) return
    await sleep(everyMs)
  }
}

export type Complaint = string | undefined | { readonly fatal: string }
