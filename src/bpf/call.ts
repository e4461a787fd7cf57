// The system call bpf().

import { Buffer } from 'node:buffer'
import { KernelError } from '../lib/errors.ts'
import type { Bytes } from '../lib/ip.ts'
import { addressOf, lastErrno, tryCall } from '../system/libc.ts'
import { BPF_CALL, type COMMAND } from './uapi.ts'

type Command = (typeof COMMAND)[keyof typeof COMMAND]

/** Longer than the attributes of any command that is used here. What follows them is zero, and left alone. */
const ATTRIBUTES_LENGTH = 128

/** Attributes of one command, as its member of union bpf_attr has them. Memory that they point to stays while they do. */
export class Attributes {
  readonly bytes = Buffer.alloc(ATTRIBUTES_LENGTH)
  readonly #pointedTo: Uint8Array[] = []

  number(offset: number, value: number): this {
    this.bytes.writeUInt32LE(value, offset)
    return this
  }

  /** At most 15 characters. */
  name(offset: number, value: string): this {
    this.bytes.write(value, offset, 'latin1')
    return this
  }

  pointer(offset: number, memory: Uint8Array): this {
    this.#pointedTo.push(memory)
    this.bytes.writeBigUInt64LE(addressOf(memory), offset)
    return this
  }
}

/** Does a command; what it returns is mostly a descriptor. Throws a KernelError with what `explain` says to it. */
export function bpf(op: string, command: Command, attributes: Attributes, explain?: () => string | undefined): number {
  const result = tryBpf(command, attributes)
  if (result < 0) throw new KernelError(op, lastErrno(), explain?.())
  return result
}

/** The same, and -1 is left to the caller. */
export function tryBpf(command: Command, { bytes }: Attributes): number {
  const number = BPF_CALL[process.arch]
  if (number === undefined) throw new KernelError('use BPF', 'ENOSYS', `not known for ${process.arch}`)
  if (!isLimitRaised) raiseLimit()
  return tryCall('syscall', number, command, bytes, bytes.length)
}

let isLimitRaised = false

/** Kernels before 5.11 take maps for memory that the process has locked. Whoever may not raise that limit meets it. */
function raiseLimit(): void {
  const RLIMIT_MEMLOCK = 8
  const infinity = 0xffff_ffff_ffff_ffffn
  isLimitRaised = true
  tryCall('prlimit', 0, RLIMIT_MEMLOCK, BigUint64Array.of(infinity, infinity), null)
}

export function memoryOf(bytes: Bytes): Buffer {
  return Buffer.from(bytes, 'latin1')
}
