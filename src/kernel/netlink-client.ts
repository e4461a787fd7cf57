// Requests and their answers: sequence numbers, acknowledgements, dumps that were interrupted, errors.

import { KernelError } from '../lib/errors.ts'
import {
  type Acknowledgement,
  type Message,
  messagesOf,
  numberMessages,
  readAcknowledgement,
  readDoneErrno,
} from '../wire/message.ts'
import { NLM_F_DUMP_INTR, NLM_F_MULTI, NLMSG_DONE, NLMSG_ERROR } from '../wire/uapi/netlink.ts'
import { errnoName } from './libc.ts'

/**
 * Sends a request and gives the datagrams that come back, each valid until the next is asked for. `poll` ends when no
 * datagram is waiting. The seam for tests.
 */
export type Exchange = (request: Uint8Array, mode: 'wait' | 'poll') => Iterable<Uint8Array>

/** A dump is repeated this many times when what it lists changes in the meantime. */
const DUMP_ATTEMPTS = 20

export class NetlinkClient {
  readonly #exchange: Exchange
  #sequence = 0

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  /** Sends one message that asks to be acknowledged. `op` names it in the error. */
  request(op: string, message: Uint8Array): void {
    const sequence = this.#number(message)
    for (const answer of this.#answers(message, sequence, 'wait')) {
      if (answer.type !== NLMSG_ERROR) continue
      throwIfFailed(op, readAcknowledgement(answer))
      return
    }
  }

  /** Sends one message that is answered with a single one. */
  get<T>(op: string, message: Uint8Array, decode: (answer: Message) => T | undefined): T {
    const sequence = this.#number(message)
    for (const answer of this.#answers(message, sequence, 'wait')) {
      if (answer.type === NLMSG_ERROR) throwIfFailed(op, readAcknowledgement(answer))
      const value = decode(answer)
      if (value !== undefined) return value
      break
    }
    throw new KernelError(op, 'EBADMSG')
  }

  /** Sends a message that is answered with a list. What `decode` gives as undefined is left out. */
  dump<T>(op: string, message: Uint8Array, decode: (answer: Message) => T | undefined): T[] {
    for (let attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
      const list = this.#dumpOnce(op, message, decode)
      if (list !== undefined) return list
    }
    throw new KernelError(`${op} while it changes`, 'EINTR')
  }

  /**
   * Sends many messages at once and returns what the kernel answers to them: the number of the message, counted from 0,
   * in place of the sequence number.
   */
  batch(messages: Uint8Array): Acknowledgement[] {
    const first = this.#sequence + 1
    const count = numberMessages(messages, first)
    this.#sequence += count
    const acknowledgements: Acknowledgement[] = []
    for (const datagram of this.#exchange(messages, 'poll')) {
      for (const answer of messagesOf(datagram)) {
        const index = answer.sequence - first
        if (answer.type !== NLMSG_ERROR || index < 0 || index >= count) continue
        acknowledgements.push({ ...readAcknowledgement(answer), sequence: index })
      }
    }
    return acknowledgements
  }

  #dumpOnce<T>(op: string, message: Uint8Array, decode: (answer: Message) => T | undefined): T[] | undefined {
    const list: T[] = []
    let interrupted = false
    const sequence = this.#number(message)
    for (const answer of this.#answers(message, sequence, 'wait')) {
      if ((answer.flags & NLM_F_DUMP_INTR) !== 0) interrupted = true
      if (answer.type === NLMSG_ERROR) {
        throwIfFailed(op, readAcknowledgement(answer))
        break
      }
      if (answer.type === NLMSG_DONE) {
        throwIfFailed(op, { errno: readDoneErrno(answer), extack: undefined })
        break
      }
      const value = interrupted ? undefined : decode(answer)
      if (value !== undefined) list.push(value)
      if ((answer.flags & NLM_F_MULTI) === 0) break
    }
    return interrupted ? undefined : list
  }

  #number(message: Uint8Array): number {
    this.#sequence++
    numberMessages(message, this.#sequence)
    return this.#sequence
  }

  /** Answers to earlier requests, given up half-way, may still be waiting: they are passed over. */
  *#answers(request: Uint8Array, sequence: number, mode: 'wait' | 'poll'): Generator<Message> {
    for (const datagram of this.#exchange(request, mode)) {
      for (const message of messagesOf(datagram)) if (message.sequence === sequence) yield message
    }
  }
}

function throwIfFailed(op: string, { errno, extack }: Pick<Acknowledgement, 'errno' | 'extack'>): void {
  if (errno !== 0) throw new KernelError(op, errnoName(errno), extack)
}
