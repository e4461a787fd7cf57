// The kernel's own number of this thread's network namespace: no other one ever has it.

import { closeSync } from 'node:fs'
import { Buffer } from 'node:buffer'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { mustCall } from './libc.ts'
import { addressFamily } from './socket-address.ts'

const SOCK_DGRAM = 2
const SOL_SOCKET = 1
const SO_NETNS_COOKIE = 71

/** Needs Linux 5.14. */
export function readNetnsCookie(): bigint {
  const fd = mustCall('open a socket', 'socket', addressFamily(4), SOCK_DGRAM, 0)
  try {
    const cookie = Buffer.alloc(8)
    mustCall(
      'ask for the number of the network namespace (Linux 5.14)',
      'getsockopt',
      fd,
      SOL_SOCKET,
      SO_NETNS_COOKIE,
      cookie,
      Uint32Array.of(cookie.length),
    )
    return LITTLE_ENDIAN ? cookie.readBigUInt64LE() : cookie.readBigUInt64BE()
  } finally {
    closeSync(fd)
  }
}
