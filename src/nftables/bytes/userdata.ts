// Userdata: what nft stores beside objects for itself, most of all comments. A list of type, length (one byte each),
// value. The numbers are those of libnftnl's include/libnftnl/udata.h.

import { type Bytes, asBytes, bytesOf } from '../../lib/ip.ts'
import { NFT_USERDATA_MAXLEN } from './uapi.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'

/** The type of a comment on a table, chain or rule. On a set it is another one. */
export const UDATA_COMMENT = 0

/** The most bytes of a comment that nft accepts, without the NUL. */
const MAX_COMMENT = 127

export interface Udata {
  readonly type: number
  readonly value: Bytes
}

const utf8 = { encoder: new TextEncoder(), decoder: new TextDecoder() }

export function encodeUdata(list: readonly Udata[]): Bytes {
  let bytes = ''
  for (const { type, value } of list) bytes += String.fromCharCode(type, value.length) + value
  if (bytes.length <= NFT_USERDATA_MAXLEN) return asBytes(bytes)
  throw new RangeError(
    `Cannot write userdata: it is ${bytes.length} bytes long, and ${NFT_USERDATA_MAXLEN} is the most`,
  )
}

/** Stops at the first entry that is cut short: only nft and we write these, but any program could. */
export function decodeUdata(bytes: Bytes): Udata[] {
  const list: Udata[] = []
  for (let at = 0; at + 2 <= bytes.length;) {
    const end = at + 2 + bytes.charCodeAt(at + 1)
    if (end > bytes.length) break
    list.push({ type: bytes.charCodeAt(at), value: bytes.slice(at + 2, end) })
    at = end
  }
  return list
}

export function udata32(type: number, value: number): Udata {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value, LITTLE_ENDIAN)
  return { type, value: bytesOf(...bytes) }
}

export function udataComment(type: number, comment: string): Udata {
  const bytes = utf8.encoder.encode(comment)
  if (bytes.length > MAX_COMMENT) {
    throw new RangeError(
      `Cannot write comment "${comment}": it is ${bytes.length} bytes long, at most ${MAX_COMMENT} fit`,
    )
  }
  return { type, value: asBytes(`${String.fromCharCode(...bytes)}\0`) }
}

export function decodeComment(type: number, userdata: Bytes | undefined): string | undefined {
  if (userdata === undefined) return undefined
  const entry = decodeUdata(userdata).find((item) => item.type === type)
  if (entry === undefined) return undefined
  const text = entry.value.endsWith('\0') ? entry.value.slice(0, -1) : entry.value
  return utf8.decoder.decode(Uint8Array.from(text, (character) => character.charCodeAt(0)))
}

/** The userdata of an object that has at most a comment. */
export function commentUserdata(comment: string | undefined): { readonly userdata?: Bytes } {
  return comment === undefined ? {} : { userdata: encodeUdata([udataComment(UDATA_COMMENT, comment)]) }
}
