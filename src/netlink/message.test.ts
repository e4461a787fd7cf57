import { asBytes } from '../lib/ip.ts'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { messagesOf, numberMessages, decodeAcknowledgement, decodeDoneErrno } from './message.ts'
import { NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_DONE, NLMSG_ERROR } from './uapi/netlink.ts'
import { Writer } from './writer.ts'

function errorMessage(errno: number, { capped }: { capped: boolean }): Uint8Array {
  const writer = new Writer()
  writer.beginMessage(NLMSG_ERROR, NLM_F_ACK_TLVS | (capped ? NLM_F_CAPPED : 0))
  writer.ne32(-errno)
  // The request: a header, and unless capped its content.
  writer.ne32(28)
  writer.raw(asBytes('\0'.repeat(12)))
  if (!capped) writer.raw(asBytes('\xff'.repeat(12)))
  writer.begin(1)
  writer.raw(asBytes('No such table\0'))
  writer.end()
  writer.begin(2)
  writer.ne32(44)
  writer.end()
  writer.endMessage()
  return writer.written()
}

describe('messagesOf()', () => {
  it('gives the messages of a datagram and stops at what is cut short', () => {
    const writer = new Writer()
    for (const type of [1, 2]) {
      writer.beginMessage(type, type)
      writer.raw(asBytes('abc'))
      writer.endMessage()
    }
    numberMessages(writer.written(), 7)
    const whole = [...messagesOf(writer.written())]
    expect(whole.map(({ type, sequence, start, end }) => [type, sequence, start, end])).toEqual([
      [1, 7, 16, 20],
      [2, 8, 36, 40],
    ])
    expect([...messagesOf(writer.written().subarray(0, 39))]).toHaveLength(1)
  })

  it('never throws on noise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (noise) => {
        for (const { start, end } of messagesOf(noise)) expect(end).toBeGreaterThanOrEqual(start)
      }),
    )
  })
})

describe('decodeAcknowledgement()', () => {
  it.each([true, false])('reads the error, the words and the offset, the request capped: %s', (capped) => {
    const [message] = [...messagesOf(errorMessage(2, { capped }))]
    expect(decodeAcknowledgement(message!)).toEqual({ sequence: 0, errno: 2, extack: 'No such table', offset: 44 })
  })
})

describe('decodeDoneErrno()', () => {
  it('is the error that ended a dump, or 0', () => {
    const writer = new Writer()
    writer.beginMessage(NLMSG_DONE, 0)
    writer.ne32(-4)
    writer.endMessage()
    writer.beginMessage(NLMSG_DONE, 0)
    writer.endMessage()
    expect([...messagesOf(writer.written())].map(decodeDoneErrno)).toEqual([4, 0])
  })
})
