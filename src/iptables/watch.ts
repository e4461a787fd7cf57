// Which other programs change iptables? With iptables-nft the kernel sends notifications; and with both backends we look now and then whether
// the canaries are still there: empty chains that go when a program flushes everything. With iptables-legacy, where the kernel
// sends none, that is also the time to compare everything.

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
  /** Time to look, where the kernel sends no notifications. */
  readonly onPoll: (family: Family) => void
  /** Looking failed for now, as on a machine with no room for another process. It is tried again. */
  readonly onFailure: (error: unknown) => void
}

/** A program that flushes does so table by table: what we restored too early would be flushed again. */
const FLUSH_POLL_MS = 100
const FLUSH_POLLS = 20

export interface IptablesWatch {
  /**
   * Runs a large change of our own. While any program listens, the kernel writes a notification for each rule, so we do not
   * listen meanwhile. A foreign change in this time is found by the canaries, or by the next comparison.
   */
  quietly<T>(work: () => Promise<T>): Promise<T>
  /** The canaries are there now: when they are missing, another program took them. */
  canariesSet(family: Family): void
  close(): void
}

export function watchIptables(options: IptablesWatchOptions): IptablesWatch {
  const watches = new Map(
    Array.from(options.iptables, ([family, iptables]) => [family, new CanaryWatch(family, iptables, options)]),
  )
  const kernel = new KernelWatch(options)
  return {
    async quietly(work) {
      kernel.pause()
      try {
        return await work()
      } finally {
        kernel.resume()
      }
    },
    canariesSet: (family) => watches.get(family)?.arm(),
    close() {
      for (const watch of watches.values()) watch.close()
      kernel.close()
    },
  }
}

/** Listens to the kernel, but for the time of large changes. */
class KernelWatch {
  readonly #options: IptablesWatchOptions
  #watch: { close(): void } | undefined
  #pauses = 0
  #closed = false
  #retry: Timer | undefined
  /** A notification that should have come did not. */
  #isDeaf = false

  constructor(options: IptablesWatchOptions) {
    this.#options = options
    this.#watch = watchKernel(options)
  }

  pause(): void {
    this.#pauses++
    this.#stop()
  }

  /** Never throws: the change that was made meanwhile is made. */
  resume(): void {
    if (--this.#pauses === 0) this.#listen()
  }

  close(): void {
    this.#closed = true
    this.#stop()
  }

  #listen(): void {
    if (this.#closed || this.#pauses > 0 || this.#watch !== undefined) return
    const { clock, pollMs, onFailure, onChange, iptables } = this.#options
    try {
      this.#watch = watchKernel(this.#options)
    } catch (error) {
      this.#isDeaf = true
      this.#retry?.cancel()
      this.#retry = clock.setTimeout(() => this.#listen(), pollMs)
      onFailure(error)
      return
    }
    if (!this.#isDeaf) return
    this.#isDeaf = false
    for (const family of iptables.keys()) onChange(family)
  }

  #stop(): void {
    this.#retry?.cancel()
    this.#watch?.close()
    this.#watch = undefined
  }
}

function watchKernel({ iptables, onChange }: IptablesWatchOptions): { close(): void } | undefined {
  if ([...iptables.values()].every(({ backend }) => backend === 'legacy')) return undefined
  const isFirst = isFirstPidNamespace()
  return watchNftables((change) => {
    for (const [family, each] of iptables) {
      const concerns =
        change.kind === 'lost' || (change.family === (family === 4 ? 'ip' : 'ip6') && TABLES.includes(change.table))
      const isOurs = change.kind === 'lost' ? each.isBusy : each.pids.has(isFirst ? change.pid : change.port)
      if (concerns && !isOurs) onChange(family)
    }
  })
}

const TABLES: readonly string[] = ['nat', 'filter', 'mangle']

/**
 * The kernel names processes as the first pid namespace does. In another one we do not know our own children by that, but by the
 * ports of their sockets, which are their pids as we see them. (A process of yet another namespace may have the same number: its
 * change passes for ours, and is found by the next comparison.)
 */
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
    try {
      if (this.#armed) await this.#look()
    } catch (error) {
      this.#options.onFailure(error)
    }
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

  /** How many canaries are there. One that cannot be looked for counts: its absence would mean that all was flushed. */
  async #alive(): Promise<number> {
    const { chain, tables } = this.#options.canary
    const found = await Promise.all(tables.map((table) => this.#iptables.hasChain(table, chain)))
    return found.filter((isThere) => isThere !== false).length
  }
}
