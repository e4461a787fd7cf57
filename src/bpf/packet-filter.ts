// Programs of classic BPF that the kernel runs for each packet, or datagram, that comes for a socket. linux/filter.h

import { mustCall, tryCall } from '../system/libc.ts'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { Attributes } from './call.ts'

const SOL_SOCKET = 1
const SO_ATTACH_FILTER = 26
const SO_DETACH_FILTER = 27

const LOAD_WORD = 0x20
const LOAD_BYTE = 0x30
/** From behind X. */
const LOAD_WORD_AT = 0x40
const LOAD_BYTE_AT = 0x50
const LOAD_NUMBER = 0x00
const LOAD_X = 0x01
const COPY_TO_X = 0x07
const JUMP_IF_EQUAL = 0x15
const JUMP_IF_ANY_BIT = 0x45
const RETURN = 0x06
const PASS = 0xffffffff
const DROP = 0

interface Instruction {
  readonly code: number
  readonly value: number
  /** How many instructions a jump skips when its condition holds. */
  readonly skip?: number
  /** And when it does not. */
  readonly otherwise?: number
}

/** Drops all that comes for the socket, or takes that back. */
export function dropPackets(fd: number, drops: boolean): void {
  if (drops) attachFilter(fd, [{ code: RETURN, value: DROP }])
  // It fails where there is no filter.
  else tryCall('setsockopt', fd, SOL_SOCKET, SO_DETACH_FILTER, Uint32Array.of(0), 4)
}

/** Where struct nlmsghdr has the port of the socket that made the request. */
const NLMSG_PID_OFFSET = 12

/** Drops netlink notifications of requests from these ports. Looks at the first message of a datagram. */
export function ignorePorts(fd: number, ports: readonly number[]): void {
  attachFilter(fd, [
    { code: LOAD_WORD, value: NLMSG_PID_OFFSET },
    ...ports.map((port, i) => ({ code: JUMP_IF_EQUAL, value: asLoaded(port), skip: ports.length - i })),
    { code: RETURN, value: PASS },
    { code: RETURN, value: DROP },
  ])
}

// Of linux/filter.h: loading from here searches the datagram, from A on, for the attribute of type X, and leaves its place in A.
// The second searches in the attribute at A. 0: there is none.
const FIND_ATTRIBUTE = 0xfffff000 + 12
const FIND_NESTED = 0xfffff000 + 16

/** struct nlmsghdr, where its type and flags are, and struct nfgenmsg behind it. */
const NLMSG_TYPE_OFFSET = 4
const NLMSG_FLAGS_OFFSET = 6
const ATTRIBUTES_OFFSET = 20

/** What filterFlowEvents() needs to know of messages about connections. */
export interface FlowEventNumbers {
  /** The lower byte of the type of a message that tells of an end. */
  readonly destroyed: number
  /** The second byte of the flags of a message that tells of a beginning. */
  readonly createFlag: number
  /** Attributes: the status, and the way to the state of TCP. */
  readonly status: number
  readonly tcpState: readonly [number, number, number]
  /** Only connections of which the status has this bit; absent: all. */
  readonly statusBit?: number | undefined
  /** States that end a connection: an update that says so passes. An end after `closed` has been reported already. */
  readonly closed: number
  readonly reset: number
}

/**
 * Of the notifications of the connection tracker, passes on those that begin or end a connection: most are about what is between,
 * and each costs a reader as much as the others.
 */
