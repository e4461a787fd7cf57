// Requests and their answers: sequence numbers, acknowledgements, dumps that were interrupted, errors.

import { KernelError } from '../lib/errors.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { atOnce, type Steps } from '../lib/steps.ts'
import {
  type Acknowledgement,
  type Message,
  messagesOf,
  numberMessages,
  decodeAcknowledgement,
  decodeDoneErrno,
} from './message.ts'
import { NLM_F_DUMP_INTR, NLM_F_MULTI, NLMSG_DONE, NLMSG_ERROR } from './uapi/netlink.ts'
import { errnoName } from '../system/libc.ts'

/**
 * Sends a request and gives the datagrams that come back, each valid until the next is asked for. `poll` ends when no
 * datagram is waiting. The seam for tests.
 */
export type Exchange = (request: Uint8Array, mode: 'wait' | 'poll') => Iterable<Uint8Array>

/** What to do about a list when the kernel says that it changed in the meantime. */
export type WhenInterrupted = 'again' | 'accept'

/** A dump is repeated this many times when what it lists changes in the meantime. */
const DUMP_ATTEMPTS = 20

/** How long a list is worked on before other work gets a turn. */
const SLICE_MS = 4

/** The numbers of the messages of a batch. */
export interface BatchNumbers {
  readonly first: number
  readonly count: number
}

export class NetlinkClient {
  readonly #exchange: Exchange
  /** The number of the last message: 32 bits, as in the header. A socket may live for more messages than that. */
  #sequence: number

  /** `sequence`: the number of the message before the first. */
  constructor(exchange: Exchange, sequence: number = 0) {
    this.#exchange = exchange
    this.#sequence = sequence
  }

  /** Sends one message that asks to be acknowledged. `op` names it in the error. */
  request(op: string, message: Uint8Array): void {
    const sequence = this.#number(message)
    for (const answer of this.#answers(message, sequence)) {
      if (answer.type !== NLMSG_ERROR) continue
      throwIfFailed(op, decodeAcknowledgement(answer))
      return
    }
  }

  /** Sends one message that is answered with a single one. */
  get<T>(op: string, message: Uint8Array, decode: (answer: Message) => T | undefined): T {
    const sequence = this.#number(message)
    for (const answer of this.#answers(message, sequence)) {
      if (answer.type === NLMSG_ERROR) throwIfFailed(op, decodeAcknowledgement(answer))
      const value = decode(answer)
      if (value !== undefined) return value
      break
    }
    throw new KernelError(op, 'EBADMSG')
  }

  /**
   * Sends one message that is answered with one for each thing that it asks for, and asks to be acknowledged. Returns the error at which
   * the kernel stopped; undefined when it has answered all.
   */
  getEach(op: string, message: Uint8Array, each: (answer: Message) => void): KernelError | undefined {
    const sequence = this.#number(message)
    for (const answer of this.#answers(message, sequence)) {
      if (answer.type !== NLMSG_ERROR) {
        each(answer)
        continue
      }
      const { errno, extack } = decodeAcknowledgement(answer)
      return errno === 0 ? undefined : new KernelError(op, errnoName(errno), extack)
    }
    throw new KernelError(op, 'EBADMSG')
  }

  /** Sends a message that is answered with a list. What `decode` gives as undefined is left out. */
  dump<T>(
    op: string,
    message: Uint8Array,
    decode: (answer: Message) => T | undefined,
    whenInterrupted: WhenInterrupted = 'again',
  ): T[] {
    let list: T[] = []
    const begin = () => {
      list = []
      return (answer: Message) => {
        const value = decode(answer)
        if (value !== undefined) list.push(value)
      }
    }
    atOnce(this.dumping(op, message, begin, whenInterrupted))
    return list
  }

