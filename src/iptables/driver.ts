// iptables by its own programs: iptables-save and iptables-restore.

import type { Family } from '../lib/ip.ts'
import type { KeptText } from './kept-text.ts'
import { parseTables } from './parse.ts'
import { canWait, type IptablesPrograms, programName } from './programs.ts'
import { parseRestoreError, saysNoSuchChain } from './restore-error.ts'
import type { Backend } from './script.ts'
import type { TableName, Tables } from './types.ts'
import { describeProcess, lockHolder } from './lock.ts'
import { type ProgramResult, runProgram } from '../system/run-program.ts'

export interface IptablesOptions {
  readonly programs: IptablesPrograms
  readonly family: Family
  /** Called when another program holds the lock that we wait for, and after each wait in vain. */
  readonly onContention: (contention: Contention) => void
}

export interface Contention {
  /** Which process holds the lock, as far as this machine shows it. */
  readonly holder: string
  readonly waitedMs: number
}

/** How long iptables waits for the lock before it says so. Then we wait again. */
const WAIT_SECONDS = 5
/** After a minute the lock counts as never given back; the sync fails and is tried again later. */
const WAITS = 12

/** Processes of ours that run now, for any family. */
const ours = new Set<number>()

/** The last change of iptables-legacy, of any family: they take the same lock, so one begins when the other has ended. */
let lastOfLegacy: Promise<unknown> = Promise.resolve()

export class Iptables {
  readonly backend: Backend
  /** Processes that change rules for us right now, or did until just now. */
  readonly pids = new Set<number>()
  readonly #options: IptablesOptions

  constructor(options: IptablesOptions) {
    this.#options = options
    this.backend = options.programs.backend
  }

  /** Every table that there is, and none that there would be if we asked for it. */
  async read(): Promise<Tables> {
    const { programs, family } = this.#options
    const name = programName(programs, family, '-save')
    const result = await runProgram(name, [])
    if (result.code === 0) return parseTables(result.stdout)
    // A family that the kernel does not have.
    if (result.code === 'missing') return new Map()
    throw new Error(`Cannot read the tables: ${name} ${explain(result)}`)
  }

  /** Undefined when that is unknown: another program may hold the lock, or there is no memory to look. */
  async hasChain(table: TableName, chain: string): Promise<boolean | undefined> {
    const { programs, family } = this.#options
    const { code, stderr } = await runProgram(programName(programs, family, ''), [
      ...waitArgs(programs),
      '-t',
      table,
      '-S',
      chain,
    ])
    if (code === 0) return true
    return saysNoSuchChain(stderr) ? false : undefined
  }

  /** Whether rules are being changed for us. */
  get isBusy(): boolean {
    return this.pids.size > 0
  }

  /** The text may be made while it is taken; without any, nothing is done. Rejects with a RestoreError when it is refused. */
  restore(text: KeptText): Promise<void> {
    if (this.backend !== 'legacy') return this.#restore(text)
    const result = lastOfLegacy.then(() => this.#restore(text))
    lastOfLegacy = result.catch(() => {})
    return result
  }

  async #restore(text: KeptText): Promise<void> {
    const { programs, family, onContention } = this.#options
    const [first] = text
    if (first === undefined) return
    const name = programName(programs, family, '-restore')
    const args = [...waitArgs(programs), '--noflush', '--counters']
    const holder = this.backend === 'legacy' ? lockHolder() : undefined
    // For the other IP family, we may hold it ourselves.
    if (holder !== undefined && !ours.has(holder)) onContention({ holder: describeProcess(holder), waitedMs: 0 })
    for (let waits = 1; ; waits++) {
      const result = await this.#run(name, args, text)
      if (result.code === 0) return
      if (!isLockTimeout(result)) {
        if (result.code === 'missing') throw new Error(`Cannot change rules: ${name} ${explain(result)}`)
        throw parseRestoreError(result.stderr, text.soFar)
      }
      const waitedMs = waits * WAIT_SECONDS * 1000
      const keeper = lockHolder()
      onContention({ holder: keeper === undefined ? 'another program' : describeProcess(keeper), waitedMs })
      if (waits === WAITS) {
        throw new Error(`Cannot change rules: the xtables lock was not free within ${waitedMs / 1000} s`)
      }
    }
  }

  close(): void {}

  async #run(name: string, args: readonly string[], input: Iterable<string>): Promise<ProgramResult> {
    let started: number | undefined
    const onStart = (pid: number) => {
      started = pid
      this.pids.add(pid)
      ours.add(pid)
    }
    try {
      return await runProgram(name, args, { input, onStart })
    } finally {
      if (started !== undefined) this.#ended(started)
    }
  }

  #ended(pid: number): void {
    ours.delete(pid)
    // Notifications about what it did may still be on their way.
    setTimeout(() => this.pids.delete(pid), 1000).unref()
  }
}

function waitArgs(programs: IptablesPrograms): string[] {
  return canWait(programs) ? ['-w', String(WAIT_SECONDS)] : []
}

function isLockTimeout({ code, stderr }: ProgramResult): boolean {
  return code !== 0 && /holding the xtables lock/.test(stderr)
}

function explain({ code, stderr }: ProgramResult): string {
  return code === 'missing' ? 'is not installed' : `says: ${stderr.trim() || `exit code ${code}`}`
}
