// iptables by its own programs: iptables-save and iptables-restore.

import type { Family } from '../lib/ip.ts'
import { parseTable } from '../state/iptables/parse.ts'
import { canWait, type IptablesPrograms, programName } from '../state/iptables/programs.ts'
import { parseRestoreError } from '../state/iptables/restore-error.ts'
import type { Backend } from '../state/iptables/script.ts'
import type { Chains, TableName } from '../state/iptables/types.ts'
import { lockHolder } from './iptables-lock.ts'
import { type ProgramResult, runProgram } from './run-program.ts'

export interface IptablesOptions {
  readonly programs: IptablesPrograms
  readonly family: Family
  /** Told when another program holds the lock that we wait for, and after each wait in vain. */
  readonly onContention: (contention: Contention) => void
}

export interface Contention {
  /** Who holds the lock, as far as this machine tells. */
  readonly holder: string
  readonly waitedMs: number
}

/** How long iptables waits for the lock before it says so. Then we wait again. */
const WAIT_SECONDS = 5
/** After a minute the lock counts as never given back; the sync fails and is tried again later. */
const WAITS = 12

export class Iptables {
  readonly backend: Backend
  /** Processes that change rules for us right now, or did until just now. */
  readonly pids = new Set<number>()
  readonly #options: IptablesOptions

  constructor(options: IptablesOptions) {
    this.#options = options
    this.backend = options.programs.backend
  }

  /** Undefined when there is no such table yet. */
  async read(table: TableName): Promise<Chains | undefined> {
    const { programs, family } = this.#options
    const name = programName(programs, family, '-save')
    const result = await runProgram(name, ['-t', table])
    if (result.code === 0) return parseTable(result.stdout)
    throw new Error(`Cannot read table ${table}: ${name} ${explain(result)}`)
  }

  /** Rejects with a RestoreError when the text is refused. */
  async restore(text: string): Promise<void> {
    const { programs, family, onContention } = this.#options
    const name = programName(programs, family, '-restore')
    const args = ['--noflush', '--counters', ...(canWait(programs) ? ['-w', String(WAIT_SECONDS)] : [])]
    const holder = this.backend === 'legacy' ? lockHolder() : undefined
    if (holder !== undefined) onContention({ holder, waitedMs: 0 })
    for (let waits = 1; ; waits++) {
      const result = await this.#run(name, args, text)
      if (result.code === 0) return
      if (!isLockTimeout(result)) {
        if (result.code === 'missing') throw new Error(`Cannot change rules: ${name} ${explain(result)}`)
        throw parseRestoreError(result.stderr, text)
      }
      const waitedMs = waits * WAIT_SECONDS * 1000
      onContention({ holder: lockHolder() ?? 'another program', waitedMs })
      if (waits === WAITS) {
        throw new Error(`Cannot change rules: the xtables lock was not free within ${waitedMs / 1000} s`)
      }
    }
  }

  close(): void {}

  async #run(name: string, args: readonly string[], input: string): Promise<ProgramResult> {
    const result = await runProgram(name, args, { input, onStart: (pid) => this.pids.add(pid) })
    // Notifications about what it did may still be on their way.
    setTimeout(() => this.pids.delete(result.pid), 1000).unref()
    return result
  }
}

function isLockTimeout({ code, stderr }: ProgramResult): boolean {
  return code !== 0 && /holding the xtables lock/.test(stderr)
}

function explain({ code, stderr }: ProgramResult): string {
  return code === 'missing' ? 'is not installed' : `says: ${stderr.trim() || `exit code ${code}`}`
}
