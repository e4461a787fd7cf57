// One nftables table of the kernel: transactions on it, and its content read back.

import { asBytes } from '../lib/ip.ts'
import { nftablesVocabulary } from './bytes/vocabulary.ts'
import type { Op } from './types.ts'
import type { Acknowledgement } from '../netlink/message.ts'
import { type BatchMessage, type TableId, writeBatch } from './bytes/batch.ts'
import { describeOp } from './bytes/describe.ts'
import { NETLINK_NETFILTER } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { errnoName } from '../system/libc.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { SendThread } from '../netlink/send-thread.ts'
import type { OnApplied, TableDriver } from './table-driver.ts'
import { makeSet } from './make-set.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { tableError, TableReader } from './table-reader.ts'

const NO_SET = makeSet('no-such-set', ['ipv4_addr'])

export class NftablesDriver extends TableReader implements TableDriver, Disposable {
  readonly #socket: NetlinkSocket
  readonly #client: NetlinkClient
  readonly #writer = new Writer()
  #commits = 0
  #destroys: boolean | undefined

  constructor(id: TableId) {
    const socket = new NetlinkSocket(NETLINK_NETFILTER, { vocabulary: nftablesVocabulary })
    const client = new NetlinkClient(socket.exchange)
    super(id, client)
    this.#socket = socket
    this.#client = client
  }

  /** How many transactions have taken effect. */
  get commits(): number {
    return this.#commits
  }

  /** The port of the socket: notifications of our own transactions carry it. */
  get port(): number {
    return this.#socket.port
  }

  /** Whether this kernel knows the operation `destroyElements` (6.3): others call it invalid, this one looks for the set. */
  get destroys(): boolean {
    if (this.#destroys === undefined) {
      const { bytes } = this.#write([{ op: 'destroyElements', set: NO_SET, elements: [{ key: asBytes('\0\0\0\0') }] }])
      this.#destroys = this.#client.batch(bytes).some(({ errno }) => errnoName(errno) === 'ENOENT')
    }
    return this.#destroys
  }

  /**
   * Carries out the operations as one transaction: all of them, or, with a KernelError that names the first that the kernel
   * refused, none. Returns how many bytes were sent.
   *
   * The batch does not say which generation it goes by (NFNL_BATCH_GENID): the kernel would then refuse it after any
   * transaction on any table, and where other programs are busy nothing of ours would ever get through. Another program's
   * change of our own table is seen by the watch and undone.
   */
  apply(ops: readonly Op[]): { readonly bytes: number } {
    if (ops.length === 0) return { bytes: 0 }
    const { messages, bytes } = this.#write(ops)
    this.#confirm(messages, bytes, this.#client.batch(bytes))
    // The buffer of a large transaction is not kept.
    this.#writer.reset()
    return { bytes: bytes.length }
  }

  /**
   * Carries out transactions one after the other, as apply() does. While the kernel is at one, on a thread of its own, the next
   * is made; so the first that the kernel refuses is known when one more has been made.
   */
  applyEach(transactions: Iterable<readonly Op[]>, onApplied: OnApplied): void {
    const thread = new SendThread(this.#socket)
    let finish = () => {}
    try {
      for (const ops of transactions) {
        if (ops.length === 0) continue
        const { messages, bytes } = this.#write(ops)
        finish()
        finish = () => {}
        const numbers = this.#client.numberBatch(bytes)
        const confirm = (sent: Uint8Array) => {
          this.#confirm(messages, sent, this.#client.readBatch(numbers, this.#socket.received('poll')))
          onApplied(ops, sent.length)
        }
        if (thread.begin(bytes)) {
          finish = () => confirm(thread.wait())
        } else {
          this.#socket.send(bytes)
          confirm(bytes)
        }
      }
      finish()
    } finally {
      thread.close()
      this.#writer.reset()
    }
  }

  #write(ops: readonly Op[]): { messages: readonly BatchMessage[]; bytes: Uint8Array } {
    this.#writer.reset()
    const messages = writeBatch(this.#writer, this, ops)
    return { messages, bytes: this.#writer.written() }
  }

  /** Fails with the first message that the kernel refused. */
  #confirm(messages: readonly BatchMessage[], bytes: Uint8Array, acknowledgements: readonly Acknowledgement[]): void {
    const failed = acknowledgements.find(({ errno }) => errno !== 0)
    if (failed !== undefined) {
      const message = messages[failed.sequence]
      const op = message?.op
      const what = op === undefined ? 'commit' : describeOp(op, bytes.subarray(message!.start), failed.offset)
      throw tableError(this, what, errnoName(failed.errno), failed.extack)
    }
    // Success is said, not assumed: the message before the one that ends the batch has asked for it.
    if (!acknowledgements.some(({ sequence }) => sequence === messages.length - 2)) {
      throw tableError(this, 'commit', 'ENOMSG', 'the kernel did not answer')
    }
    this.#commits++
  }

  close(): void {
    this.#socket.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}
