import { asBytes } from '../lib/ip.ts'
import { describe, expect, it } from 'vitest'
import { errorOf } from '../../test/support/kernel-error.ts'
import { KernelError } from '../lib/errors.ts'
import { messagesOf } from './message.ts'
import { NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP_INTR, NLM_F_MULTI, NLMSG_DONE, NLMSG_ERROR } from './uapi/netlink.ts'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { Writer } from './writer.ts'
import { type Exchange, NetlinkClient } from './client.ts'

interface Answer {
  readonly type: number
  readonly flags?: number
  /** Relative to the first message of the request. */
  readonly sequence?: number
  readonly errno?: number
  readonly extack?: string
  readonly content?: number
}

/** A kernel that answers each request with the next of these lists, each list in one datagram per answer. */
function answering(...lists: readonly Answer[][]): { client: NetlinkClient; requests: number[][] } {
  return answeringFrom(0, lists)
}

/** The same, after so many messages. */
function answeringFrom(sequence: number, lists: readonly Answer[][]): { client: NetlinkClient; requests: number[][] } {
  const requests: number[][] = []
  const exchange: Exchange = function* (request) {
    const sequences = [...messagesOf(request)].map(({ sequence }) => sequence)
    requests.push(sequences)
    for (const answer of lists[requests.length - 1] ?? []) yield encode(answer, sequences[0]!)
  }
  return { client: new NetlinkClient(exchange, sequence), requests }
}

function encode({ type, flags = 0, sequence = 0, errno, extack, content }: Answer, first: number): Uint8Array {
  const writer = new Writer()
  writer.beginMessage(type, extack === undefined ? flags : flags | NLM_F_CAPPED | NLM_F_ACK_TLVS)
  if (errno !== undefined) {
    writer.ne32(-errno)
    writer.ne32(16)
    writer.raw(asBytes('\0'.repeat(12)))
  }
  if (extack !== undefined) {
    writer.begin(1)
    writer.raw(asBytes(`${extack}\0`))
    writer.end()
  }
  if (content !== undefined) writer.ne32(content)
  writer.endMessage()
  writer.view.setUint32(8, first + sequence, LITTLE_ENDIAN)
  return writer.written()
}

function message(count = 1): Uint8Array {
  const writer = new Writer()
  for (let i = 0; i < count; i++) {
    writer.beginMessage(100, 0)
    writer.endMessage()
  }
  return writer.written()
}

const ack: Answer = { type: NLMSG_ERROR, errno: 0 }
const done: Answer = { type: NLMSG_DONE, flags: NLM_F_MULTI, content: 0 }
const item = (content: number, flags = 0): Answer => ({ type: 101, flags: NLM_F_MULTI | flags, content })
const contentOf = (answer: { view: DataView; start: number }) => answer.view.getUint32(answer.start, LITTLE_ENDIAN)

