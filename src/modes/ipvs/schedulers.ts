// Annotations ask for schedulers that this kernel may not have. A virtual server that it refuses would fail each sync of the family, so
// such a service port gets the scheduler of the configuration, and the node says so.

import type { ServicePortName } from '../../model/types.ts'
import type { WantedServer } from '../../ipvs/owners.ts'
import { flagsFor } from './plan/servers.ts'

export interface SchedulersOptions {
  /** That of the configuration. The kernel has it: that was looked at before anything else. */
  readonly fallback: string
  /** Asks the kernel, which loads the module if there is one. */
  readonly has: (scheduler: string) => boolean
  /** Called when a service port begins to need what the kernel lacks. */
  readonly onMissing: (service: ServicePortName, reason: string) => void
}

export class Schedulers {
  readonly #options: SchedulersOptions
  readonly #known = new Map<string, boolean>()
  /** Service ports that have been reported. */
  readonly #missed = new Set<ServicePortName>()

  constructor(options: SchedulersOptions) {
    this.#options = options
  }

  /** Modules may have come. Only before everything is planned again: until then, the same is answered. */
  forget(): void {
    this.#known.clear()
  }

  /** Whether any was asked for that the kernel does not have. */
  get lacksSome(): boolean {
    return this.#missed.size > 0 || [...this.#known.values()].includes(false)
  }

  /** With schedulers that the kernel has. */
  available(servers: readonly WantedServer[]): readonly WantedServer[] {
    const { fallback } = this.#options
    if (servers.every(({ server }) => this.#has(server.scheduler))) return servers
    return servers.map((wanted) => {
      if (this.#has(wanted.server.scheduler)) return wanted
      return { ...wanted, server: { ...wanted.server, scheduler: fallback, schedulerFlags: flagsFor(fallback) } }
    })
  }

  /** Says so once of a service port for which one is missing. */
  report(service: ServicePortName, servers: readonly WantedServer[]): void {
    const missing = servers.find(({ server }) => !this.#has(server.scheduler))?.server.scheduler
    if (missing === undefined) {
      this.#missed.delete(service)
      return
    }
    if (this.#missed.has(service)) return
    this.#missed.add(service)
    const { fallback, onMissing } = this.#options
    onMissing(service, `this kernel has no scheduler ${missing} (module ip_vs_${missing}); ${fallback} is used instead`)
  }

  #has(scheduler: string): boolean {
    if (scheduler === this.#options.fallback) return true
    let has = this.#known.get(scheduler)
    if (has === undefined) this.#known.set(scheduler, (has = this.#options.has(scheduler)))
    return has
  }
}
