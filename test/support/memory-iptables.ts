// The iptables of a machine, in memory: what iptables-save would print, and what iptables-restore would do.

import type { IptablesDriver } from '../../src/modes/iptables/programmer.ts'
import { applyScript, ScriptError } from './apply-script.ts'
import { RestoreError } from '../../src/iptables/restore-error.ts'
import type { Backend } from '../../src/iptables/script.ts'
import type { Tables } from '../../src/iptables/types.ts'

export class MemoryIptables implements IptablesDriver {
  tables: Tables
  readonly backend: Backend
  /** Every text that was restored or refused. */
  readonly texts: string[] = []
  /** Sections that contain this are refused, and like iptables-legacy we only say that the end of the section is. */
  refuses: { test(section: string): boolean } | undefined
  /** What is said then. */
  refusal = 'the kernel refuses'

  constructor(backend: Backend = 'nft', tables: Tables = new Map()) {
    this.backend = backend
    this.tables = tables
  }

  read(): Promise<Tables> {
    return Promise.resolve(this.tables)
  }

  async restore(pieces: Iterable<string>): Promise<void> {
    const text = [...pieces].join('')
    if (text === '') return
    this.texts.push(text)
    const refused = text.split(/(?<=COMMIT\n)/).findIndex((section) => this.refuses?.test(section) === true)
    const allowed =
      refused < 0
        ? text
        : text
            .split(/(?<=COMMIT\n)/)
            .slice(0, refused)
            .join('')
    try {
      this.tables = applyScript(this.tables, allowed)
    } catch (error) {
      if (!(error instanceof ScriptError)) throw error
      this.tables = error.tables
      throw new RestoreError(error.message, error.line)
    }
    if (refused >= 0) throw new RestoreError(this.refusal, undefined)
  }

  close(): void {}
}
