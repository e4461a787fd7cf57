// A second thread that sends, so that the next datagram can be made meanwhile.
//
// A netlink request is carried out by the thread that sends it, before send() returns. At a start with very many services that is half of
// the time, in which this program would do nothing.

import { Worker } from 'node:worker_threads'
import { KernelError } from '../lib/errors.ts'
import { noteCall } from '../system/libc.ts'
import { keepNurserySmall } from '../system/give-back.ts'
import { threadProgram } from '../system/thread-program.ts'
import { waitWhile } from '../system/wait-while.ts'
import { type SendSettings, STATE } from './send-settings.ts'
import type { NetlinkSocket } from './socket.ts'

/** What is longer is sent by the caller itself. */
const ROOM = 1 << 20
/** A transaction takes milliseconds. */
const PATIENCE_MS = 60_000

const PROGRAM = threadProgram(import.meta.url, {
  ts: '../../dist/src/netlink/send-worker.js',
  js: './send-worker.js',
  cjs: './sender.cjs',
})

export class SendThread {
  readonly #socket: NetlinkSocket
  readonly #words = new Int32Array(new SharedArrayBuffer(12))
  readonly #bytes = new Uint8Array(new SharedArrayBuffer(ROOM))
  #length = 0
  #isUp = false

  constructor(socket: NetlinkSocket) {
    this.#socket = socket
    const settings: SendSettings = { fd: socket.fd, words: this.#words.buffer, bytes: this.#bytes.buffer }
    const worker = new Worker(PROGRAM, {
      workerData: settings,
      name: 'netlink-send',
      resourceLimits: { maxYoungGenerationSizeMb: 2 },
    })
    worker.unref()
    // It is never ready then, and the caller goes on alone.
    worker.on('error', () => {})
  }

  /** Begins to send, when what was begun before has been waited for. False when it cannot: the thread is not up yet, or has no room. */
  begin(bytes: Uint8Array): boolean {
    if (!this.#isUp) {
      // A thread that begins sets this back for all.
      keepNurserySmall()
      this.#isUp = Atomics.load(this.#words, 0) === STATE.idle
    }
    if (!this.#isUp || bytes.length > ROOM || this.#socket.isPrinted) return false
    this.#socket.makeRoom(bytes.length)
    this.#bytes.set(bytes)
    this.#length = this.#words[1] = bytes.length
    this.#tell(STATE.sending)
    return true
  }

  /** Waits for what was begun, and gives what was sent. The kernel's answers are in the socket then. */
  wait(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#length)
    const startMs = performance.now()
    if (!waitWhile(this.#words, 0, STATE.sending, PATIENCE_MS)) {
      throw new KernelError(`send ${bytes.length} bytes over netlink`, 'ETIMEDOUT')
    }
    noteCall('send', performance.now() - startMs)
    // Whatever was wrong, the kernel has done nothing, and says here what it was.
    if (this.#words[2] !== bytes.length) this.#socket.send(Uint8Array.from(bytes))
    return bytes
  }

  /** Ends the thread, when it has sent what it was asked to. */
  close(): void {
    waitWhile(this.#words, 0, STATE.sending, PATIENCE_MS)
    this.#tell(STATE.ended)
  }

  #tell(state: number): void {
    Atomics.store(this.#words, 0, state)
    Atomics.notify(this.#words, 0)
  }
}
