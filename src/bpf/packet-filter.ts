// Programs of classic BPF that the kernel runs for each packet, or datagram, that comes for a socket. linux/filter.h

import { mustCall, tryCall } from '../system/libc.ts'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { Attributes } from './call.ts'

const SOL_SOCKET = 1
const SO_ATTACH_FILTER = 26
const SO_DETACH_FILTER = 27

const LOAD_WORD = 0x20
const JUMP_IF_EQUAL = 0x15
const RETURN = 0x06
const PASS = 0xffffffff
const DROP = 0

interface Instruction {
  readonly code: number
  readonly value: number
  /** How many instructions a jump skips when its condition holds. */
  readonly skip?: number
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

/** BPF loads words in network byte order; the port is written in the order of the machine. */
function asLoaded(port: number): number {
  const view = new DataView(new ArrayBuffer(4))
  view.setUint32(0, port, LITTLE_ENDIAN)
  return view.getUint32(0)
}

function attachFilter(fd: number, instructions: readonly Instruction[]): void {
  // struct sock_filter: code (2 bytes), how many to skip if true and if false (1 each), value (4).
  const program = new DataView(new ArrayBuffer(8 * instructions.length))
  for (const [i, { code, value, skip = 0 }] of instructions.entries()) {
    program.setUint16(8 * i, code, LITTLE_ENDIAN)
    program.setUint8(8 * i + 2, skip)
    program.setUint32(8 * i + 4, value, LITTLE_ENDIAN)
  }
  // struct sock_fprog: how many, and where.
  const { bytes } = new Attributes().number(0, instructions.length).pointer(8, new Uint8Array(program.buffer))
  mustCall('attach a filter to a socket', 'setsockopt', fd, SOL_SOCKET, SO_ATTACH_FILTER, bytes, 16)
}
