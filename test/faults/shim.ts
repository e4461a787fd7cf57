// Faults of the system calls of one process, switched on and off while it runs: shim.c, made with gcc.

import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'

/** What can fail, in the order of shim.c. */
const CALLS = [
  'netlink socket',
  'netlink send',
  'netlink receive',
  'fork',
  'epoll_ctl',
  'epoll_wait',
  'xtables replace',
  'conntrack send',
  'affinity send',
  'retry table send',
  'bpf',
] as const

export type FaultyCall = (typeof CALLS)[number]
export type Errno = keyof typeof constants.errno

const HEADER = 16
const RULE = 16

export class FaultShim implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'kube-proxy-faults-'))
  readonly #file: number

  constructor() {
    const source = join(import.meta.dirname, 'shim.c')
    execFileSync('gcc', ['-shared', '-fPIC', '-O2', '-o', join(this.#folder, 'shim.so'), source, '-ldl'])
    this.#file = openSync(join(this.#folder, 'faults'), 'w+')
    writeSync(this.#file, Buffer.alloc(4096))
  }

  /** For the process that is to have faults. */
  get env(): NodeJS.ProcessEnv {
    const { LD_PRELOAD: before, ...rest } = process.env
    const library = join(this.#folder, 'shim.so')
    return {
      ...rest,
      LD_PRELOAD: before === undefined ? library : `${library}:${before}`,
      FAULTS_FILE: join(this.#folder, 'faults'),
    }
  }

  /** From now on the call fails: so many times, or until heal(). */
  fail(call: FaultyCall, errno: Errno, times = -1): void {
    const rule = Buffer.alloc(RULE)
    rule.writeInt32LE(constants.errno[errno], 0)
    rule.writeInt32LE(times, 4)
    writeSync(this.#file, rule, 0, RULE, offsetOf(call))
  }

  heal(): void {
    for (const call of CALLS) writeSync(this.#file, Buffer.alloc(8), 0, 8, offsetOf(call))
  }

  /** How many calls have failed since fail(). */
  hits(call: FaultyCall): number {
    const bytes = Buffer.alloc(8)
    readSync(this.#file, bytes, 0, 8, offsetOf(call) + 8)
    return Number(bytes.readBigInt64LE())
  }

  /** How far the wall clock of the process is ahead of the machine's. */
  shiftClock(hours: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(hours) * 3_600_000_000_000n)
    writeSync(this.#file, bytes, 0, 8, 0)
  }

  [Symbol.dispose](): void {
    closeSync(this.#file)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function offsetOf(call: FaultyCall): number {
  return HEADER + CALLS.indexOf(call) * RULE
}
