// Listens on 127.0.0.1 and ::1 for node ports, and relays to the backends that the model has for the node itself.
//
// The listeners come after the rules and need none of them, so a port that another program has takes nothing from the service but
// this one way to it; it is tried again until it is free.

import type { Clock, Timer } from '../../lib/clock.ts'
import { LOCALHOST } from '../../model/node-port-addresses.ts'
import { type LocalhostListener, planLocalhostListener } from '../../model/localhost.ts'
import type { NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../../model/types.ts'
import type { SeenAs } from '../../data-path/seen-as.ts'
import type { Listeners } from '../../data-path/listeners.ts'

export interface LocalhostListenersOptions {
  readonly listeners: Listeners
  /** Resolves when a port that was let go of is free. */
  readonly settle: () => Promise<void>
  readonly clock: Clock
  /** A listener could not be opened. */
  readonly onFailed: (failure: ListenerFailure) => void
}

export interface ListenerFailure {
  readonly servicePort: ServicePortName
  readonly reason: string
  /** False: the same as the last time, or as another one's. */
  readonly isNews: boolean
}

interface Wanted extends LocalhostListener {
  readonly servicePort: ServicePortName
}

export class LocalhostListeners {
  readonly #options: LocalhostListenersOptions
  /** By protocol and port, which a service may take over from another one. */
  readonly #wanted = new Map<string, Wanted>()
  /** The same, by service port. */
  readonly #ids = new Map<ServicePortName, string>()
  /** Those that are not open, and why. */
  readonly #failed = new Map<string, string>()
  /** Ports that are being let go of. */
  readonly #leaving = new Set<string>()
  #retryTimer: Timer | undefined
  #isClosed = false

  constructor(options: LocalhostListenersOptions) {
    this.#options = options
  }

  /** How many are open. */
  get open(): number {
    const { listeners } = this.#options
    let open = 0
    for (const id of this.#wanted.keys()) if (listeners.find(id, SEEN_AS) !== undefined) open++
    return open
  }

  /** Those that are not open, for people. */
  failures(): readonly string[] {
    return Array.from(this.#failed, ([id, reason]) => `${this.#wanted.get(id)!.servicePort}: ${reason}`)
  }

  sync(node: NodeView, changes: readonly ServicePortChange[]): void {
    const { listeners } = this.#options
    listeners.moveTo(LOCALHOST[node.family])
    const changed = new Set<string>()
    for (const { name } of changes) {
      const id = this.#ids.get(name)
      // Unless another service has it by now.
      if (id === undefined || this.#wanted.get(id)?.servicePort !== name) continue
      this.#wanted.delete(id)
      this.#ids.delete(name)
      changed.add(id)
    }
    for (const { after } of changes) {
      const wanted = after && planLocalhostListener(node, after)
      if (wanted === undefined) continue
      const id = `${wanted.protocol} ${wanted.port}`
      this.#ids.set(after!.name, id)
      this.#wanted.set(id, { ...wanted, servicePort: after!.name })
      changed.add(id)
    }
    if (changed.size > 0) listeners.lookForFds()
    for (const id of changed) this.#follow(id)
    this.#retryLater()
  }

  syncAll(node: NodeView, views: Iterable<ServicePortView>): void {
    const changes = new Map<ServicePortName, ServicePortChange>()
    for (const [name] of this.#ids) changes.set(name, { name, before: undefined, after: undefined })
    for (const view of views) changes.set(view.name, { name: view.name, before: undefined, after: view })
    this.sync(node, [...changes.values()])
    // Of a proxy before this one, in this process.
    for (const [id] of this.#options.listeners.entries()) if (!this.#wanted.has(id)) this.#follow(id)
  }

  /** Listeners stay open for a proxy that takes over in this process; the code that opened them closes them. */
  close(): void {
    this.#isClosed = true
    this.#retryTimer?.cancel()
  }

  /** Opens, changes or closes one. */
  #follow(id: string): void {
    const { listeners, settle } = this.#options
    const wanted = this.#wanted.get(id)
    if (wanted === undefined) {
      this.#failed.delete(id)
      if (listeners.get(id) === undefined) return
      const wasOpen = listeners.find(id, SEEN_AS) !== undefined
      listeners.keep(id, NOBODY)
      if (!wasOpen) return
      this.#leaving.add(id)
      void settle().then(() => {
        this.#leaving.delete(id)
        if (!this.#isClosed && this.#wanted.has(id)) this.#follow(id)
      })
      return
    }
    // A thread still has the port: its turn comes when that is free.
    if (this.#leaving.has(id)) return
    const { protocol, port, backends, affinitySeconds, servicePort } = wanted
    const refused = listeners.serve({
      name: id,
      protocol,
      port,
      backends: [...backends],
      affinitySeconds,
      seenAs: SEEN_AS_NODE,
    })
    const reason = refused.get(SEEN_AS)?.reason
    if (reason === undefined) {
      this.#failed.delete(id)
      return
    }
    // For want of file descriptors there may be a thousand at once.
    const isNews = ![...this.#failed.values()].includes(reason)
    this.#failed.set(id, reason)
    this.#options.onFailed({ servicePort, reason, isNews })
  }

  /** The kernel does not notify when a port becomes free. */
  #retryLater(): void {
    this.#retryTimer?.cancel()
    this.#retryTimer = undefined
    if (this.#failed.size === 0 || this.#isClosed) return
    this.#retryTimer = this.#options.clock.setTimeout(() => {
      this.#options.listeners.lookForFds()
      for (const id of this.#failed.keys()) this.#follow(id)
      this.#retryLater()
    }, RETRY_MS)
  }
}

/** The relay opens connections of its own, so backends see an address of the node. */
const SEEN_AS: SeenAs = 'node'
const SEEN_AS_NODE: ReadonlySet<SeenAs> = new Set([SEEN_AS])
const NOBODY: ReadonlySet<SeenAs> = new Set()
/** How often it is tried to listen on a port that another program had. */
const RETRY_MS = 5000
