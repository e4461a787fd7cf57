// Programs for the kernel's own machine (BPF, see Documentation/bpf/standardization), as lists of instructions with
// labels, and their bytes.

import { type Bytes, asBytes } from '../lib/ip.ts'
import { host16, host32 } from '../lib/endian.ts'

/** r0 is what a call returns, r1 to r5 are its arguments and are lost with it, r6 to r9 stay; r10 is the end of the stack. */
export type Register = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10

export const STACK: Register = 10

/** How many bytes are loaded or stored. */
export type Width = 2 | 4 | 8

/** An instruction, or two for a wide one: struct bpf_insn. A jump names its label. */
interface Instruction {
  readonly code: number
  readonly to?: Register
  readonly from?: Register
  readonly offset?: number
  readonly label?: string
  readonly value?: number
  /** The second half of a 64-bit value follows. */
  readonly isWide?: true
  /** That half; absent: 0. */
  readonly upper?: number
}

/** The next instruction can be jumped to. */
interface Label {
  readonly name: string
}

export type Step = Instruction | Label

/** The classes and sizes of include/uapi/linux/bpf.h, put together where they are used. */
const LOAD = { 2: 0x69, 4: 0x61, 8: 0x79 } as const
const STORE = { 2: 0x6b, 4: 0x63, 8: 0x7b } as const
const STORE_VALUE = { 2: 0x6a, 4: 0x62, 8: 0x7a } as const
/** Of 64 bits, and no other processor is in between. */
const ADD_TO_MEMORY = 0xdb
const LOAD_WIDE_VALUE = 0x18
const MOVE = 0xbf
const MOVE_VALUE = 0xb7
const ADD_VALUE = 0x07
const ADD = 0x0f
const AND_VALUE = 0x57
const SHIFT_LEFT_VALUE = 0x67
const MODULO_32 = 0x9c
const JUMP_EQUAL_VALUE = 0x15
const JUMP_EQUAL = 0x1d
const JUMP_UNEQUAL = 0x5d
const JUMP_LESS = 0xad
const JUMP_UNEQUAL_VALUE = 0x55
const JUMP = 0x05
const JUMP_EQUAL_VALUE_32 = 0x16
const JUMP_UNEQUAL_VALUE_32 = 0x56
const CALL = 0x85
const EXIT = 0x95

/** In the place of a register: the value is the descriptor of a map. */
const IS_MAP: Register = 1

export const label = (name: string): Step => ({ name })
export const move = (to: Register, from: Register): Step => ({ code: MOVE, to, from })
export const set = (to: Register, value: number): Step => ({ code: MOVE_VALUE, to, value })
export const add = (to: Register, value: number): Step => ({ code: ADD_VALUE, to, value })
export const addRegister = (to: Register, from: Register): Step => ({ code: ADD, to, from })
export const shiftLeft = (to: Register, bits: number): Step => ({ code: SHIFT_LEFT_VALUE, to, value: bits })
export const keepBits = (to: Register, value: number): Step => ({ code: AND_VALUE, to, value })
/** The rest of a division of 32-bit numbers. */
export const modulo = (to: Register, by: Register): Step => ({ code: MODULO_32, to, from: by })
export const call = (helper: number): Step => ({ code: CALL, value: helper })
export const exit = (): Step => ({ code: EXIT })

export function load(width: Width, to: Register, from: Register, offset: number): Step {
  return { code: LOAD[width], to, from, offset }
}

export function store(width: Width, to: Register, offset: number, from: Register): Step {
  return { code: STORE[width], to, from, offset }
}

export function storeValue(width: Width, to: Register, offset: number, value: number): Step {
  return { code: STORE_VALUE[width], to, offset, value }
}

/** Adds a register to 64 bits of memory. */
export function addTo(to: Register, offset: number, from: Register): Step {
  return { code: ADD_TO_MEMORY, to, from, offset }
}

export function loadMap(to: Register, descriptor: number): Step {
  return { code: LOAD_WIDE_VALUE, to, from: IS_MAP, value: descriptor, isWide: true }
}

/** Sets all 64 bits. */
export function setWide(to: Register, value: bigint): Step {
  const [lower, upper] = [Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n))]
  return { code: LOAD_WIDE_VALUE, to, value: lower, upper, isWide: true }
}

/** A pointer that a call returned is none. */
export const jumpIfNull = (register: Register, target: string): Step => {
  return { code: JUMP_EQUAL_VALUE, to: register, value: 0, label: target }
}

export const jumpUnlessNull = (register: Register, target: string): Step => {
  return { code: JUMP_UNEQUAL_VALUE, to: register, value: 0, label: target }
}

export const jump = (target: string): Step => ({ code: JUMP, label: target })

/** Compares the lower 32 bits. */
export const jumpIf = (register: Register, value: number, target: string): Step => {
  return { code: JUMP_EQUAL_VALUE_32, to: register, value, label: target }
}

/** Compares all 64 bits of two registers. */
export const jumpIfSame = (one: Register, other: Register, target: string): Step => {
  return { code: JUMP_EQUAL, to: one, from: other, label: target }
}

/** Compares all 64 bits of two registers, without a sign. */
export const jumpIfLess = (one: Register, other: Register, target: string): Step => {
  return { code: JUMP_LESS, to: one, from: other, label: target }
}

/** Compares all 64 bits of two registers. */
export const jumpUnlessSame = (one: Register, other: Register, target: string): Step => {
  return { code: JUMP_UNEQUAL, to: one, from: other, label: target }
}

/** Compares the lower 32 bits. */
export const jumpUnless = (register: Register, value: number, target: string): Step => {
  return { code: JUMP_UNEQUAL_VALUE_32, to: register, value, label: target }
}

/** The bytes of a program, and how many instructions they are. */
export function assemble(steps: readonly Step[]): { readonly bytes: Bytes; readonly count: number } {
  const places = new Map<string, number>()
  let count = 0
  for (const step of steps) {
    if ('name' in step) places.set(step.name, count)
    else count += lengthOf(step)
  }
  let bytes = ''
  let next = 0
  for (const step of steps) {
    if ('name' in step) continue
    next += lengthOf(step)
    bytes += encode(step, step.label === undefined ? (step.offset ?? 0) : distance(places, step.label, next))
  }
  return { bytes: asBytes(bytes), count }
}

function lengthOf({ isWide }: Instruction): number {
  return isWide === true ? 2 : 1
}

function distance(places: ReadonlyMap<string, number>, target: string, next: number): number {
  const place = places.get(target)
  if (place === undefined) throw new TypeError(`Cannot assemble a jump: there is no label ${JSON.stringify(target)}`)
  return place - next
}

function encode({ code, to = 0, from = 0, value = 0, isWide, upper = 0 }: Instruction, offset: number): Bytes {
  const bytes = String.fromCharCode(code, to | (from << 4)) + host16(offset) + host32(value)
  return isWide === true ? asBytes(bytes + '\0'.repeat(4) + host32(upper)) : asBytes(bytes)
}
