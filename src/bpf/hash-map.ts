// A map in the kernel from keys to values, for programs to look things up in.

import { Buffer } from 'node:buffer'
import { KernelError } from '../lib/errors.ts'
import { type Bytes, asBytes } from '../lib/ip.ts'
import type { Steps } from '../lib/steps.ts'
import { lastErrno, mustCall } from '../system/libc.ts'
import { Attributes, bpf, memoryOf, tryBpf } from './call.ts'
import { BPF_F_NO_PREALLOC, COMMAND, MAP_TYPE } from './uapi.ts'

export interface HashMapOptions {
  /** At most 15 characters, as `bpftool map` shows it. */
  readonly name: string
  readonly keyLength: number
  readonly valueLength: number
  readonly capacity: number
  /**
   * Whether the kernel takes memory for each element when it comes, or for all of them at once. The first takes a program
   * that adds and deletes elements some microseconds for each. `of the least used`: all at once, and where there is none left, a
   * new element takes that of one that was not used for long.
   */
  readonly memory: 'as needed' | 'at once' | 'of the least used'
}

/** Elements of one system call: others have their turn after some of them. */
const PIECE = 4096

/** Where the command for many elements at once has its attributes. */
const BATCH = { token: 0, nextToken: 8, keys: 16, values: 24, count: 32, map: 36 } as const

export class HashMap {
  readonly fd: number
  readonly options: HashMapOptions

  constructor(options: HashMapOptions) {
    const { name, keyLength, valueLength, capacity, memory } = options
    const attributes = new Attributes()
      .number(0, memory === 'of the least used' ? MAP_TYPE.recentHash : MAP_TYPE.hash)
      .number(4, keyLength)
      .number(8, valueLength)
      .number(12, capacity)
      .number(16, memory === 'as needed' ? BPF_F_NO_PREALLOC : 0)
      .name(28, name)
    this.fd = bpf('create a BPF map', COMMAND.createMap, attributes)
    this.options = options
  }

  /** Sets elements in their order, each one atomically. False: there is no room for all of them. */
  *put(elements: readonly (readonly [key: Bytes, value: Bytes])[]): Steps<boolean> {
    for (let start = 0; start < elements.length; start += PIECE) {
      if (start > 0) yield
      const piece = elements.slice(start, start + PIECE)
      const keys = memoryOf(asBytes(piece.map(([key]) => key).join('')))
      const values = memoryOf(asBytes(piece.map(([, value]) => value).join('')))
      const attributes = this.#batch(keys, piece.length).pointer(BATCH.values, values)
      if (tryBpf(COMMAND.updateBatch, attributes) === 0) continue
      const errno = lastErrno()
      if (errno === 'E2BIG') return false
      throw new KernelError('set elements of a BPF map', errno)
    }
    return true
  }

  /** Those that are not there are left out. */
  *delete(keys: readonly Bytes[]): Steps<void> {
    for (let start = 0; start < keys.length;) {
      if (start > 0) yield
      const piece = keys.slice(start, start + PIECE)
      const attributes = this.#batch(memoryOf(asBytes(piece.join(''))), piece.length)
      if (tryBpf(COMMAND.deleteBatch, attributes) === 0) {
        start += piece.length
        continue
      }
      const errno = lastErrno()
      if (errno !== 'ENOENT') throw new KernelError('delete elements of a BPF map', errno)
      // It says how many it had deleted when it met one that is not there.
      start += attributes.bytes.readUInt32LE(BATCH.count) + 1
    }
  }

  /** Another map with the same elements, and room for more. */
  *grown(capacity: number): Steps<HashMap> {
    const { keyLength, valueLength } = this.options
    const other = new HashMap({ ...this.options, capacity })
    const keys = Buffer.alloc(PIECE * keyLength)
    const values = Buffer.alloc(PIECE * valueLength)
    try {
      yield* this.#read(keys, values, (count) => {
        bpf('copy a BPF map', COMMAND.updateBatch, other.#batch(keys, count).pointer(BATCH.values, values))
      })
      return other
    } catch (error) {
      other.close()
      throw error
    }
  }

  /** What it has. What comes or goes meanwhile may be missing. */
  *elements(): Steps<[key: Bytes, value: Bytes][]> {
    const { keyLength, valueLength } = this.options
    const keys = Buffer.alloc(PIECE * keyLength)
    const values = Buffer.alloc(PIECE * valueLength)
    const elements: [Bytes, Bytes][] = []
    const part = (from: Buffer, length: number, i: number) =>
      asBytes(from.toString('latin1', i * length, (i + 1) * length))
    yield* this.#read(keys, values, (count) => {
      for (let i = 0; i < count; i++) elements.push([part(keys, keyLength, i), part(values, valueLength, i)])
    })
    return elements
  }

  /** Reads all into the same memory, piece by piece. */
  *#read(keys: Buffer, values: Buffer, take: (count: number) => void): Steps<void> {
    const token = Buffer.alloc(8)
    for (let isFirst = true, isDone = false; !isDone; isFirst = false) {
      const attributes = this.#batch(keys, PIECE).pointer(BATCH.values, values).pointer(BATCH.nextToken, token)
      if (!isFirst) attributes.pointer(BATCH.token, token)
      isDone = tryBpf(COMMAND.lookUpBatch, attributes) < 0
      // ENOENT: those were the last.
      if (isDone && lastErrno() !== 'ENOENT') throw new KernelError('read a BPF map', lastErrno())
      const count = attributes.bytes.readUInt32LE(BATCH.count)
      if (count > 0) take(count)
      yield
    }
  }

  close(): void {
    mustCall('close a BPF map', 'close', this.fd)
  }

  #batch(keys: Uint8Array, count: number): Attributes {
    return new Attributes().pointer(BATCH.keys, keys).number(BATCH.count, count).number(BATCH.map, this.fd)
  }
}
