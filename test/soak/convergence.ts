// How long it takes until packets show a change.

import { setTimeout as sleep } from 'node:timers/promises'
import { patience } from '../support/patience.ts'
import type { Vantage } from './cluster.ts'
import { exchange, type Endpoint } from './exchange.ts'
import type { Judge } from './judges.ts'
import type { Exchange } from './exchange.ts'

export const CONVERGE_WITHIN_MS = 20_000 * patience()
const PROBE_MS = 1000 * patience()

export interface Probe {
  readonly from: Vantage
  readonly to: Endpoint
  readonly judge: Judge
}

/**
 * Asks over and over until the answers are as they have to be. Gives the moment at which the packet was sent that showed it
 * first; throws with what was still wrong.
 */
export async function converge({ from, to, judge }: Probe, withinMs = CONVERGE_WITHIN_MS): Promise<number> {
  const started = performance.now()
  const answers: Exchange[] = []
  const sentMs: number[] = []
  for (;;) {
    sentMs.push(performance.now())
    answers.push(await exchange(from.netns, to, PROBE_MS))
    const verdict = judge(answers)
    if (typeof verdict === 'number') return sentMs[verdict]!
    if (performance.now() - started > withinMs) {
      throw new Error(`from ${from.name} to ${to.host}:${to.port}: ${verdict}`)
    }
    await sleep(2)
  }
}
