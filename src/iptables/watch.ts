// Who else changes iptables? With iptables-nft the kernel tells; and with both backends we look now and then whether the
// canaries are still there: empty chains that go when somebody flushes everything. With iptables-legacy, where the kernel
// does not tell, that is also the time to compare everything.

import { statSync } from 'node:fs'
import type { Clock, Timer } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { TableName } from './types.ts'
import type { Iptables } from './driver.ts'
import { watchNftables } from '../nftables/watch.ts'

export interface IptablesWatchOptions {
  readonly iptables: ReadonlyMap<Family, Iptables>
  readonly canary: { readonly chain: string; readonly tables: readonly TableName[] }
  readonly pollMs: number
  readonly clock: Clock
  /** Another program changed tables in which we have rules, perhaps not those. */
  readonly onChange: (family: Family) => void
  /** Time to look, where nobody tells us about changes. */
  readonly onPoll: (family: Family) => void
}

/** Somebody who flushes does so table by table: what we restored too early would be flushed again. */
const FLUSH_POLL_MS = 100
const FLUSH_POLLS = 20

export interface IptablesWatch {
  /**
   * Runs a large change of our own. While anybody listens, the kernel writes a notification for each rule, so we do not
   * listen meanwhile. A foreign change in this time is found by the canaries, or by the next comparison.
   */
  quietly<T>(work: () => Promise<T>): Promise<T>
  /** The canaries are there now: when they are missing, somebody took them. */
  canariesSet(family: Family): void
  close(): void
}

export function watchIptables(options: IptablesWatchOptions): IptablesWatch {
  const watches = new Map(
    Array.from(options.iptables, ([family, iptables]) => [family, new CanaryWatch(family, iptables, options)]),
  )
  let kernel = watchKernel(options)
  let quiet = 0
  let closed = false
  return {
    async quietly(work) {
      if (quiet++ === 0) kernel?.close()
      try {
        return await work()
      } finally {
        if (--quiet === 0 && !closed) kernel = watchKernel(options)
      }
    },
    canariesSet: (family) => watches.get(family)?.arm(),
    close() {
      closed = true
      for (const watch of watches.values()) watch.close()
      if (quiet === 0) kernel?.close()
    },
  }
}

function watchKernel({ iptables, onChange }: IptablesWatchOptions): { close(): void } | undefined {
  if ([...iptables.values()].every(({ backend }) => backend === 'legacy')) return undefined
  const canTellPids = isFirstPidNamespace()
  return watchNftables((change) => {
    for (const [family, each] of iptables) {
      const concerns =
        change.kind === 'lost' || (change.family === (family === 4 ? 'ip' : 'ip6') && TABLES.includes(change.table))
      const isOurs = change.kind === 'lost' || !canTellPids ? each.isBusy : each.pids.has(change.pid)
      if (concerns && !isOurs) onChange(family)
    }
  })
}

const TABLES: readonly string[] = ['nat', 'filter', 'mangle']

/** The kernel names processes as the first pid namespace does. In another one, we do not know our own children by that. */
function isFirstPidNamespace(): boolean {
  // PROC_PID_INIT_INO of include/linux/proc_ns.h
  return statSync('/proc/self/ns/pid').ino === 0xeffffffc
}

class CanaryWatch {
  readonly #family: Family
  readonly #iptables: Iptables
  readonly #options: IptablesWatchOptions
  #timer: Timer | undefined
  #closed = false
  /** Before the first sync there is no canary. */
  #armed = false

  constructor(family: Family, iptables: Iptables, options: IptablesWatchOptions) {
    this.#family = family
    this.#iptables = iptables
    this.#options = options
    this.#wait()
  }

  arm(): void {
    this.#armed = true
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }

  #wait(): void {
    const { clock, pollMs } = this.#options
    if (!this.#closed) this.#timer = clock.setTimeout(() => void this.#poll(), pollMs)
  }

  async #poll(): Promise<void> {
    if (this.#armed) await this.#look()
    this.#wait()
  }

  async #look(): Promise<void> {
    const { canary, onChange, onPoll } = this.#options
    const isWhole = (await this.#alive()) === canary.tables.length
    if (this.#closed) return
    if (isWhole) {
      if (this.#iptables.backend === 'legacy') onPoll(this.#family)
      return
    }
    await this.#flushed()
    onChange(this.#family)
  }

  /** Waits until all canaries are gone, but not for long. */
  async #flushed(): Promise<void> {
    const { clock } = this.#options
    for (let polls = 0; polls < FLUSH_POLLS && !this.#closed && (await this.#alive()) > 0; polls++) {
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, FLUSH_POLL_MS))
    }
  }

  /** How many canaries are there. */
  async #alive(): Promise<number> {
    const { chain, tables } = this.#options.canary
    const found = await Promise.all(tables.map((table) => this.#iptables.hasChain(table, chain)))
    return found.filter(Boolean).length
  }
}
