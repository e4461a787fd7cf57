// Resets a connection when its peer has received all that was sent to it.

import type { EventHandler } from './event-loop.ts'
import type { Relays } from './relay.ts'
import { resetOnClose } from './sockets.ts'

const TIOCOUTQ = 0x5411
export const FLUSH_CHECK_MS = 20
/** So the peer has 5 s. */
const FLUSH_CHECKS = 250

export class Flushing {
  readonly #relays: Relays
  readonly #fd: number
  readonly #afterwards: (() => void) | undefined
  readonly #queued = new Int32Array(1)
  #checks = 0

  constructor(relays: Relays, fd: number, afterwards: (() => void) | undefined) {
    this.#relays = relays
    this.#fd = fd
    this.#afterwards = afterwards
    relays.context.loop.setHandler(fd, IGNORED)
  }

  check(): void {
    const { context, flushing, ioctl } = this.#relays
    const isKnown = ioctl(this.#fd, TIOCOUTQ, this.#queued) === 0
    if (isKnown && this.#queued[0]! > 0 && this.#checks++ < FLUSH_CHECKS) {
      flushing.start(this, context.loop.nowMs)
      return
    }
    resetOnClose(this.#fd)
    context.loop.close(this.#fd, this.#afterwards)
  }
}

const IGNORED: EventHandler = { onEvents: () => {} }
