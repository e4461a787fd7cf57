// A list of backends, all in one string.
//
// A cluster may have a million endpoints. As objects they cost a hundred bytes each, and each garbage collection visits them
// all; in a string they cost nine bytes, or 21 with IPv6. Objects are made when they are read.

import { Buffer } from 'node:buffer'
import { type Bytes, formatIp, asBytes, ipBytes } from '../lib/ip.ts'
import type { Balance } from './balance.ts'
import type { Backend } from './types.ts'
import { DEFAULT_WEIGHT } from './weights.ts'

/** A backend as a list keeps it. The address is bytes, the weight 0 to 65535. */
export interface BackendRecord {
  readonly address: Bytes
  readonly port: number
  readonly isLocal: boolean
  readonly mayBeLocal: boolean
  readonly weight: number
}

/** A record: the address, the port (2 bytes), these traits (1), the weight (2). Address and port identify a backend. */
const IS_LOCAL = 1
const MAY_BE_LOCAL = 2
const PORT_LENGTH = 2
const REST_LENGTH = 3

/** Records per comparison. */
const BLOCK = 64

export class BackendList implements Iterable<Backend> {
  static readonly none: BackendList = new BackendList(asBytes(''), 4)

  /** One record after the other. Two lists with the same records are the same. */
  readonly records: Bytes
  readonly recordLength: number
  /** Whether some weigh more than others. */
  readonly isWeighted: boolean
  /** How one of them is chosen. */
  readonly balance: Balance

  /** `records` as a {@link RecordWriter} writes them. */
  constructor(records: Bytes, addressLength: number, isWeighted = false, balance: Balance = 'random') {
    this.records = records
    this.recordLength = addressLength + PORT_LENGTH + REST_LENGTH
    this.isWeighted = isWeighted
    this.balance = balance
  }

  static of(backends: readonly Backend[], balance: Balance = 'random'): BackendList {
    const records = new RecordWriter(backends.length)
    for (const { ip, port, isLocal, mayBeLocal = false, weight = DEFAULT_WEIGHT } of backends) {
      records.add({ address: ipBytes(ip), port, isLocal, mayBeLocal, weight })
    }
    return records.list(balance)
  }

  get length(): number {
    return this.records.length / this.recordLength
  }

  *[Symbol.iterator](): Generator<Backend> {
    for (let i = 0; i < this.length; i++) yield this.#at(i)
  }

  map<T>(callback: (backend: Backend, index: number) => T): T[] {
    return Array.from(this, callback)
  }

  /** In JSON, a list of objects. */
  toJSON(): Backend[] {
    return [...this]
  }

  addressAt(index: number): Bytes {
    const start = index * this.recordLength
    return this.records.slice(start, start + this.recordLength - REST_LENGTH - PORT_LENGTH)
  }

  portAt(index: number): number {
    const at = (index + 1) * this.recordLength - REST_LENGTH - PORT_LENGTH
    return (this.records.charCodeAt(at) << 8) | this.records.charCodeAt(at + 1)
  }

  /** Whether it runs on this node, or may do so. */
  canBeLocalAt(index: number): boolean {
    return this.#traitsAt(index) !== 0
  }

  weightAt(index: number): number {
    const at = (index + 1) * this.recordLength - REST_LENGTH + 1
    return (this.records.charCodeAt(at) << 8) | this.records.charCodeAt(at + 1)
  }

  /** The record of a backend, for comparison. */
  recordAt(index: number): Bytes {
    return this.records.slice(index * this.recordLength, (index + 1) * this.recordLength)
  }

  allRecords(): Bytes[] {
    const all: Bytes[] = []
    for (let i = 0; i < this.length; i++) all.push(this.recordAt(i))
    return all
  }

  /** Where a record is; -1: nowhere. */
  placeOf(record: Bytes): number {
    return this.#find(record)
  }

  has(address: Bytes, port: number): boolean {
    return this.#find(asBytes(address + String.fromCharCode(port >> 8, port & 0xff))) >= 0
  }

  #find(beginning: Bytes): number {
    for (let at = this.records.indexOf(beginning); at >= 0; at = this.records.indexOf(beginning, at + 1)) {
      if (at % this.recordLength === 0) return at / this.recordLength
    }
    return -1
  }

  /** A list of these records, which are of the same family. */
  rearranged(records: Bytes): BackendList {
    return new BackendList(records, this.recordLength - PORT_LENGTH - REST_LENGTH, false, this.balance)
  }

  /** The indexes at which the other list has another address or port, or nothing. */
  placesUnlike(other: BackendList | undefined): number[] {
    const places: number[] = []
    for (let block = 0; block < this.length; block += BLOCK) {
      const [start, end] = [block * this.recordLength, (block + BLOCK) * this.recordLength]
      if (other !== undefined && this.records.slice(start, end) === other.records.slice(start, end)) continue
      const last = Math.min(this.length, block + BLOCK)
      for (let place = block; place < last; place++) {
        if (other === undefined || backendId(this.recordAt(place)) !== backendId(other.recordAt(place))) {
          places.push(place)
        }
      }
    }
    return places
  }

  #at(index: number): Backend {
    const ip = formatIp(this.addressAt(index))
    const port = this.portAt(index)
    const traits = this.#traitsAt(index)
    const weight = this.weightAt(index)
    const isLocal = (traits & IS_LOCAL) !== 0
    const mayBeLocal = (traits & MAY_BE_LOCAL) !== 0
    // Literals and no spreads: V8 would make a new shape for each spread.
    if (weight !== DEFAULT_WEIGHT)
      return mayBeLocal ? { ip, port, isLocal, mayBeLocal, weight } : { ip, port, isLocal, weight }
    return mayBeLocal ? { ip, port, isLocal, mayBeLocal } : { ip, port, isLocal }
  }

  #traitsAt(index: number): number {
    return this.records.charCodeAt((index + 1) * this.recordLength - REST_LENGTH)
  }
}

/** The identity of a backend: its address and port. */
export function backendId(record: Bytes): Bytes {
  return record.slice(0, -REST_LENGTH)
}

/** Puts a list of so many records together. */
export class RecordWriter {
  readonly #count: number
  #bytes = Buffer.alloc(0)
  #end = 0
  #firstWeight: number | undefined
  #isWeighted = false

  constructor(count: number) {
    this.#count = count
  }

  add({ address, port, isLocal, mayBeLocal, weight }: BackendRecord): void {
    if (this.#end === 0) {
      this.#bytes = Buffer.allocUnsafe(this.#count * (address.length + PORT_LENGTH + REST_LENGTH))
    }
    const bytes = this.#bytes
    let at = this.#end
    for (let i = 0; i < address.length; i++) bytes[at++] = address.charCodeAt(i)
    bytes[at++] = port >> 8
    bytes[at++] = port
    bytes[at++] = (isLocal ? IS_LOCAL : 0) | (mayBeLocal ? MAY_BE_LOCAL : 0)
    bytes[at++] = weight >> 8
    bytes[at++] = weight
    this.#firstWeight ??= weight
    if (weight !== this.#firstWeight) this.#isWeighted = true
    this.#end = at
  }

  /** The list, or `previous` if it is equal. */
  list(balance: Balance, previous?: BackendList): BackendList {
    if (this.#end === 0) return BackendList.none
    const records = this.#bytes.toString('latin1', 0, this.#end)
    if (previous?.records === records && previous.balance === balance) return previous
    const addressLength = this.#end / this.#count - PORT_LENGTH - REST_LENGTH
    return new BackendList(asBytes(records), addressLength, this.#isWeighted, balance)
  }
}
