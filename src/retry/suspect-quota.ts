// How much of this node's attention one tenant can have: a trial is a connection that the node makes to an address that an
// EndpointSlice names, and places for suspects are few.
//
// A place stays taken for a while after its suspect is done with, so that endpoints that come and go do not make the node try
// any number of addresses. A backend that is suspected again has its place still: those of a service that has no more backends
// than places cannot be used up, whoever forges failures.

/** More than this many suspects are not looked at: their clients fare as before. */
export const MOST_SUSPECTS = 1024
export const MOST_OF_NAMESPACE = 256
export const MOST_OF_SERVICE = 128
export const KEPT_MS = 10_000

interface Place {
  readonly service: string
  /** Since when its suspect is done with. */
  leftMs: number | undefined
}

export class SuspectQuota {
  readonly #held = new Map<string, Place>()
  /** In the order of time. */
  readonly #left = new Map<string, Place>()
  /** Places by service, `namespace/name`, and by namespace. */
  readonly #taken = new Map<string, number>()

  /** Takes a place for a backend in the name of one of the services that use it; false when none has one left. */
  take(backend: string, services: readonly string[], nowMs: number): boolean {
    this.#forget(nowMs)
    if (this.#held.size >= MOST_SUSPECTS) return false
    const left = this.#left.get(backend)
    if (left !== undefined) {
      this.#left.delete(backend)
      this.#count(left.service, -1)
    }
    const service = services.find((each) => this.#hasRoom(each))
    if (service === undefined) return false
    this.#held.set(backend, { service, leftMs: undefined })
    this.#count(service, 1)
    return true
  }

  /** Its suspect is done with. */
  leave(backend: string, nowMs: number): void {
    const place = this.#held.get(backend)
    if (place === undefined) return
    this.#held.delete(backend)
    this.#left.set(backend, { ...place, leftMs: nowMs })
  }

  clear(): void {
    for (const map of [this.#held, this.#left, this.#taken]) map.clear()
  }

  #forget(nowMs: number): void {
    for (const [backend, { service, leftMs = nowMs }] of this.#left) {
      if (nowMs - leftMs < KEPT_MS) break
      this.#left.delete(backend)
      this.#count(service, -1)
    }
  }

  #hasRoom(service: string): boolean {
    const taken = (key: string) => this.#taken.get(key) ?? 0
    return taken(service) < MOST_OF_SERVICE && taken(namespaceOf(service)) < MOST_OF_NAMESPACE
  }

  #count(service: string, by: 1 | -1): void {
    for (const key of [service, namespaceOf(service)]) {
      const taken = (this.#taken.get(key) ?? 0) + by
      if (taken === 0) this.#taken.delete(key)
      else this.#taken.set(key, taken)
    }
  }
}

function namespaceOf(service: string): string {
  return service.slice(0, service.indexOf('/') + 1)
}
