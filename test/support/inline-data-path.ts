// The data path of the userspace mode without threads of its own: its event loops take turns with Node's, so that a test
// can hold both ends of every connection.

import { mustCall, tryCall } from '../../src/system/libc.ts'
import { DataPathThread } from '../../src/data-path/thread.ts'
import type { PoolContents } from '../../src/data-path/control-pool.ts'
import { Pool } from '../../src/data-path/control-pool.ts'
import type { DataPlane } from '../../src/data-path/data-plane.ts'
import { SourcePorts } from '../../src/data-path/source-ports.ts'
import { openListener, type PoolProtocol } from '../../src/data-path/sockets.ts'
import type { EventLoop } from '../../src/data-path/event-loop.ts'
import { CLIENT_MESSAGE } from '../../src/data-path/tcp-listener.ts'
import { Workers, type WorkersMemory } from '../../src/data-path/workers.ts'
import type { UdpLimits } from '../../src/data-path/udp-listener.ts'
import type { PortRange } from '../../src/data-path/port-range.ts'
import type { SeenAs } from '../../src/data-path/seen-as.ts'
import type { Family } from '../../src/lib/ip.ts'

const EFD_NONBLOCK = 0o4000
const EPHEMERAL: PortRange = { first: 40_000, last: 50_000 }

export interface InlineOptions {
  readonly threads?: number
  readonly udpIdleMs?: number
  readonly endFd?: number
  readonly udpLimits?: UdpLimits
  /** The ports at which connections begin whose clients backends are to see. */
  readonly ephemeral?: PortRange
}

export interface TestListener {
  readonly pool: Pool
  readonly port: number
  /** By which number threads know it. */
  readonly id: number
  readonly shut: () => void
}

export interface TestListenerOptions {
  readonly protocol?: PoolProtocol
  readonly family?: Family
  readonly address?: string
  readonly seenAs?: SeenAs
}

/** Makes an event loop say that the kernel has no room to watch another socket, after as many as given. */
export function refuseToWatch(loop: EventLoop, after = 0): () => void {
  const watch = loop.watch.bind(loop)
  let left = after
  loop.watch = (...args) => left-- > 0 && watch(...args)
  return () => (loop.watch = watch)
}

export class InlineDataPath implements Disposable {
  readonly warnings: string[] = []
  /** For tests that open pools themselves. */
  readonly plane: Pick<DataPlane, 'open'> = {
    open: (pool) =>
      new Pool(pool, {
        threads: this.#threads.length,
        nextId: () => ++this.#nextId,
        post: (thread, command) => this.#threads[thread]!.carryOut(structuredClone(command)),
      }),
  }
  readonly #threads: readonly DataPathThread[]
  readonly #memory: WorkersMemory
  readonly #board: Int32Array
  readonly #wakeFds: readonly number[]
  #nextId = 0
  #isOpen = true

  constructor(options: InlineOptions = {}) {
    const { threads = 1, udpIdleMs = 250, endFd = 1 << 20, udpLimits, ephemeral = EPHEMERAL } = options
    const wakeFds = Array.from({ length: threads }, () => mustCall('eventfd', 'eventfd', 0, EFD_NONBLOCK))
    this.#wakeFds = wakeFds
    const memory = Workers.createMemory(wakeFds)
    this.#memory = memory
    this.#board = new Int32Array(memory.board)
    const sourcePorts = new SourcePorts(SourcePorts.createMemory(), ephemeral)
    this.#threads = wakeFds.map(
      (_, index) =>
        new DataPathThread({
          udpIdleMs,
          sourcePorts,
          workers: new Workers(index, memory),
          endFd,
          udpLimits,
          warn: (message) => this.warnings.push(message),
        }),
    )
    this.#turn()
  }

  /** Opens a listener, on loopback unless told otherwise, to a pool of its own. */
  open(contents: PoolContents, options: TestListenerOptions = {}): TestListener {
    const { protocol = 'TCP', family = 4, seenAs = 'node' } = options
    const { address = family === 4 ? '127.0.0.1' : '::1' } = options
    const opened = openListener({ family, protocol, address, port: 0 })!
    const pool = this.plane.open({ family, protocol, ...contents })
    const listener = pool.listen({ fd: opened.fd, seenAs, address })
    return { pool, port: opened.port, id: listener, shut: () => pool.shut(listener) }
  }

  /** The event loop of a thread. */
  loop(thread: number): EventLoop {
    return this.#threads[thread]!.loop
  }

  /** Hands a client over to a thread, as the thread does that has accepted it. */
  handClient(thread: number, fd: number, listener: TestListener): void {
    new Workers(0, this.#memory).send(thread, [CLIENT_MESSAGE, fd, listener.id])
  }

  /** Makes a thread say that it is so busy, in thousandths. It says otherwise as soon as it looks at itself. */
  setBusy(thread: number, busy: number): void {
    this.#board[thread * 2] = busy
  }

  /** How many bulk streams each thread carries. */
  get bulkStreams(): readonly number[] {
    return this.#threads.map((_, thread) => this.#board[thread * 2 + 1]!)
  }

  [Symbol.dispose](): void {
    this.#isOpen = false
    for (const thread of this.#threads) thread.dispose()
    for (const fd of this.#wakeFds) tryCall('close', fd)
  }

  #turn(): void {
    setImmediate(() => {
      if (!this.#isOpen) return
      for (const thread of this.#threads) {
        thread.loop.turn(0)
        thread.receiveMessages()
      }
      this.#turn()
    })
  }
}
