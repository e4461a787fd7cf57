import { describe, expect, it } from 'vitest'
import { ipBytes } from '../../lib/ip.ts'
import { type Message, messagesOf } from '../../netlink/message.ts'
import { Writer } from '../../netlink/writer.ts'
import { decodeAddress, decodeLinkOfAddress, writeDeleteAddress, writeNewAddress } from './address.ts'
import { decodeLink, writeDeleteLink, writeNewLink } from './link.ts'

const IFA_F_NODAD = 0x02

function written(write: (writer: Writer) => void): Message {
  const writer = new Writer()
  write(writer)
  const [message] = [...messagesOf(writer.written())]
  return message!
}

/** The same message, without its last bytes. */
function cut(message: Message, bytes: number): Message {
  return { ...message, end: message.end - bytes }
}

describe('addresses', () => {
  for (const [text, prefix] of [
    ['192.0.2.1', 32],
    ['2001:db8::1', 128],
  ] as const) {
    const request = { link: 7, address: ipBytes(text), prefix, acknowledge: true }

    it(`decodeAddress() gives what writeNewAddress() wrote: ${text}`, () => {
      const message = written((writer) => writeNewAddress(writer, request))
      expect(decodeAddress(message)).toEqual({ address: request.address, link: 7, scope: 0, flags: IFA_F_NODAD })
    })

    it(`decodeLinkOfAddress() names the link of one that went: ${text}`, () => {
      expect(decodeLinkOfAddress(written((writer) => writeDeleteAddress(writer, request)))).toBe(7)
    })
  }

  it('a message about something else, and one that was cut off, is no address', () => {
    const request = { link: 7, address: ipBytes('192.0.2.1'), prefix: 32, acknowledge: true }
    const message = written((writer) => writeNewAddress(writer, request))
    expect(decodeAddress(cut(message, message.end - message.start - 4))).toBeUndefined()
    expect(decodeAddress(written((writer) => writeDeleteLink(writer, 'a')))).toBeUndefined()
  })
})

describe('links', () => {
  it('decodeLink() gives what writeNewLink() wrote', () => {
    const message = written((writer) => writeNewLink(writer, { name: 'kube-ipvs0', kind: { type: 'dummy' } }))
    expect(decodeLink(message)).toEqual({ index: 0, name: 'kube-ipvs0', kind: 'dummy' })
  })

  it('a message about something else, and one that was cut off, is no link', () => {
    const message = written((writer) => writeNewLink(writer, { name: 'a', kind: { type: 'dummy' } }))
    expect(decodeLink(cut(message, message.end - message.start - 8))).toBeUndefined()
    expect(decodeLink(written((writer) => writeDeleteLink(writer, 'a')))).toBeUndefined()
  })
})
