// Runs the judgement of `kube-proxy check` in the proxy: /statusz shows the result, and Events report each fault once.

import type { RunOptions } from '../config/run-options.ts'
import { anEvent } from '../kube/event-kinds.ts'
import type { EventRecorder } from '../kube/events.ts'
import type { Node } from '../kube/types.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/log.ts'

/** Something that is wrong. */
export interface Fault {
  /** A code of docs/reference/check.md. */
  readonly code: string
  readonly level: 'warning' | 'problem'
  readonly message: string
  readonly todo: string | undefined
}

export interface RunningNode {
  readonly options: RunOptions
  /** Undefined when the API server has none of this name. */
  readonly node: Node | undefined
}

export type Judge = (running: RunningNode) => Promise<readonly Fault[]>

export interface SelfCheckOptions {
  /** Absent: nothing is judged. */
  readonly judge: Judge | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** Leaves the processor to the start of the proxy, and gives an old proxy time to end. */
const JUDGE_AFTER_MS = 3000
/** Reading tables while they are written slows both down. After so many waits, the check runs all the same. */
const WAITS_FOR_RULES = 40

/** These have Events of their own. */
const REPORTED_ELSEWHERE: ReadonlySet<string> = new Set(['mode-stands-in', 'mode-default'])

/** One for the life of the process, so that a changed configuration file does not report every fault again. */
export class SelfCheck {
  readonly #options: SelfCheckOptions
  readonly #reported = new Set<string>()
  #faults: readonly Fault[] | undefined
  #timer: Timer | undefined
  #round = 0

  constructor(options: SelfCheckOptions) {
    this.#options = options
  }

  /** Judges a moment later, in the background, and not while the first rules are being written. */
  begin(running: () => RunningNode, events: Pick<EventRecorder, 'record'>, isBusy: () => boolean = () => false): void {
    const { judge, clock, log } = this.#options
    if (judge === undefined) return
    const round = ++this.#round
    let waits = 0
    this.#timer?.cancel()
    const later = () => {
      if (isBusy() && ++waits < WAITS_FOR_RULES) {
        this.#timer = clock.setTimeout(later, JUDGE_AFTER_MS)
        return
      }
      judge(running())
        .then((faults) => {
          if (round === this.#round) this.#found(faults, events)
        })
        .catch((error: unknown) => log.v(2)?.info('Cannot judge this node', { err: messageOf(error) }))
    }
    this.#timer = clock.setTimeout(later, JUDGE_AFTER_MS)
  }

  stop(): void {
    this.#round++
    this.#timer?.cancel()
  }

  /** Lines for /statusz. */
  status(): string {
    if (this.#faults === undefined) return 'kube-proxy check: not judged yet'
    if (this.#faults.length === 0) return 'kube-proxy check: nothing is wrong'
    const lines = this.#faults.flatMap(({ level, message, todo }) => [
      `  ${(level === 'problem' ? 'PROBLEM' : level).padEnd(9)}${message}`,
      ...(todo === undefined ? [] : [`           -> ${todo}`]),
    ])
    return ['kube-proxy check:', ...lines].join('\n')
  }

  #found(faults: readonly Fault[], events: Pick<EventRecorder, 'record'>): void {
    this.#faults = faults
    for (const { code, message, todo } of faults) {
      if (REPORTED_ELSEWHERE.has(code) || this.#reported.has(message)) continue
      this.#reported.add(message)
      events.record(anEvent('KubeProxyCheck', todo === undefined ? message : `${message}; ${todo}`))
    }
  }
}
