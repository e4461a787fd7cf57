// The kernel has no room in epoll. Its limit is one for the whole machine, so this needs a machine of its own.

import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { lastErrno, mustCall, tryCall } from '../../src/system/libc.ts'
import { openListener, openSocket } from '../../src/data-path/sockets.ts'
import { encodeAddress } from '../../src/system/socket-address.ts'
import { InlineDataPath } from '../support/inline-data-path.ts'

const LIMIT = '/proc/sys/fs/epoll/max_user_watches'
const LOOPBACK = '127.0.0.1'
const before = readFileSync(LIMIT, 'utf8')

afterEach(() => writeFileSync(LIMIT, before))

function dial(port: number): number {
  const fd = openSocket(4, 'TCP')
  const to = encodeAddress(LOOPBACK, port)
  tryCall('connect', fd, to, to.length)
  return fd
}

/** What a client hears at once: a text, or the name of the error. */
function hear(fd: number): string {
  const bytes = new Uint8Array(100)
  const length = tryCall('recv', fd, bytes, bytes.length, 0)
  return length === -1 ? lastErrno() : Buffer.from(bytes.subarray(0, length)).toString()
}

/** Nothing else of this process may run meanwhile: Node's own event loop aborts when epoll refuses it. */
test('a client that finds no room in epoll is reset, and the next is served', () => {
  using path = new InlineDataPath()
  const backend = openListener({ family: 4, protocol: 'TCP', address: LOOPBACK, port: 0 })!
  const backends = [{ ip: LOOPBACK, port: backend.port }]
  const { port, pool } = path.open({ backends, affinitySeconds: undefined })
  const turn = () => {
    for (let i = 0; i < 5; i++) path.loop(0).turn(10)
  }
  const turnedAway = dial(port)
  writeFileSync(LIMIT, '0')
  turn()
  writeFileSync(LIMIT, before)
  expect(hear(turnedAway)).toBe('ECONNRESET')
  expect(path.warnings).toEqual([expect.stringMatching(/ENOSPC .*max_user_watches/)])
  expect(pool.totals()).toMatchObject({ active: 0, unserved: 1, failures: 0 })

  const served = dial(port)
  turn()
  const first = mustCall('accept', 'accept4', backend.fd, null, null, 0)
  const second = mustCall('accept', 'accept4', backend.fd, null, null, 0)
  mustCall('send', 'send', second, Buffer.from('hello'), 5, 0)
  turn()
  expect(hear(served)).toBe('hello')
  for (const fd of [turnedAway, served, first, second, backend.fd]) tryCall('close', fd)
})
