// A socket, the requests that go over it, and the buffer that they are written into.

import { NetlinkClient } from './client.ts'
import type { Acknowledgement, Message } from './message.ts'
import { NetlinkSocket, type NetlinkSocketOptions } from './socket.ts'
import { Writer } from './writer.ts'

/** Writes the messages of a request. */
export type WriteRequest = (writer: Writer) => void

/** Of the network namespace that the calling thread is in when it is created. */
export class NetlinkConnection implements Disposable {
  readonly #socket: NetlinkSocket
  readonly #client: NetlinkClient
  readonly #writer = new Writer()

  constructor(protocol: number, options?: NetlinkSocketOptions) {
    this.#socket = new NetlinkSocket(protocol, options)
    this.#client = new NetlinkClient(this.#socket.exchange)
  }

  /** Sends one message that asks to be acknowledged. `op` names it in the error. */
  request(op: string, write: WriteRequest): void {
    this.#client.request(op, this.#written(write))
  }

  /** Sends one message that is answered with a single one. */
  get<T>(op: string, write: WriteRequest, decode: (answer: Message) => T | undefined): T {
    return this.#client.get(op, this.#written(write), decode)
  }

  /** Sends a message that is answered with a list. What `decode` gives as undefined is left out. */
  dump<T>(op: string, write: WriteRequest, decode: (answer: Message) => T | undefined): T[] {
    return this.#client.dump(op, this.#written(write), decode)
  }

  /** As NetlinkClient.dumpInPieces(): nothing else may use the connection meanwhile. */
  dumpInPieces(op: string, write: WriteRequest, each: (answer: Message) => void): Promise<void> {
    return this.#client.dumpInPieces(op, this.#written(write), each)
  }

  /** Sends many messages at once: how many bytes they were, and what the kernel answers, as NetlinkClient.batch() has it. */
  batch(write: WriteRequest): { readonly bytes: number; readonly answers: readonly Acknowledgement[] } {
    const bytes = this.#written(write)
    return { bytes: bytes.length, answers: this.#client.batch(bytes) }
  }

  close(): void {
    this.#socket.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #written(write: WriteRequest): Uint8Array {
    this.#writer.reset()
    write(this.#writer)
    return this.#writer.written()
  }
}
