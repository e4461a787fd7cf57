import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Tries until the attempt has nothing to complain about, and fails with its last complaint when the time is over, or at
 * once when the complaint is fatal.
 */
export async function eventually(
  what: string,
  attempt: () => Complaint | Promise<Complaint>,
  { withinMs = 5000, everyMs = 20 }: { withinMs?: number; everyMs?: number } = {},
): Promise<void> {
  const end = performance.now() + withinMs
  for (;;) {
    const complaint = await attempt()
    if (complaint === undefined) return
    if (typeof complaint !== 'string') throw new Error(`Cannot see that ${what}: ${complaint.fatal}`)
    if (performance.now() > end) throw new Error(`Cannot see within ${withinMs} ms that ${what}: ${complaint}`)
    await sleep(everyMs)
  }
}

export type Complaint = string | undefined | { readonly fatal: string }
