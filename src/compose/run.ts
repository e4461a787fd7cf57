// Runs the proxy until a signal, following its configuration file.

import type { RunOptions } from '../config/run-options.ts'
import type { LoadedConfiguration } from '../config/types.ts'
import { systemClock } from '../lib/clock.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { beginSource } from './begin.ts'
import type { NodeProxy } from './node-proxy.ts'
import { type Judge, SelfCheck } from './self-check.ts'

/**
 * Resolves on SIGTERM or SIGINT: at once where the rules stay, after its connections in a mode that carries them itself; a
 * second signal hurries that. Rejects when the proxy cannot go on.
 */
export async function runProxy(options: RunOptions, judge?: Judge): Promise<void> {
  const selfCheck = new SelfCheck({ judge, clock: systemClock, log: options.log })
  // The API server is asked before the rest is loaded, and answers meanwhile.
  const begun = beginSource(options)
  // Connections are opened and requests are sent in turns of the event loop. Loading the rest takes all of one.
  await nextTurn()
  const proxy = await openProxy(options, { selfCheck, begun })
  const runner = new ProxyRunner(options, { proxy, selfCheck })
  const hurry = new AbortController()
  const signalled = new Promise<void>((resolve) => {
    let signals = 0
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (signals++ === 0) resolve()
        else hurry.abort()
      })
    }
  })
  await Promise.race([runner.run(), signalled.then(() => runner.end(hurry.signal))])
}

const openProxy: typeof NodeProxy.open = async (...args) => {
  const { NodeProxy: Proxy } = await import('./node-proxy.ts')
  // Gives TLS a turn to process data of the API server that came meanwhile.
  await nextTurn()
  return Proxy.open(...args)
}

class ProxyRunner {
  readonly #options: RunOptions
  #proxy: NodeProxy
  readonly #selfCheck: SelfCheck
  readonly #reloads = { applied: 0, rejected: 0 }
  #running: Promise<void> = Promise.resolve()
  #fail!: (error: unknown) => void
  readonly #failed = new Promise<never>((_, reject) => (this.#fail = reject))

  constructor(options: RunOptions, { proxy, selfCheck }: { proxy: NodeProxy; selfCheck: SelfCheck }) {
    this.#options = options
    this.#proxy = proxy
    this.#selfCheck = selfCheck
  }

  async run(): Promise<void> {
    this.#start()
    void this.#followConfiguration().catch(this.#fail)
    await this.#failed
  }

  end(signal: AbortSignal): Promise<void> {
    return this.#proxy.end(signal)
  }

  #start(): void {
    this.#running = this.#proxy.start()
    this.#running.catch(this.#fail)
  }

  async #followConfiguration(): Promise<void> {
    const { configurationChanges } = this.#options
    if (configurationChanges === undefined) return
    for await (const change of configurationChanges(new AbortController().signal)) {
      if (change.kind === 'invalid') {
        this.#reject(change.error)
      } else {
        await this.#apply(change.loaded)
      }
    }
  }

  async #apply(loaded: LoadedConfiguration): Promise<void> {
    const { log } = this.#options
    if (this.#proxy.apply(loaded)) {
      log.info('Applied the changed configuration file')
      this.#count('applied')
      return
    }
    let next: NodeProxy
    // Opening the next mode creates what its rules need: the current proxy must not remove that as a leftover.
    await this.#proxy.handOver()
    try {
      next = await openProxy(
        { ...this.#options, ...loaded },
        { handover: this.#proxy.handover, selfCheck: this.#selfCheck },
      )
    } catch (error) {
      this.#reject(error)
      this.#proxy.takeBack()
      return
    }
    log.info('Starting again with the changed configuration file, the rules stay meanwhile')
    try {
      await this.#proxy.stop()
    } catch (error) {
      // The rest of it is closed, and its successor is ready.
      log.error(error, 'Cannot close all that the previous configuration had opened')
    }
    this.#proxy = next
    for (const outcome of ['applied', 'rejected'] as const) next.countReloads(outcome, this.#reloads[outcome])
    this.#count('applied')
    this.#start()
  }

  #reject(error: unknown): void {
    const { log } = this.#options
    log.error(error, 'Cannot use the changed configuration file; the running configuration stays')
    this.#count('rejected')
  }

  #count(outcome: 'applied' | 'rejected'): void {
    this.#reloads[outcome]++
    this.#proxy.countReloads(outcome)
  }
}
