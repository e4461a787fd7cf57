// A queue in the kernel: programs put values in, the proxy takes them out.

import { Buffer } from 'node:buffer'
import { KernelError } from '../lib/errors.ts'
import { lastErrno, mustCall } from '../system/libc.ts'
import { Attributes, bpf, tryBpf } from './call.ts'
import { COMMAND, MAP_TYPE } from './uapi.ts'

export class Queue {
  readonly fd: number
  readonly #valueLength: number

  /** `name`: at most 15 characters. What comes while it is full is lost. */
  constructor(name: string, valueLength: number, capacity: number) {
    const attributes = new Attributes().number(0, MAP_TYPE.queue).number(8, valueLength).number(12, capacity)
    this.fd = bpf('create a BPF queue', COMMAND.createMap, attributes.name(28, name))
    this.#valueLength = valueLength
  }

  /** The oldest ones, at most so many. */
  take(most = Infinity): Buffer[] {
    const values: Buffer[] = []
    for (;;) {
      if (values.length === most) return values
      const value = Buffer.alloc(this.#valueLength)
      if (tryBpf(COMMAND.takeElement, new Attributes().number(0, this.fd).pointer(16, value)) < 0) break
      values.push(value)
    }
    const errno = lastErrno()
    if (errno !== 'ENOENT') throw new KernelError('read a BPF queue', errno)
    return values
  }

  close(): void {
    mustCall('close a BPF queue', 'close', this.fd)
  }
}
