// What other modes left on this machine goes when the one in force is in place, so that connections are never without rules.

import type { KubeProxyConfiguration } from '../config/types.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { modes } from '../modes/all.ts'
import type { Mode } from '../modes/contract.ts'
import { cleanUpModes } from './cleanup.ts'

export interface OtherModesOptions {
  readonly inForce: Mode
  readonly families: readonly Family[]
  readonly config: () => KubeProxyConfiguration
  readonly log: Logger
}

export class OtherModes {
  readonly #options: OtherModesOptions
  /** The families that have not been programmed yet. */
  readonly #waiting: Set<Family>
  /** Once. */
  #cleaning: Promise<unknown> | undefined
  #isHeld = false

  constructor(options: OtherModesOptions) {
    this.#options = options
    this.#waiting = new Set(options.families)
  }

  /** The family has been programmed. */
  synced(family: Family): void {
    if (this.#waiting.delete(family)) this.#cleanUp()
  }

  /** Another process has served meanwhile, and may have left something: it goes after the next sync of each family. */
  again(): void {
    // The other families tell of it, too.
    if (this.#waiting.size > 0) return
    this.#cleaning = undefined
    for (const family of this.#options.families) this.#waiting.add(family)
  }

  /** From now on nothing is removed. Resolves when what was being removed is gone. */
  async hold(): Promise<void> {
    this.#isHeld = true
    await this.#cleaning
  }

  release(): void {
    this.#isHeld = false
    this.#cleanUp()
  }

  #cleanUp(): void {
    if (this.#waiting.size > 0 || this.#isHeld || this.#cleaning !== undefined) return
    const { inForce, config, log } = this.#options
    this.#cleaning = cleanUpModes(
      modes.filter((mode) => mode !== inForce),
      { config: config(), log },
    )
  }
}