export function filterFlowEvents(fd: number, numbers: FlowEventNumbers): void {
  const { destroyed, createFlag, status, tcpState, statusBit, closed, reset } = numbers
  const lowerByte = (offset: number) => (LITTLE_ENDIAN ? offset : offset + 1)
  const upperByte = (offset: number) => (LITTLE_ENDIAN ? offset + 1 : offset)
  const program = new Program()
  if (statusBit !== undefined) {
    program.add(LOAD_NUMBER, ATTRIBUTES_OFFSET).add(LOAD_X, status).add(LOAD_WORD, FIND_ATTRIBUTE)
    program.jump(JUMP_IF_EQUAL, 0, 'drop').add(COPY_TO_X, 0).add(LOAD_WORD_AT, 4)
    program.jump(JUMP_IF_ANY_BIT, statusBit, undefined, 'drop')
  }
  program.add(LOAD_BYTE, upperByte(NLMSG_FLAGS_OFFSET)).jump(JUMP_IF_ANY_BIT, createFlag, 'pass')
  const [info, tcp, state] = tcpState
  program.add(LOAD_NUMBER, ATTRIBUTES_OFFSET).add(LOAD_X, info).add(LOAD_WORD, FIND_ATTRIBUTE)
  program.jump(JUMP_IF_EQUAL, 0, 'otherState')
  program.add(LOAD_X, tcp).add(LOAD_WORD, FIND_NESTED).jump(JUMP_IF_EQUAL, 0, 'otherState')
  program.add(LOAD_X, state).add(LOAD_WORD, FIND_NESTED).jump(JUMP_IF_EQUAL, 0, 'otherState')
  program.add(COPY_TO_X, 0).add(LOAD_BYTE_AT, 4)
  program.jump(JUMP_IF_EQUAL, reset, 'pass')
  program.jump(JUMP_IF_EQUAL, closed, undefined, 'otherState')
  program.add(LOAD_BYTE, lowerByte(NLMSG_TYPE_OFFSET)).jump(JUMP_IF_EQUAL, destroyed, 'drop', 'pass')
  program.label('otherState').add(LOAD_BYTE, lowerByte(NLMSG_TYPE_OFFSET))
  program.jump(JUMP_IF_EQUAL, destroyed, 'pass', 'drop')
  program.label('pass').add(RETURN, PASS).label('drop').add(RETURN, DROP)
  attachFilter(fd, program.instructions())
}

/** Instructions that jump forward to places with names. */
class Program {
  readonly #steps: { code: number; value: number; skipTo?: string | undefined; otherwise?: string | undefined }[] = []
  readonly #labels = new Map<string, number>()

  add(code: number, value: number): this {
    this.#steps.push({ code, value })
    return this
  }

  jump(code: number, value: number, skipTo: string | undefined, otherwise?: string): this {
    this.#steps.push({ code, value, skipTo, otherwise })
    return this
  }

  label(name: string): this {
    this.#labels.set(name, this.#steps.length)
    return this
  }

  instructions(): Instruction[] {
    const distance = (from: number, label: string | undefined) =>
      label === undefined ? 0 : this.#labels.get(label)! - from - 1
    return this.#steps.map(({ code, value, skipTo, otherwise }, i) => ({
      code,
      value,
      skip: distance(i, skipTo),
      otherwise: distance(i, otherwise),
    }))
  }
}

/** BPF loads words in network byte order; the port is written in the order of the machine. */
function asLoaded(port: number): number {
  const view = new DataView(new ArrayBuffer(4))
  view.setUint32(0, port, LITTLE_ENDIAN)
  return view.getUint32(0)
}

function attachFilter(fd: number, instructions: readonly Instruction[]): void {
  // struct sock_filter: code (2 bytes), how many to skip if true and if false (1 each), value (4).
  const program = new DataView(new ArrayBuffer(8 * instructions.length))
  for (const [i, { code, value, skip = 0, otherwise = 0 }] of instructions.entries()) {
    program.setUint16(8 * i, code, LITTLE_ENDIAN)
    program.setUint8(8 * i + 2, skip)
    program.setUint8(8 * i + 3, otherwise)
    program.setUint32(8 * i + 4, value, LITTLE_ENDIAN)
  }
  // struct sock_fprog: how many, and where.
  const { bytes } = new Attributes().number(0, instructions.length).pointer(8, new Uint8Array(program.buffer))
  mustCall('attach a filter to a socket', 'setsockopt', fd, SOL_SOCKET, SO_ATTACH_FILTER, bytes, 16)
}
