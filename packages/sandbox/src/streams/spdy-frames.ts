// The frames of SPDY/3.1, as far as Kubernetes uses them: many streams in one connection. Pure.

export const types = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, goAway: 7 } as const

const VERSION = 3
const FLAG_FIN = 1
const maxControlLength = 64 * 1024

export type SpdyFrame =
  | { readonly kind: 'data'; readonly stream: number; readonly isLast: boolean; readonly payload: Buffer }
  | { readonly kind: 'control'; readonly type: number; readonly isLast: boolean; readonly payload: Buffer }

export class SpdyError extends Error {
  override readonly name = 'SpdyError'
}

/** Cuts a stream of bytes into frames. */
export class SpdyFrameReader {
  #rest: Buffer = Buffer.alloc(0)

  /** The frames that are whole with these bytes. Throws a SpdyError. */
  read(bytes: Buffer): SpdyFrame[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const frames: SpdyFrame[] = []
    while (this.#rest.length >= 8) {
      const word = this.#rest.readUInt32BE(0)
      const flags = this.#rest[4]!
      const length = this.#rest.readUIntBE(5, 3)
      const isControl = word >= 0x80000000
      if (isControl && length > maxControlLength) throw new SpdyError(`a control frame of ${length} bytes`)
      if (this.#rest.length < 8 + length) break
      const payload = Buffer.from(this.#rest.subarray(8, 8 + length))
      this.#rest = this.#rest.subarray(8 + length)
      const isLast = (flags & FLAG_FIN) !== 0
      if (!isControl) frames.push({ kind: 'data', stream: word, isLast, payload })
      else if (((word >>> 16) & 0x7fff) === VERSION)
        frames.push({ kind: 'control', type: word & 0xffff, isLast, payload })
      else throw new SpdyError(`a frame of SPDY version ${(word >>> 16) & 0x7fff}, where ${VERSION} is spoken`)
    }
    return frames
  }
}

export function encodeData(stream: number, payload: Uint8Array, isLast: boolean): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(stream)
  head[4] = isLast ? FLAG_FIN : 0
  head.writeUIntBE(payload.length, 5, 3)
  return Buffer.concat([head, payload])
}

export function encodeControl(type: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt16BE(0x8000 | VERSION)
  head.writeUInt16BE(type, 2)
  head.writeUIntBE(payload.length, 5, 3)
  return Buffer.concat([head, payload])
}

/** A name may have several values, with a zero byte between them; the first is taken. */
export function decodeHeaders(block: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  let at = 4
  const text = (): string => {
    const length = block.readUInt32BE(at)
    at += 4 + length
    return block.toString('utf8', at - length, at)
  }
  try {
    for (let left = block.readUInt32BE(0); left > 0; left--) headers.set(text().toLowerCase(), text().split('\0')[0]!)
  } catch {
    throw new SpdyError('headers that end too early')
  }
  return headers
}

/**
 * No headers, as zlib writes them without compressing: a stored block, and an empty one, at which readers hand out what they
 * have. The first of a connection begins with zlib's own two bytes, and all together are one zlib stream.
 */
export function encodeNoHeaders(isFirst: boolean): Buffer {
  const stored = [0x00, 0x04, 0x00, 0xfb, 0xff, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0xff, 0xff]
  return Buffer.from(isFirst ? [0x78, 0x01, ...stored] : stored)
}

const dictionaryWords =
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin'
const dictionaryTail =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.'

/** The dictionary with which both sides of SPDY/3 compress headers: words after their lengths, then text. */
export function headerDictionary(): Buffer {
  const words = dictionaryWords.split(' ').flatMap((word) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(word.length)
    return [length, Buffer.from(word.replace('_', ' '))]
  })
  return Buffer.concat([...words, Buffer.from(dictionaryTail)])
}
