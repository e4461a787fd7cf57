// Sockets, system calls and settings of a real kernel.

import { spawn, spawnSync } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { errnoName, mustCall } from '../../src/system/libc.ts'
import { NetlinkSocket } from '../../src/netlink/socket.ts'
import { enterNetwork, unshareNetwork } from '../../src/system/netns.ts'
import { NETLINK_ROUTE } from '../../src/netlink/uapi/netlink.ts'
import { Writer } from '../../src/netlink/writer.ts'
import { errorOf } from '../support/kernel-error.ts'
import { isRoot } from '../support/nft.ts'

interface Report {
  readonly sharedObjects: readonly string[]
}

const currentNetwork = () => readlinkSync('/proc/thread-self/ns/net')

describe('libc', () => {
  it('loads koffi with the first call, not when the program starts', () => {
    const isLoaded = () =>
      (process.report.getReport() as Report).sharedObjects.some((path) => path.endsWith('koffi.node'))
    expect(isLoaded()).toBe(false)
    errorOf(() => mustCall('close nothing', 'close', -1))
    expect(isLoaded()).toBe(true)
  })

  it('mustCall() throws what was attempted and why it failed', () => {
    const error = errorOf(() => mustCall('close nothing', 'close', -1))
    expect([error.message, error.errno]).toEqual(['Cannot close nothing: EBADF', 'EBADF'])
  })

  it('errnoName() gives the usual one of two names', () => {
    expect([2, 11, 95, 105, 99999].map(errnoName)).toEqual(['ENOENT', 'EAGAIN', 'EOPNOTSUPP', 'ENOBUFS', 'errno 99999'])
  })
})

describe.skipIf(!isRoot)('NetlinkSocket (needs root)', () => {
  beforeAll(() => {
    unshareNetwork()
  })

  it('has a port of its own', () => {
    const [a, b] = [new NetlinkSocket(NETLINK_ROUTE), new NetlinkSocket(NETLINK_ROUTE)]
    expect(a.port).not.toBe(0)
    expect(a.port).not.toBe(b.port)
    a.close()
    b.close()
    a.close()
  })

  it('receive() gives undefined when polled and nothing is there', () => {
    const socket = new NetlinkSocket(NETLINK_ROUTE)
    expect(socket.receive('poll')).toBeUndefined()
    socket.close()
  })

  it('send() takes a datagram far larger than the default buffer', () => {
    const socket = new NetlinkSocket(NETLINK_ROUTE)
    const writer = new Writer()
    // Messages that do nothing.
    while (writer.length < 8 << 20) {
      writer.beginMessage(1, 0)
      writer.endMessage()
    }
    expect(() => socket.send(writer.written())).not.toThrow()
    socket.close()
  })

  it('receive() passes over datagrams that another process sent', () => {
    const socket = new NetlinkSocket(NETLINK_ROUTE)
    const send = `socket(S, 16, 3, 0) or die; send(S, "x" x 32, 0, pack("SSLL", 16, 0, ${socket.port}, 0)) == 32 or die`
    expect(spawnSync('perl', ['-e', send]).status).toBe(0)
    expect(socket.receive('poll')).toBeUndefined()
    socket.close()
  })

  it('says why it cannot be opened', () => {
    const noSuchProtocol = 31
    expect(errorOf(() => new NetlinkSocket(noSuchProtocol)).message).toBe(
      'Cannot open a netlink socket: EPROTONOSUPPORT',
    )
  })
})

describe.skipIf(!isRoot)('network namespaces (need root)', () => {
  it('unshareNetwork() puts this thread and the programs that it starts in a new one', () => {
    const before = currentNetwork()
    unshareNetwork()
    const after = currentNetwork()
    expect(after).not.toBe(before)
    expect(spawnSync('readlink', ['/proc/self/ns/net'], { encoding: 'utf8' }).stdout.trim()).toBe(after)
  })

  it('enterNetwork() goes to the one at a path', () => {
    const child = spawn('sleep', ['60'])
    const elsewhere = currentNetwork()
    unshareNetwork()
    expect(currentNetwork()).not.toBe(elsewhere)
    enterNetwork(`/proc/${child.pid}/ns/net`)
    expect(currentNetwork()).toBe(elsewhere)
    child.kill()
    expect(errorOf(() => enterNetwork('/run/netns/no-such-node')).message).toBe(
      'Cannot open network namespace /run/netns/no-such-node: ENOENT',
    )
  })
})
