import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatIp, type Family, bytesOf } from '../../lib/ip.ts'
import type { Destination, IpvsOp, VirtualServer } from '../types.ts'
import { messagesOf } from '../../netlink/message.ts'
import { Writer } from '../../netlink/writer.ts'
import { decodeDestination, decodeServer, writeOp } from './messages.ts'

const FAMILY_ID = 30

const arbitraryAddress = (family: Family) =>
  fc
    .uint8Array({ minLength: family === 4 ? 4 : 16, maxLength: family === 4 ? 4 : 16 })
    .map((bytes) => formatIp(bytesOf(...bytes)))
const port = fc.integer({ min: 1, max: 65535 })

const arbitraryServer: fc.Arbitrary<VirtualServer> = fc.constantFrom<Family>(4, 6).chain((family) =>
  fc.record({
    family: fc.constant(family),
    protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
    address: arbitraryAddress(family),
    port,
    scheduler: fc.constantFrom('rr', 'wlc', 'lblcr'),
    schedulerFlags: fc.constantFrom(0, 0x08, 0x10, 0x38),
    persistenceSeconds: fc.option(fc.integer({ min: 1, max: 86400 }), { nil: undefined }),
  }),
)
const arbitraryDestination = (family: Family): fc.Arbitrary<Destination> =>
  fc.record({ address: arbitraryAddress(family), port, weight: fc.integer({ min: 0, max: 65535 }) })

function written(op: IpvsOp) {
  const writer = new Writer()
  writeOp(writer, FAMILY_ID, op, false)
  const [message, ...rest] = messagesOf(writer.written())
  expect(rest).toEqual([])
  expect(message?.type).toBe(FAMILY_ID)
  return message!
}

describe('writeOp()', () => {
  test('writes servers that are read back as they are', () => {
    fc.assert(
      fc.property(arbitraryServer, (server) => {
        expect(decodeServer(written({ op: 'addServer', server }))).toEqual(server)
      }),
    )
  })

  test('writes destinations that are read back as they are', () => {
    const both = arbitraryServer.chain((server) =>
      fc.record({ server: fc.constant(server), destination: arbitraryDestination(server.family) }),
    )
    fc.assert(
      fc.property(both, ({ server, destination }) => {
        const message = written({ op: 'addDestination', server, destination })
        expect(decodeDestination(message, server.family)).toMatchObject({ ...destination, isNat: true })
      }),
    )
  })

  test('writes a server as the headers of the kernel lay it out', () => {
    const server: VirtualServer = {
      family: 4,
      protocol: 'TCP',
      address: '10.0.0.1',
      port: 80,
      scheduler: 'rr',
      schedulerFlags: 0,
      persistenceSeconds: undefined,
    }
    const writer = new Writer()
    writeOp(writer, FAMILY_ID, { op: 'addServer', server }, true)
    const hex = Buffer.from(writer.written()).toString('hex')
    // struct nlmsghdr (length, type, REQUEST | ACK, sequence, port), struct genlmsghdr (command 1, version 1).
    expect(hex.slice(0, 40)).toBe('680000001e000500000000000000000001010000')
    const attributes = [
      '54000180', // IPVS_CMD_ATTR_SERVICE, nested
      '0600010002000000', // AF_INET
      '0600020006000000', // IPPROTO_TCP
      '140003000a000001000000000000000000000000', // union nf_inet_addr
      '0600040000500000', // htons(80)
      '0700060072720000', // "rr"
      '0c00070000000000ffffffff', // struct ip_vs_flags
      '0800080000000000', // timeout
      '08000900ffffffff', // netmask
    ]
    expect(hex.slice(40)).toBe(attributes.join(''))
  })
})
