// Finds out whether a table was changed while it is read.
//
// A transaction on any table changes the generation, and the kernel marks every list that goes on meanwhile as interrupted.
// Where other programs are busy with tables of their own, a long read would never end. The notifications say whether it was
// our table.

import { KernelError } from '../lib/errors.ts'
import { drainSocket } from '../netlink/drain.ts'
import { messagesOf } from '../netlink/message.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER } from '../netlink/uapi/netlink.ts'
import { NFNLGRP_NFTABLES } from '../netlink/uapi/nfnetlink.ts'
import type { TableId } from './bytes/batch.ts'
import { TransactionReader } from './notifications.ts'

/** Room for thousands of transactions of a program that does nothing else. It lives as long as one read. */
const RECEIVE_BUFFER = 8 << 20

/** The kernel notifies right after it has made the generation of a transaction the current one. */
const TIMEOUT_MS = 50

export class TableListener {
  readonly #socket = new NetlinkSocket(NETLINK_NETFILTER, {
    receiveBuffer: RECEIVE_BUFFER,
    groups: [NFNLGRP_NFTABLES],
    timeoutMs: TIMEOUT_MS,
  })
  readonly #reader: TransactionReader
  #isTouched = false
  /** That of the last transaction of which all notifications have come. */
  #generation: number | undefined

  constructor({ family, table }: TableId) {
    this.#reader = new TransactionReader(({ generation, touched }) => {
      this.#generation = generation
      if (touched.some((each) => each.family === family && each.table === table)) this.#isTouched = true
    })
  }

  /** Forgets what was notified so far. */
  restart(): void {
    this.#drain()
    this.#isTouched = false
    this.#generation = undefined
  }

  /** Whether all transactions since restart(), up to the one that made this generation, were on other tables. */
  isUnchangedThrough(generation: number): boolean {
    this.#drain()
    while (!this.#isTouched && !this.#knows(generation)) if (!this.#wait()) return false
    return !this.#isTouched
  }

  close(): void {
    this.#socket.close()
  }

  /** Whether the transaction that made this generation, or a later one, was notified: they come in order. */
  #knows(generation: number): boolean {
    // The kernel counts in 32 bits and begins again at 0.
    return this.#generation !== undefined && ((this.#generation - generation) | 0) >= 0
  }

  #drain(): void {
    const result = drainSocket(this.#socket, (message) => this.#reader.add(message))
    if (result === 'whole') return
    // What was lost may have been about our table.
    this.#reader.clear()
    this.#isTouched = true
  }

  /** For the next notification. */
  #wait(): boolean {
    try {
      for (const message of messagesOf(this.#socket.receive('wait')!)) this.#reader.add(message)
      return true
    } catch (error) {
      if (error instanceof KernelError) return false
      throw error
    }
  }
}
