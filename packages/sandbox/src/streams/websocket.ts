// A WebSocket on a connection that a client asked to upgrade. Messages are binary; whole frames and parts of them are taken.

import { Duplex } from 'node:stream'
import type { IncomingMessage } from 'node:http'
import { acceptKey, encodeFrame, FrameReader, opcodes, WebSocketError, type Frame } from './websocket-frames.ts'

const closeCodes = { normal: 1000, protocolError: 1002 } as const

/** The subprotocols that the client offers, in its order. */
export function offeredProtocols({ headers }: IncomingMessage): string[] {
  return (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

export interface WebSocketHandlers {
  onMessage(message: Buffer): void
  /** The client is gone, or has said goodbye. Called once. */
  onClose(): void
}

export class WebSocket {
  readonly #socket: Duplex
  readonly #reader = new FrameReader()
  #handlers: WebSocketHandlers | undefined
  #parts: Buffer[] = []
  #isOpen = true

  /** Answers the handshake; messages come once listen() was called. */
  constructor(socket: Duplex, incoming: IncomingMessage, protocol: string) {
    this.#socket = socket
    const answer = [
      'HTTP/1.1 101 Switching Protocols',
      'Upgrade: websocket',
      'Connection: Upgrade',
      `Sec-WebSocket-Accept: ${acceptKey(incoming.headers['sec-websocket-key'] ?? '')}`,
      `Sec-WebSocket-Protocol: ${protocol}`,
    ]
    socket.write(`${answer.join('\r\n')}\r\n\r\n`)
  }

  listen(handlers: WebSocketHandlers, head: Buffer): void {
    this.#handlers = handlers
    if (head.length > 0) this.#read(head)
    this.#socket.on('data', (bytes: Buffer) => this.#read(bytes))
    this.#socket.on('close', () => this.#gone())
    this.#socket.on('end', () => this.#gone())
    this.#socket.resume()
  }

  /** Sends a message. `done` is called when there is room for the next one. */
  send(message: Uint8Array, done: () => void = () => {}): void {
    if (this.#isOpen) this.#socket.write(encodeFrame(opcodes.binary, message), () => done())
    else done()
  }

  /** Stops and begins to read: while there is no room for messages, the client waits. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  close(code: number = closeCodes.normal): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const reason = Buffer.alloc(2)
    reason.writeUInt16BE(code)
    this.#socket.end(encodeFrame(opcodes.close, reason))
  }

  #read(bytes: Buffer): void {
    try {
      for (const frame of this.#reader.read(bytes)) this.#take(frame)
    } catch (error) {
      if (!(error instanceof WebSocketError)) throw error
      this.close(closeCodes.protocolError)
      this.#gone()
    }
  }

  #take({ opcode, isLast, payload }: Frame): void {
    switch (opcode) {
      case opcodes.ping:
        if (this.#isOpen) this.#socket.write(encodeFrame(opcodes.pong, payload))
        return
      case opcodes.pong:
        return
      case opcodes.close:
        this.close()
        this.#gone()
        return
      case opcodes.binary:
      case opcodes.continuation: {
        this.#parts.push(payload)
        if (!isLast) return
        const message = this.#parts.length === 1 ? payload : Buffer.concat(this.#parts)
        this.#parts = []
        this.#handlers?.onMessage(message)
        return
      }
      default:
        throw new WebSocketError(`a frame of type ${opcode}, where binary ones are expected`)
    }
  }

  #gone(): void {
    const handlers = this.#handlers
    this.#handlers = undefined
    this.#isOpen = false
    handlers?.onClose()
  }
}

/** The messages as one stream of bytes: a connection inside the connection. */
export function byteStream(webSocket: WebSocket, head: Buffer): Duplex {
  const stream = new Duplex({
    read: () => webSocket.resume(),
    write: (chunk: Buffer, _, done) => webSocket.send(chunk, done),
    final(done) {
      webSocket.close()
      done()
    },
    destroy(error, done) {
      webSocket.close()
      done(error)
    },
  })
  const onMessage = (message: Buffer): void => {
    if (!stream.push(message)) webSocket.pause()
  }
  webSocket.listen({ onMessage, onClose: () => stream.push(null) }, head)
  return stream
}