describe('NetlinkClient', () => {
  it('request() returns when it is acknowledged', () => {
    const { client } = answering([ack])
    expect(() => client.request('do it', message())).not.toThrow()
  })

  it('request() throws what the kernel says', () => {
    const { client } = answering([{ type: NLMSG_ERROR, errno: 2, extack: 'No such thing' }])
    const error = errorOf(() => client.request('delete the thing', message()))
    expect(error).toMatchObject({ op: 'delete the thing', errno: 'ENOENT', extack: 'No such thing' })
    expect(error.message).toBe('Cannot delete the thing: ENOENT (No such thing)')
  })

  it('passes over answers to earlier requests', () => {
    const { client } = answering([{ ...ack, sequence: -1, errno: 1 }, ack])
    expect(() => client.request('do it', message())).not.toThrow()
  })

  it('gives each message a sequence number of its own', () => {
    const { client, requests } = answering([ack], [], [ack])
    client.request('do it', message())
    client.batch(message(3))
    client.request('do it', message())
    expect(requests).toEqual([[1], [2, 3, 4], [5]])
  })

  it('goes on from 0 when the 32 bits of a sequence number are used up', () => {
    const answers: Answer[][] = [[ack], [{ ...ack, sequence: 3 }], [item(7), done], [ack]]
    const { client, requests } = answeringFrom(2 ** 32 - 3, answers)
    client.request('do it', message())
    expect(client.batch(message(4)).map(({ sequence }) => sequence)).toEqual([3])
    expect(client.dump('list', message(), contentOf)).toEqual([7])
    expect(() => client.request('do it', message())).not.toThrow()
    expect(requests).toEqual([[2 ** 32 - 2], [2 ** 32 - 1, 0, 1, 2], [3], [4]])
  })

  it('get() returns the one answer', () => {
    const { client } = answering([{ type: 101, content: 42 }])
    expect(client.get('read it', message(), contentOf)).toBe(42)
  })

  it('get() throws when the answer cannot be told, or there is none', () => {
    const { client } = answering([{ type: 101, content: 42 }], [])
    expect(errorOf(() => client.get('read it', message(), () => undefined)).errno).toBe('EBADMSG')
    expect(errorOf(() => client.get('read it', message(), contentOf)).errno).toBe('EBADMSG')
  })

  it('dump() collects until it is done, leaving out what is undefined', () => {
    const { client } = answering([item(1), item(2), item(3), done, item(4)])
    expect(client.dump('list', message(), (m) => (contentOf(m) === 2 ? undefined : contentOf(m)))).toEqual([1, 3])
  })

  it('dump() begins again when the list changed while it was read', () => {
    const { client, requests } = answering([item(1), item(2, NLM_F_DUMP_INTR), done], [item(3), done])
    expect(client.dump('list', message(), contentOf)).toEqual([3])
    expect(requests).toEqual([[1], [2]])
  })

  it('dump() gives up on a list that never stands still', () => {
    const interrupted = [item(1, NLM_F_DUMP_INTR), done]
    const { client, requests } = answering(...Array.from({ length: 50 }, () => interrupted))
    expect(errorOf(() => client.dump('list', message(), contentOf)).errno).toBe('EINTR')
    expect(requests.length).toBe(20)
  })

  it('dump() throws an error that comes first, and one that comes at the end', () => {
    const { client } = answering([{ type: NLMSG_ERROR, errno: 1 }], [item(1), { ...done, content: -12 }])
    expect(errorOf(() => client.dump('list', message(), contentOf)).errno).toBe('EPERM')
    expect(errorOf(() => client.dump('list', message(), contentOf)).errno).toBe('ENOMEM')
  })

  it('batch() returns the answers by the number of their message', () => {
    const { client } = answering([
      { type: NLMSG_ERROR, errno: 17, sequence: 1 },
      { type: NLMSG_ERROR, errno: 0, sequence: 2 },
      { type: NLMSG_ERROR, errno: 1, sequence: 77 },
    ])
    expect(client.batch(message(4)).map(({ sequence, errno }) => [sequence, errno])).toEqual([
      [1, 17],
      [2, 0],
    ])
  })
})

describe('NetlinkClient.dumpInPieces()', () => {
  const item = (content: number): Answer => ({ type: 1, flags: NLM_F_MULTI, content })
  const numberIn = ({ view, start }: { view: DataView; start: number }) => view.getUint32(start, LITTLE_ENDIAN)

  it('passes on every part of the list, and fails as the kernel says', async () => {
    const { client } = answering(
      [item(1), item(2), { type: NLMSG_DONE, errno: 0 }, item(3)],
      [item(1), { type: NLMSG_ERROR, errno: 2 }],
    )
    const seen: number[] = []
    await client.dumpInPieces('list', message(), (answer) => seen.push(numberIn(answer)))
    expect(seen).toEqual([1, 2])
    await expect(client.dumpInPieces('list', message(), () => {})).rejects.toThrow(KernelError)
  })

  it('lets other work in', async () => {
    const { client } = answering([...Array.from({ length: 20 }, (_, i) => item(i)), { type: NLMSG_DONE, errno: 0 }])
    let turns = 0
    let done = false
    const count = () => {
      turns++
      if (!done) setImmediate(count)
    }
    setImmediate(count)
    await client.dumpInPieces('list', message(), () => {
      const endMs = performance.now() + 2
      while (performance.now() < endMs);
    })
    done = true
    expect(turns).toBeGreaterThan(3)
  })
})
