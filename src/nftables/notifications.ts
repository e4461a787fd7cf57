// What the kernel notifies of transactions: a message for each object that one touched, then one that ends it.

import { cstring, nest, opt } from '../netlink/attributes.ts'
import type { Message } from '../netlink/message.ts'
import { decodeNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NFNL_SUBSYS_NFTABLES } from '../netlink/uapi/nfnetlink.ts'
import { familyOfNumber } from './bytes/family.ts'
import { generationAttributes, messageType } from './bytes/messages.ts'
import { NFTA_TABLE_NAME } from './bytes/uapi.ts'
import type { NftFamily } from './types.ts'

export interface TouchedTable {
  readonly family: NftFamily
  readonly table: string
}

export interface NotifiedTransaction {
  /** The number of the generation that it made. */
  readonly generation: number | undefined
  /** The process, as seen from the machine's first pid namespace. */
  readonly pid: number
  /** The port of its netlink socket. */
  readonly port: number
  readonly touched: readonly TouchedTable[]
}

export class TransactionReader {
  readonly #onTransaction: (transaction: NotifiedTransaction) => void
  readonly #touched = new Map<string, TouchedTable>()

  constructor(onTransaction: (transaction: NotifiedTransaction) => void) {
    this.#onTransaction = onTransaction
  }

  add(message: Message): void {
    if (message.type === messageType('newGeneration')) return this.#finish(message)
    const touched = decodeTouchedTable(message)
    if (touched !== undefined) this.#touched.set(`${touched.family} ${touched.table}`, touched)
  }

  /** Notifications were lost: the rest of a transaction may never come. */
  clear(): void {
    this.#touched.clear()
  }

  #finish(message: Message): void {
    const { id, pid = 0 } = decodeNetfilterMessage(generationAttributes, message) ?? {}
    const touched = [...this.#touched.values()]
    this.#touched.clear()
    this.#onTransaction({ generation: id, pid, port: message.port, touched })
  }
}

/** All messages of nftables name their table in the first attribute. */
const tableOf = nest({ table: opt(NFTA_TABLE_NAME, cstring) })

/** Undefined for tables of other families than ip and ip6. */
function decodeTouchedTable(message: Message): TouchedTable | undefined {
  if (message.type >> 8 !== NFNL_SUBSYS_NFTABLES) return undefined
  const family = familyOfNumber(message.view.getUint8(message.start))
  const table = family === undefined ? undefined : decodeNetfilterMessage(tableOf, message)?.table
  return family === undefined || table === undefined ? undefined : { family, table }
}
