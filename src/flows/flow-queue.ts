// Records on their way to a file or a collector. What finds no room is counted, and the count is written.

import type { Clock, Timer } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/log.ts'
import type { FlowRecord } from './flow-record.ts'

/** Where records go. */
export interface FlowSink {
  /** For people: the path or the URL. */
  readonly name: string
  /** `leftOut` connections have no record since the last time. Rejects when it should be tried again. */
  send(records: readonly FlowRecord[], leftOut: number): Promise<void>
}

export interface FlowQueueOptions {
  readonly sink: FlowSink
  readonly clock: Clock
  readonly log: Logger
  /** Gives records their names, right before they are sent. */
  readonly withNames: (record: FlowRecord) => FlowRecord
}

export const SEND_EVERY_MS = 1000
const MOST_WAITING = 5000
const MOST_AT_ONCE = 1000
/** After a failure, twice as long each time. */
const LONGEST_PAUSE_MS = 30_000

export class FlowQueue {
  readonly #options: FlowQueueOptions
  #records: FlowRecord[] = []
  #leftOut = 0
  #timer: Timer | undefined
  #sending: Promise<void> | undefined
  #pauseMs = SEND_EVERY_MS
  #isClosed = false

  constructor(options: FlowQueueOptions) {
    this.#options = options
    this.#wait()
  }

  add(record: FlowRecord): void {
    this.#records.push(record)
    this.#dropOldest()
  }

  leftOut(count: number): void {
    this.#leftOut += count
  }

  /** Sends what is there once more, and no longer. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#sending
    await this.#send()
  }

  #wait(): void {
    if (this.#isClosed) return
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined
        this.#wait()
      })
    }, this.#pauseMs)
  }

  async #send(): Promise<void> {
    const { sink, log, withNames } = this.#options
    while (this.#records.length > 0 || this.#leftOut > 0) {
      const batch = this.#records.splice(0, MOST_AT_ONCE)
      const leftOut = this.#leftOut
      this.#leftOut = 0
      try {
        await sink.send(batch.map(withNames), leftOut)
      } catch (error) {
        this.#records = [...batch, ...this.#records]
        this.#leftOut += leftOut
        this.#dropOldest()
        if (this.#pauseMs === SEND_EVERY_MS)
          log.warn('Cannot write the flow log, trying again', { to: sink.name, reason: messageOf(error) })
        this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS)
        return
      }
      if (this.#pauseMs > SEND_EVERY_MS) log.info('Can write the flow log again', { to: sink.name })
      this.#pauseMs = SEND_EVERY_MS
    }
  }

  #dropOldest(): void {
    const tooMany = this.#records.length - MOST_WAITING
    if (tooMany <= 0) return
    this.#records.splice(0, tooMany)
    this.#leftOut += tooMany
  }
}
