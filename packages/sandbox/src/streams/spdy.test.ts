import { Duplex, PassThrough } from 'node:stream'
import { once } from 'node:events'
import { constants, createDeflate, createInflate } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { encodeControl, encodeData, headerDictionary, SpdyError, SpdyFrameReader, types } from './spdy-frames.ts'
import { serveSpdy, type SpdyStream } from './spdy.ts'

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i)
  return bytes
}

/** A client that opens streams, and what it receives. */
function openClient(onStream: (stream: SpdyStream) => void) {
  const toServer = new PassThrough()
  const fromServer = new PassThrough()
  const deflate = createDeflate({ dictionary: headerDictionary(), flush: constants.Z_SYNC_FLUSH })
  const done = serveSpdy(Duplex.from({ readable: toServer, writable: fromServer }), Buffer.alloc(0), onStream)
  const compress = (text: Buffer) =>
    new Promise<Buffer>((resolve) => deflate.write(text, () => resolve(deflate.read() as Buffer)))
  const reader = new SpdyFrameReader()
  return {
    done,
    end: () => toServer.end(),
    send: (bytes: Buffer) => toServer.write(bytes),
    async open(id: number, headers: Record<string, string>): Promise<void> {
      const text = Object.entries(headers).flatMap((pair) =>
        pair.map((one) => Buffer.concat([u32(one.length), Buffer.from(one)])),
      )
      const block = await compress(Buffer.concat([u32(Object.keys(headers).length), ...text]))
      toServer.write(encodeControl(types.synStream, Buffer.concat([u32(id, 0), Buffer.alloc(2), block])))
    },
    async frames(count: number) {
      const frames = []
      while (frames.length < count) {
        const [bytes] = (await once(fromServer, 'data')) as [Buffer]
        frames.push(...reader.read(bytes))
      }
      return frames
    },
  }
}

describe('serveSpdy()', () => {
  it('opens streams with their headers, carries bytes both ways, and ends each side by itself', async () => {
    const streams: SpdyStream[] = []
    const client = openClient((stream) => streams.push(stream))
    const replies = client.frames(2)
    await client.open(1, { streamtype: 'error', port: '80' })
    await client.open(3, { StreamType: 'data', port: '80' })
    const headers = await replies
    expect(streams.map((stream) => stream.headers.get('streamtype'))).toEqual(['error', 'data'])
    // Both replies together are one zlib stream, of two empty lists of headers.
    const inflate = createInflate({ flush: constants.Z_SYNC_FLUSH })
    const blocks = Buffer.concat(headers.map(({ payload }) => payload.subarray(4)))
    await new Promise<void>((resolve) => inflate.write(blocks, () => resolve()))
    expect(inflate.read()).toEqual(u32(0, 0))

    const data = streams[1]!
    client.send(encodeData(3, Buffer.from('question'), true))
    const [received] = (await once(data, 'data')) as [Buffer]
    expect(received.toString()).toBe('question')
    const answers = client.frames(2)
    data.end('answer')
    expect(await answers).toEqual([
      { kind: 'data', stream: 3, isLast: false, payload: Buffer.from('answer') },
      { kind: 'data', stream: 3, isLast: true, payload: Buffer.alloc(0) },
    ])
    client.end()
    await client.done
    expect(streams.every(({ destroyed }) => destroyed)).toBe(true)
  })

  it('answers a ping, and refuses a stream twice', async () => {
    const client = openClient(() => {})
    client.send(encodeControl(types.ping, u32(7)))
    expect(await client.frames(1)).toEqual([{ kind: 'control', type: types.ping, isLast: false, payload: u32(7) }])
    const answers = client.frames(2)
    await client.open(1, {})
    await client.open(1, {})
    expect((await answers).map((frame) => frame.kind === 'control' && frame.type)).toEqual([
      types.synReply,
      types.rstStream,
    ])
    client.end()
    await client.done
  })

  it('ends with a peer that speaks something else', async () => {
    const client = openClient(() => {})
    client.send(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
    client.send(Buffer.from('80020001000000000000', 'hex'))
    client.end()
    await client.done
    expect(() => new SpdyFrameReader().read(Buffer.from('8002000100000000', 'hex'))).toThrow(SpdyError)
  })
})
