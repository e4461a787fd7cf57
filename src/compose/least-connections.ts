// Connects the counting of open connections to the rest of the proxy. Its code is loaded when the first Service asks for it.

import type { LeastConnections } from '../flows/least-connections.ts'
import { systemClock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { NodeView, ServicePortChange } from '../model/types.ts'
import type { Mode } from '../modes/contract.ts'
import type { FamilyPipeline } from '../reconcile/family-pipeline.ts'

export interface CountingOptions {
  readonly mode: Mode
  readonly pipeline: (family: Family) => FamilyPipeline | undefined
  readonly log: Logger
}

export class LeastConnectionsCounting {
  readonly #options: CountingOptions
  #loading: Promise<LeastConnections> | undefined
  #loaded: LeastConnections | undefined
  #isClosed = false

  constructor(options: CountingOptions) {
    this.#options = options
  }

  /** After a sync. Other modes than those of rules compare backends themselves. */
  follow(node: NodeView, changes: readonly ServicePortChange[]): void {
    if (this.#options.mode.translates !== 'by rules') return
    if (this.#loading === undefined && !changes.some(asksForIt)) return
    this.#loading ??= this.#load()
    void this.#loading.then(
      (counting) => {
        if (!this.#isClosed) counting.follow(node, changes)
      },
      (error: unknown) => this.#options.log.error(error, 'Cannot count connections'),
    )
  }

  /** For people. */
  status(): string | undefined {
    return this.#loaded?.status()
  }

  close(): void {
    this.#isClosed = true
    this.#loaded?.close()
  }

  async #load(): Promise<LeastConnections> {
    const { LeastConnections: Counting } = await import('../flows/least-connections.ts')
    const { pipeline, log } = this.#options
    this.#loaded = new Counting({
      onLoads: (family, name, loads) => {
        const of = pipeline(family)
        const moved = of?.model.setLoads(name, loads) === true
        if (moved) of.changed()
        return moved
      },
      clock: systemClock,
      log,
    })
    return this.#loaded
  }
}

function asksForIt({ after }: ServicePortChange): boolean {
  return after?.backends.balance === 'least-connections'
}
