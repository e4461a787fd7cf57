// Sequence numbers have 32 bits, and a socket may live for more messages than that.

import { asBytes } from '../../src/lib/ip.ts'
import { beforeAll, describe, expect, it } from 'vitest'
import { NetlinkClient } from '../../src/netlink/client.ts'
import { NetlinkSocket } from '../../src/netlink/socket.ts'
import { NETLINK_NETFILTER, NETLINK_ROUTE, NLM_F_DUMP, NLM_F_REQUEST } from '../../src/netlink/uapi/netlink.ts'
import { Writer } from '../../src/netlink/writer.ts'
import { writeBatch } from '../../src/nftables/bytes/batch.ts'
import type { Op } from '../../src/nftables/types.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot } from '../support/nft.ts'

const RTM_GETLINK = 18
const NEARLY_ALL = 2 ** 32 - 8

describe.skipIf(!isRoot)('NetlinkClient after 2^32 messages (needs root)', () => {
  beforeAll(() => {
    unshareNetwork()
  })

  it('is answered: transactions', () => {
    const socket = new NetlinkSocket(NETLINK_NETFILTER)
    const client = new NetlinkClient(socket.exchange, NEARLY_ALL)
    const apply = (...ops: readonly Op[]) => {
      const writer = new Writer()
      const messages = writeBatch(writer, { family: 'ip', table: 't' }, ops)
      const failed = client.batch(writer.written())
      return failed.map(({ sequence, errno }) => ({ fromEnd: messages.length - sequence, errno }))
    }
    for (let i = 0; i < 4; i++) {
      expect(apply({ op: 'addTable', comment: undefined })).toEqual([{ fromEnd: 2, errno: 0 }])
      // The message that failed is named, on whatever side of the wrap it is: ENOENT.
      expect(apply({ op: 'deleteTable' }, { op: 'deleteSet', name: 's' })).toContainEqual({ fromEnd: 2, errno: 2 })
    }
    socket.close()
  })

  it('is answered: lists', async () => {
    const socket = new NetlinkSocket(NETLINK_ROUTE)
    const client = new NetlinkClient(socket.exchange, NEARLY_ALL)
    const writer = new Writer()
    writer.beginMessage(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP)
    writer.raw(asBytes('\0'.repeat(16)))
    writer.endMessage()
    for (let i = 0; i < 8; i++) {
      const links = client.dump('list links', writer.written(), ({ type }) => type)
      let inPieces = 0
      await client.dumpInPieces('list links', writer.written(), () => inPieces++)
      expect(links.length).toBeGreaterThan(0)
      expect(inPieces).toBe(links.length)
    }
    socket.close()
  })
})
