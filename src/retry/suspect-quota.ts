// Limits the suspects of each service and namespace: a probe is a connection that the node makes to an address that an EndpointSlice
// names, and one tenant must not use up all places.
//
// A place stays taken for a while after the suspicion has ended, so that endpoints that come and go do not make the node probe any
// number of addresses. A backend that is suspected again in that time keeps its place. So nobody who forges failures can use up
// the places of a service that has at least as many places as backends.

/** Further backends cannot become suspects: their clients fail as without the proxy. */
export const MOST_SUSPECTS = 1024
export const MOST_OF_NAMESPACE = 256
export const MOST_OF_SERVICE = 128
export const KEPT_MS = 10_000

interface Place {
  readonly service: string
  /** When the suspicion ended. */
  leftMs: number | undefined
}

export class SuspectQuota {
  readonly #held = new Map<string, Place>()
  /** Oldest first. */
  readonly #left = new Map<string, Place>()
  /** Places by service, `namespace/name`, and by namespace. */
  readonly #taken = new Map<string, number>()

  /** Takes a place for a backend from one of the services that use it; false when none of them has one left. */
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

  /** The suspicion of this backend has ended. */
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
