// Removes the rules of other modes when those of the mode in force are in place, so that connections are never without rules.

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
  /** Set when cleaning up has begun: that happens once. */
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

  /** Another process served meanwhile, and may have left rules: they are removed after the next sync of each family. */
  again(): void {
    // Each family calls this; the first call is enough.
    if (this.#waiting.size > 0) return
    this.#cleaning = undefined
    for (const family of this.#options.families) this.#waiting.add(family)
  }

  /** Removes nothing from now on. Resolves when the current removal has ended. */
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