  /**
   * As dump(), in steps, one for each part of the list. `begin` is called for each attempt and gives what the parts of that attempt
   * are passed to.
   */
  *dumping(
    op: string,
    message: Uint8Array,
    begin: () => (answer: Message) => void,
    whenInterrupted: WhenInterrupted = 'again',
  ): Steps<void> {
    // The caller may use its buffer again between two steps.
    const request = Uint8Array.from(message)
    for (let attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
      if ((yield* this.#dumpingOnce(op, request, { each: begin(), whenInterrupted })) === 'whole') return
    }
    throw new KernelError(`${op} while it changes`, 'EINTR')
  }

  /**
   * Sends a message that is answered with a list that may be very long, and passes on its parts. Lets other work in now
   * and then: nothing else may use the socket meanwhile. For lists that are never quite consistent anyway.
   */
  async dumpInPieces(op: string, message: Uint8Array, each: (answer: Message) => void): Promise<void> {
    const sequence = this.#number(message)
    let sliceEndMs = performance.now() + SLICE_MS
    for (const datagram of this.#exchange(message, 'wait')) {
      for (const answer of messagesOf(datagram)) {
        if (answer.sequence === sequence && !this.#passOn(op, answer, each)) return
      }
      if (performance.now() < sliceEndMs) continue
      await nextTurn()
      sliceEndMs = performance.now() + SLICE_MS
    }
  }

  /**
   * Sends many messages at once and returns what the kernel answers to them: the number of the message, counted from 0,
   * in place of the sequence number.
   */
  batch(messages: Uint8Array): Acknowledgement[] {
    const numbers = this.numberBatch(messages)
    return this.readBatch(numbers, this.#exchange(messages, 'poll'))
  }

  /** For a batch that is sent by others: gives its messages their numbers. */
  numberBatch(messages: Uint8Array): BatchNumbers {
    const first = (this.#sequence + 1) >>> 0
    const count = numberMessages(messages, first)
    this.#sequence = (this.#sequence + count) >>> 0
    return { first, count }
  }

  /** What the kernel answers to a batch, out of what it has sent. */
  readBatch({ first, count }: BatchNumbers, datagrams: Iterable<Uint8Array>): Acknowledgement[] {
    const acknowledgements: Acknowledgement[] = []
    for (const datagram of datagrams) {
      for (const answer of messagesOf(datagram)) {
        const index = (answer.sequence - first) >>> 0
        if (answer.type !== NLMSG_ERROR || index >= count) continue
        acknowledgements.push({ ...decodeAcknowledgement(answer), sequence: index })
      }
    }
    return acknowledgements
  }

  *#dumpingOnce(
    op: string,
    message: Uint8Array,
    { each, whenInterrupted }: { each: (answer: Message) => void; whenInterrupted: WhenInterrupted },
  ): Steps<'whole' | 'interrupted'> {
    let result: 'whole' | 'interrupted' = 'whole'
    const sequence = this.#number(message)
    for (const answer of this.#answers(message, sequence)) {
      // The rest has to be received all the same: it would be in the way of the next answer.
      if (whenInterrupted === 'again' && (answer.flags & NLM_F_DUMP_INTR) !== 0) result = 'interrupted'
      if (!this.#passOn(op, answer, result === 'whole' ? each : () => {})) break
      yield
    }
    return result
  }

  /** Passes a part of a list on. False: there will be no more. */
  #passOn(op: string, answer: Message, each: (answer: Message) => void): boolean {
    if (answer.type === NLMSG_ERROR) {
      throwIfFailed(op, decodeAcknowledgement(answer))
      return false
    }
    if (answer.type === NLMSG_DONE) {
      throwIfFailed(op, { errno: decodeDoneErrno(answer), extack: undefined })
      return false
    }
    each(answer)
    return (answer.flags & NLM_F_MULTI) !== 0
  }

  #number(message: Uint8Array): number {
    this.#sequence = (this.#sequence + 1) >>> 0
    numberMessages(message, this.#sequence)
    return this.#sequence
  }

  /** Answers to earlier requests, given up half-way, may still be waiting: they are passed over. */
  *#answers(request: Uint8Array, sequence: number): Generator<Message> {
    for (const datagram of this.#exchange(request, 'wait')) {
      for (const message of messagesOf(datagram)) if (message.sequence === sequence) yield message
    }
  }
}

function throwIfFailed(op: string, { errno, extack }: Pick<Acknowledgement, 'errno' | 'extack'>): void {
  if (errno !== 0) throw new KernelError(op, errnoName(errno), extack)
}
