// The data path of the userspace mode without threads of its own: its event loops take turns with Node's, so that a test
// can hold both ends of every connection.

import { mustCall, tryCall } from '../../src/system/libc.ts'
import { DataPathThread } from '../../src/modes/userspace/data-path/thread.ts'
import type { PoolContents } from '../../src/modes/userspace/data-path/control-pool.ts'
import { Pool } from '../../src/modes/userspace/data-path/control-pool.ts'
import type { DataPlane } from '../../src/modes/userspace/data-path/data-plane.ts'
import { SourcePorts } from '../../src/modes/userspace/data-path/source-ports.ts'
import { openListener, type PoolProtocol } from '../../src/modes/userspace/data-path/sockets.ts'
import { Team } from '../../src/modes/userspace/data-path/team.ts'
import type { Family } from '../../src/lib/ip.ts'

const EFD_NONBLOCK = 0o4000

export interface InlineOptions {
  readonly threads?: number
  readonly udpIdleMs?: number
  readonly endFd?: number
}

export interface OpenDoor {
  readonly pool: Pool
  readonly port: number
  readonly shut: () => void
}

export class InlineDataPath implements Disposable {
  readonly warnings: string[] = []
  /** For who opens pools himself. */
  readonly plane: Pick<DataPlane, 'open'> = {
    open: (pool) =>
      new Pool(pool, {
        threads: this.#threads.length,
        nextId: () => ++this.#nextId,
        post: (thread, command) => this.#threads[thread]!.carryOut(structuredClone(command)),
      }),
  }
  readonly #threads: readonly DataPathThread[]
  readonly #board: Int32Array
  readonly #wakeFds: readonly number[]
  #nextId = 0
  #isOpen = true

  constructor({ threads = 1, udpIdleMs = 250, endFd = 1 << 20 }: InlineOptions = {}) {
    const wakeFds = Array.from({ length: threads }, () => mustCall('eventfd', 'eventfd', 0, EFD_NONBLOCK))
    this.#wakeFds = wakeFds
    const memory = Team.createMemory(wakeFds)
    this.#board = new Int32Array(memory.board)
    const sourcePorts = new SourcePorts(SourcePorts.createMemory(), { first: 40_000, last: 50_000 })
    this.#threads = wakeFds.map(
      (_, index) =>
        new DataPathThread({
          udpIdleMs,
          sourcePorts,
          team: new Team(index, memory),
          endFd,
          warn: (message) => this.warnings.push(message),
        }),
    )
    this.#turn()
  }

  /** Opens a door on loopback to a pool of its own. */
  open(
    contents: PoolContents,
    { protocol = 'TCP', family = 4 }: { protocol?: PoolProtocol; family?: Family } = {},
  ): OpenDoor {
    const address = family === 4 ? '127.0.0.1' : '::1'
    const listener = openListener({ family, protocol, address, port: 0 })!
    const pool = this.plane.open({ family, protocol, ...contents })
    const door = pool.listen({ fd: listener.fd, seenAs: 'node', address })
    return { pool, port: listener.port, shut: () => pool.shut(door) }
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
        thread.reactor.turn(0)
        thread.takeHanded()
      }
      this.#turn()
    })
  }
}
