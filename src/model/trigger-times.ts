// When changes of endpoints were triggered, to tell how long it took until the rules followed.

import type { NamespacedName } from '../kube/types.ts'

export class TriggerTimes {
  readonly #startedMs: number
  #times = new Map<NamespacedName, number[]>()

  /** What was triggered before `startedMs` waited for the program to start, not for its work, and is not counted. */
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

  /** A slice of the service went away; its annotation is about its last change, not about this one. */
  forget(service: NamespacedName): void {
    this.#times.delete(service)
  }

  take(): ReadonlyMap<NamespacedName, readonly number[]> {
    const taken = this.#times
    this.#times = new Map()
    return taken
  }
}
