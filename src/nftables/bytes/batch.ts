// A transaction: operations on one table as messages, and which message came from which operation.

import type { NftFamily, Op } from '../types.ts'
import { NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE } from '../../netlink/uapi/netlink.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'
import type { Writer } from '../../netlink/writer.ts'
import { chainAttributes, chainToAttributes } from './chain.ts'
import { writeElements } from './encode-elements.ts'
import { beginNftablesMessage, type MessageName, writeBatchMark } from './messages.ts'
import { ruleAttributes, ruleToAttributes } from './rule.ts'
import { setAttributes, setToAttributes } from './set.ts'
import { tableAttributes } from './table.ts'
import { NFT_TABLE_F_OWNER } from './uapi.ts'
import { commentUserdata } from './userdata.ts'

export interface TableId {
  readonly family: NftFamily
  readonly table: string
}

/** A message of a batch: where it starts in the buffer, and the operation that it came from. */
export interface BatchMessage {
  readonly start: number
  /** Undefined for the messages that begin and end the batch. */
  readonly op: Op | undefined
}

/**
 * Writes the operations as one batch and returns its messages in order. The last operation asks to be acknowledged: the
 * kernel answers it once the transaction has taken effect, and answers any message that failed.
 */
export function writeBatch(writer: Writer, id: TableId, ops: readonly Op[]): BatchMessage[] {
  const batch = new BatchWriter(writer, id)
  batch.mark('begin')
  for (const op of ops) batch.write(op)
  batch.askForAck()
  batch.mark('end')
  return batch.messages
}

class BatchWriter {
  readonly messages: BatchMessage[] = []
  readonly #writer: Writer
  readonly #id: TableId
  #op: Op | undefined

  constructor(writer: Writer, id: TableId) {
    this.#writer = writer
    this.#id = id
  }

  mark(mark: 'begin' | 'end'): void {
    this.messages.push({ start: this.#writer.length, op: undefined })
    writeBatchMark(this.#writer, mark)
  }

  askForAck(): void {
    const { start } = this.messages.at(-1)!
    const at = start + 6
    const { view } = this.#writer
    view.setUint16(at, view.getUint16(at, LITTLE_ENDIAN) | NLM_F_ACK, LITTLE_ENDIAN)
  }

  write(op: Op): void {
    const { table } = this.#id
    this.#op = op
    switch (op.op) {
      case 'addTable':
        return this.#message('newTable', NLM_F_CREATE, (writer) =>
          tableAttributes.write(writer, {
            name: table,
            flags: op.isOwned === true ? NFT_TABLE_F_OWNER : 0,
            ...commentUserdata(op.comment),
          }),
        )
      case 'deleteTable':
        return this.#deleteTable()
      case 'addSet':
        return this.#message('newSet', NLM_F_CREATE, (writer) =>
          setAttributes.write(writer, setToAttributes(table, op.set, this.messages.length)),
        )
      case 'deleteSet':
        return this.#message('deleteSet', 0, (writer) => setAttributes.write(writer, { table, name: op.name }))
      case 'addChain':
        return this.#message('newChain', NLM_F_CREATE, (writer) =>
          chainAttributes.write(writer, chainToAttributes(table, op.chain)),
        )
      case 'deleteChain':
        return this.#message('deleteChain', 0, (writer) => chainAttributes.write(writer, { table, name: op.name }))
      case 'flushChain':
        return this.#message('deleteRule', 0, (writer) => ruleAttributes.write(writer, { table, chain: op.name }))
      case 'addRule':
        return this.#message('newRule', NLM_F_CREATE | (op.place === 'first' ? 0 : NLM_F_APPEND), (writer) =>
          ruleAttributes.write(writer, ruleToAttributes({ table, chain: op.chain }, op.rule)),
        )
      case 'addElements':
      case 'deleteElements':
      case 'destroyElements':
        return this.#elements(op)
    }
  }

  /** Created first, because there is no way on older kernels to delete a table only if it exists. */
  #deleteTable(): void {
    const attributes = (writer: Writer) => tableAttributes.write(writer, { name: this.#id.table })
    this.#message('newTable', NLM_F_CREATE, attributes)
    this.#message('deleteTable', 0, attributes)
  }

  #elements(op: Extract<Op, { op: 'addElements' | 'deleteElements' | 'destroyElements' }>): void {
    const action = op.op === 'addElements' ? 'add' : 'delete'
    const list = { table: this.#id.table, set: op.set, elements: op.elements, action } as const
    for (let next = 0; next < op.elements.length;) {
      const write = (writer: Writer) => (next = writeElements(writer, list, next))
      if (op.op === 'addElements') this.#message('newElements', NLM_F_CREATE, write)
      else this.#message(op.op, 0, write)
    }
  }

  #message(name: MessageName, flags: number, attributes: (writer: Writer) => unknown): void {
    this.messages.push({ start: this.#writer.length, op: this.#op })
    beginNftablesMessage(this.#writer, name, this.#id.family, flags)
    attributes(this.#writer)
    this.#writer.endMessage()
  }
}
