// The kernel's own description of its types (BTF, Documentation/bpf/btf.rst): where members of structs are, and what values of
// enums are called. Programs that read the kernel's memory need both, and both differ from kernel to kernel.

import { readFileSync } from 'node:fs'

const KERNEL = '/sys/kernel/btf/vmlinux'

const MAGIC = 0xeb9f
const KIND = {
  int: 1,
  array: 3,
  struct: 4,
  union: 5,
  enum: 6,
  typedef: 8,
  volatile: 9,
  const: 10,
  function: 12,
  functionType: 13,
  variable: 14,
  section: 15,
  declarationTag: 17,
  typeTag: 18,
  enum64: 19,
} as const

const HEADER = 12
const MEMBER = 12

/** What follows the header of a type, in bytes for each of its `vlen` parts, or at all. */
const PART: Readonly<Record<number, number>> = {
  [KIND.struct]: MEMBER,
  [KIND.union]: MEMBER,
  [KIND.enum]: 8,
  [KIND.functionType]: 8,
  [KIND.section]: 12,
  [KIND.enum64]: 12,
}
const TAIL: Readonly<Record<number, number>> = {
  [KIND.int]: 4,
  [KIND.array]: 12,
  [KIND.variable]: 4,
  [KIND.declarationTag]: 4,
}

export class KernelTypes {
  readonly #bytes: Buffer
  readonly #strings: number
  /** Where each type begins, by its number. */
  readonly #types: number[] = [0]

  /** Throws where the kernel does not describe itself. */
  static read(): KernelTypes {
    return new KernelTypes(readFileSync(KERNEL))
  }

  constructor(bytes: Buffer) {
    if (bytes.length < 24 || bytes.readUInt16LE(0) !== MAGIC)
      throw new Error('Cannot read BTF: it has another beginning')
    this.#bytes = bytes
    const [header, types, typesLength, strings] = [4, 8, 12, 16].map((at) => bytes.readUInt32LE(at)) as [
      number,
      number,
      number,
      number,
    ]
    this.#strings = header + strings
    for (let at = header + types; at < header + types + typesLength; at += this.#lengthAt(at)) this.#types.push(at)
  }

  /** The place of a member in a struct, in bytes; `a.b` is b of the struct that a is. Undefined where there is none. */
  offsetOf(struct: string, path: string): number | undefined {
    let type = this.#named(KIND.struct, struct)
    let offset = 0
    for (const name of path.split('.')) {
      const found = type === undefined ? undefined : this.#member(type, name)
      if (found === undefined) return undefined
      offset += found.offset
      type = this.#plain(found.type)
    }
    return offset
  }

  /** The names of an enum, by value. */
  namesOf(name: string): ReadonlyMap<number, string> {
    const names = new Map<number, string>()
    const at = this.#named(KIND.enum, name)
    if (at === undefined) return names
    for (let i = 0; i < this.#count(at); i++) {
      const part = at + HEADER + i * 8
      names.set(this.#bytes.readUInt32LE(part + 4), this.#text(this.#bytes.readUInt32LE(part)))
    }
    return names
  }

  /** How many arguments a function type has, by the name of its typedef: they have no names there. */
  argumentCountOf(typedef: string): number | undefined {
    const at = this.#named(KIND.typedef, typedef)
    // typedef void (*name)(...)
    const pointer = at === undefined ? undefined : this.#types[this.#bytes.readUInt32LE(at + 8)]
    const type = pointer === undefined ? undefined : this.#types[this.#bytes.readUInt32LE(pointer + 8)]
    return type === undefined || this.#kind(type) !== KIND.functionType ? undefined : this.#count(type)
  }

  #named(kind: number, name: string): number | undefined {
    return this.#types.find(
      (at, i) => i > 0 && this.#kind(at) === kind && this.#text(this.#bytes.readUInt32LE(at)) === name,
    )
  }

  /** Also where it is in a struct or union without a name. */
  #member(at: number, name: string): { readonly offset: number; readonly type: number } | undefined {
    const areBitfields = this.#bytes.readUInt32LE(at + 4) >>> 31 === 1
    for (let i = 0; i < this.#count(at); i++) {
      const part = at + HEADER + i * MEMBER
      const own = this.#text(this.#bytes.readUInt32LE(part))
      const bits = this.#bytes.readUInt32LE(part + 8)
      const offset = (areBitfields ? bits & 0xffffff : bits) / 8
      const type = this.#bytes.readUInt32LE(part + 4)
      if (own === name) return { offset, type }
      const inner = own === '' ? this.#plain(type) : undefined
      const found = inner === undefined ? undefined : this.#member(inner, name)
      if (found !== undefined) return { offset: offset + found.offset, type: found.type }
    }
    return undefined
  }

  /** The struct or union behind names and qualifiers. */
  #plain(type: number): number | undefined {
    const at = this.#types[type]
    if (at === undefined || type === 0) return undefined
    const kind = this.#kind(at)
    if (kind === KIND.struct || kind === KIND.union) return at
    const isWrapper = ([KIND.typedef, KIND.volatile, KIND.const, KIND.typeTag] as readonly number[]).includes(kind)
    return isWrapper ? this.#plain(this.#bytes.readUInt32LE(at + 8)) : undefined
  }

  #kind(at: number): number {
    return (this.#bytes.readUInt32LE(at + 4) >>> 24) & 0x1f
  }

  #count(at: number): number {
    return this.#bytes.readUInt16LE(at + 4)
  }

  #lengthAt(at: number): number {
    const kind = this.#kind(at)
    return HEADER + (TAIL[kind] ?? 0) + (PART[kind] ?? 0) * (PART[kind] === undefined ? 0 : this.#count(at))
  }

  #text(offset: number): string {
    const start = this.#strings + offset
    return this.#bytes.toString('latin1', start, this.#bytes.indexOf(0, start))
  }
}
