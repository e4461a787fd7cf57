// A SPDY connection, the server's side: streams that the client opens. `kubectl port-forward` speaks SPDY, in newer versions
// inside a WebSocket; `kubectl exec` did so before version 1.31, and Debian 12 has version 1.20. No maintained library does.
// Flow control has no windows, as in kubectl's library: who reads slowly stops the whole connection.

import { Duplex } from 'node:stream'
import { constants, createInflate } from 'node:zlib'
import {
  decodeHeaders,
  encodeControl,
  encodeData,
  encodeNoHeaders,
  headerDictionary,
  SpdyFrameReader,
  types,
  type SpdyFrame,
} from './spdy-frames.ts'

const RST_PROTOCOL_ERROR = 1
const RST_CANCEL = 5
/** The length of a frame has 24 bits; smaller ones let other streams have a turn. */
const maxDataLength = 32 * 1024

export class SpdyStream extends Duplex {
  readonly headers: ReadonlyMap<string, string>
  readonly #id: number
  readonly #send: (frame: Buffer, done?: () => void) => void
  #hasRoom: () => void = () => {}

  constructor(id: number, headers: ReadonlyMap<string, string>, send: (frame: Buffer, done?: () => void) => void) {
    super({ allowHalfOpen: true })
    this.#id = id
    this.headers = headers
    this.#send = send
  }

  /** Data of the client; resolves when there is room for more. */
  async receive(payload: Buffer, isLast: boolean): Promise<void> {
    if (this.destroyed) return
    const room = new Promise<void>((resolve) => (this.#hasRoom = resolve))
    const isFull = payload.length > 0 && !this.push(payload)
    if (isLast) this.push(null)
    if (isFull && !isLast) await room
  }

  override _read(): void {
    this.#hasRoom()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    for (let at = 0; at < chunk.length; at += maxDataLength) {
      const isEnd = at + maxDataLength >= chunk.length
      this.#send(encodeData(this.#id, chunk.subarray(at, at + maxDataLength), false), isEnd ? done : undefined)
    }
    if (chunk.length === 0) done()
  }

  override _final(done: () => void): void {
    this.#send(encodeData(this.#id, Buffer.alloc(0), true), done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#hasRoom()
    if (error !== null) this.#send(encodeReset(this.#id, RST_CANCEL))
    done(null)
  }
}

/** Serves the streams of a connection until it ends. */
export async function serveSpdy(
  transport: Duplex,
  head: Buffer,
  onStream: (stream: SpdyStream) => void,
): Promise<void> {
  const streams = new Map<number, SpdyStream>()
  const reader = new SpdyFrameReader()
  const inflate = openHeaderInflater()
  let hasReplied = false

  const send = (frame: Buffer, done: () => void = () => {}): void => {
    if (transport.writable) transport.write(frame, () => done())
    else done()
  }

  const take = async (frame: SpdyFrame): Promise<void> => {
    if (frame.kind === 'data') {
      await streams.get(frame.stream)?.receive(frame.payload, frame.isLast)
      return
    }
    const { type, payload, isLast } = frame
    switch (type) {
      case types.synStream: {
        const id = payload.readUInt32BE(0)
        const headers = decodeHeaders(await inflate(payload.subarray(10)))
        if (id % 2 === 0 || streams.has(id)) return send(encodeReset(id, RST_PROTOCOL_ERROR))
        const stream = new SpdyStream(id, headers, send)
        // For its user, a stream that is cut off has ended.
        stream.on('error', () => {})
        stream.on('close', () => streams.delete(id))
        streams.set(id, stream)
        const reply = Buffer.alloc(4)
        reply.writeUInt32BE(id)
        send(encodeControl(types.synReply, Buffer.concat([reply, encodeNoHeaders(!hasReplied)])))
        hasReplied = true
        onStream(stream)
        if (isLast) await stream.receive(Buffer.alloc(0), true)
        return
      }
      case types.rstStream:
        streams.get(payload.readUInt32BE(0))?.destroy()
        return
      case types.ping:
        return send(encodeControl(types.ping, payload))
      case types.goAway:
        transport.end()
        return
      default:
        // Settings and windows: nothing to do.
        return
    }
  }

  try {
    if (head.length > 0) for (const frame of reader.read(head)) await take(frame)
    for await (const chunk of transport) {
      for (const frame of reader.read(chunk as Buffer)) await take(frame)
    }
  } catch {
    // The client is gone, or does not keep to the protocol: either way it is over.
  } finally {
    for (const stream of streams.values()) stream.destroy()
    transport.destroy()
  }
}

function encodeReset(stream: number, reason: number): Buffer {
  const payload = Buffer.alloc(8)
  payload.writeUInt32BE(stream)
  payload.writeUInt32BE(reason, 4)
  return encodeControl(types.rstStream, payload)
}

/** All header blocks of a connection are one zlib stream. */
function openHeaderInflater(): (block: Buffer) => Promise<Buffer> {
  const inflate = createInflate({ dictionary: headerDictionary(), flush: constants.Z_SYNC_FLUSH })
  return (block) =>
    new Promise((resolve, reject) => {
      inflate.once('error', reject)
      inflate.write(block, () => {
        inflate.off('error', reject)
        const parts: Buffer[] = []
        for (let part = inflate.read() as Buffer | null; part !== null; part = inflate.read() as Buffer | null) {
          parts.push(part)
        }
        resolve(Buffer.concat(parts))
      })
    })
}
