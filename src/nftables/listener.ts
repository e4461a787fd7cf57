// Hears which tables are changed while one of them is read.
//
// A transaction on any table changes the generation, and the kernel marks every list that goes on meanwhile as interrupted.
// Where other programs are busy with tables of their own, a long read would never come to its end. The notifications say
// whether it was our table.

import { NFGENMSG_LENGTH } from '../netlink/nfnetlink.ts'
import type { NftFamily } from './types.ts'
import { drainSocket } from '../netlink/drain.ts'
import { messagesOf } from '../netlink/message.ts'
import { generationAttributes, messageType } from './bytes/messages.ts'
import { NETLINK_NETFILTER } from '../netlink/uapi/netlink.ts'
import { NFNLGRP_NFTABLES } from '../netlink/uapi/nfnetlink.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { decodeTouchedTable } from './watch.ts'

/** Room for thousands of transactions of a program that does nothing else. It lives as long as one read. */
const RECEIVE_BUFFER = 8 << 20

/** The kernel tells of a transaction right after it has made its generation the current one. */
const TELLING_MS = 50

export class NftablesListener {
  readonly #table: { readonly family: NftFamily; readonly table: string }
  readonly #socket = new NetlinkSocket(NETLINK_NETFILTER, { receiveBuffer: RECEIVE_BUFFER, groups: [NFNLGRP_NFTABLES] })
  #isTouched = false
  /** The generation that the last transaction made of which we know all. */
  #generation: number | undefined

  constructor(table: { readonly family: NftFamily; readonly table: string }) {
    this.#table = table
  }

  /** Forgets what was heard. */
  restart(): void {
    this.#drain()
    this.#isTouched = false
    this.#generation = undefined
  }

  /** Whether all transactions since restart(), up to the one that made this generation, were on other tables. */
  sparesUs(generation: number): boolean {
    const startMs = performance.now()
    do this.#drain()
    while (!this.#isTouched && !this.#knows(generation) && performance.now() - startMs < TELLING_MS)
    return !this.#isTouched && this.#knows(generation)
  }

  /** Whether it has heard of the transaction that made this generation, or of a later one: they come in order. */
  #knows(generation: number): boolean {
    // The kernel counts in 32 bits and begins anew.
    return this.#generation !== undefined && ((this.#generation - generation) | 0) >= 0
  }

  close(): void {
    this.#socket.close()
  }

  #drain(): void {
    const heard = drainSocket(this.#socket, (datagram) => this.#hear(datagram))
    // What was lost may have been about our table.
    if (heard === 'lost') this.#isTouched = true
  }

  #hear(datagram: Uint8Array): void {
    for (const message of messagesOf(datagram)) {
      if (message.type === messageType('newGeneration')) {
        const { view, start, end } = message
        this.#generation = generationAttributes.read(view, start + NFGENMSG_LENGTH, end)?.id
        continue
      }
      const touched = decodeTouchedTable(message)
      if (touched?.family === this.#table.family && touched.table === this.#table.table) this.#isTouched = true
    }
  }
}
