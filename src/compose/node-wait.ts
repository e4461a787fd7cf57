// Waits for the Node before the first rules. A Node that has just joined has no addresses and no pod ranges for a while. As kube-proxy
// does, waits half a minute for the addresses and then goes on without; waits five minutes for the ranges and then ends.

import type { Node } from '../kube/types.ts'
import type { Clock } from '../lib/clock.ts'
import { formatDuration } from '../lib/duration.ts'
import type { Logger } from '../lib/log.ts'
import { hasNodeIp } from '../model/node-ips.ts'

const ADDRESSES_WITHIN_MS = 30_000
const POD_CIDRS_WITHIN_MS = 5 * 60_000

type Fact = 'addresses' | 'podCIDRs'

export interface NodeWaitOptions {
  readonly nodeName: string
  /** The Node as it is known; undefined while there is none. */
  readonly node: () => Node | undefined
  /** The ranges of pods where detectLocalMode is NodeCIDR; nothing where nobody will say more than is known. */
  readonly needs: readonly Fact[]
  readonly clock: Clock
  readonly log: Logger
  /** When this is aborted, the wait ends, and no callback follows. */
  readonly signal: AbortSignal
}

export class NodeWait {
  readonly #options: NodeWaitOptions
  #look: (() => void) | undefined
  #isOver = false
  #fail!: (error: unknown) => void
  /** Rejects when the rules cannot be made, or what follows the wait fails. */
  readonly failed: Promise<never>

  constructor(options: NodeWaitOptions) {
    this.#options = options
    this.failed = new Promise((_, reject) => (this.#fail = reject))
    this.failed.catch(() => {})
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The Node has been listed. Calls back when enough is known of it, at once if possible. */
  begin(then: () => void): void {
    const { needs } = this.#options
    const waitForPodCIDRs = () => {
      if (!needs.includes('podCIDRs')) this.#end(then)
      else this.#until('podCIDRs', POD_CIDRS_WITHIN_MS, (found) => (found ? this.#end(then) : this.#giveUp()))
    }
    if (needs.includes('addresses')) this.#until('addresses', ADDRESSES_WITHIN_MS, waitForPodCIDRs)
    else waitForPodCIDRs()
  }

  /** The Node has changed. */
  nodeChanged(): void {
    this.#look?.()
  }

  #end(then: () => void): void {
    const { needs, log, nodeName } = this.#options
    if (needs.includes('addresses') && !this.#has('addresses')) {
      log.error(undefined, `Going on without: ${this.#lack('addresses')}`, { node: nodeName })
    }
    this.#isOver = true
    try {
      then()
    } catch (error) {
      this.#fail(error)
    }
  }

  #giveUp(): void {
    const why = this.#lack('podCIDRs')
    this.#fail(new Error(`Cannot detect local traffic (detectLocalMode is NodeCIDR): ${why}`))
  }

  #until(what: Fact, withinMs: number, then: (found: boolean) => void): void {
    const { nodeName, clock, log, signal } = this.#options
    if (this.#has(what)) {
      then(true)
      return
    }
    log.info(`Waiting before the first rule: ${this.#lack(what)}`, { node: nodeName, upTo: formatDuration(withinMs) })
    const end = (found: boolean) => {
      timer.cancel()
      this.#look = undefined
      if (!signal.aborted) then(found)
    }
    const timer = clock.setTimeout(() => end(false), withinMs)
    signal.addEventListener('abort', () => timer.cancel(), { once: true })
    this.#look = () => {
      if (this.#has(what)) end(true)
    }
  }

  #has(what: Fact): boolean {
    const node = this.#options.node()
    if (node === undefined) return false
    return what === 'addresses' ? hasNodeIp(node) : node.podCIDRs.length > 0
  }

  #lack(what: Fact): string {
    const { node, nodeName } = this.#options
    return node() === undefined ? `there is no Node ${JSON.stringify(nodeName)}` : `the Node has no ${what}`
  }
}
