// When changes of endpoints were triggered: for the metric of the network programming latency.

import type { NamespacedName } from '../kube/types.ts'

export class TriggerTimes {
  readonly #startedMs: number
  #times = new Map<NamespacedName, number[]>()

  /** Changes before `startedMs` waited for the program to start, and are not counted. */
  constructor(startedMs: number) {
    this.#startedMs = startedMs
  }

  /** A slice of the service changed; its annotation says when that was triggered. */
  add(service: NamespacedName, triggerTimeMs: number | undefined): void {
    if (triggerTimeMs === undefined || !(triggerTimeMs > this.#startedMs)) return
    const times = this.#times.get(service)
    if (times === undefined) this.#times.set(service, [triggerTimeMs])
    else times.push(triggerTimeMs)
  }

  /** A slice of the service went away. Its annotation has the time of an earlier change. */
  forget(service: NamespacedName): void {
    this.#times.delete(service)
  }

  take(): ReadonlyMap<NamespacedName, readonly number[]> {
    const taken = this.#times
    this.#times = new Map()
    return taken
  }
}
