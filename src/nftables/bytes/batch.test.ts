import { asBytes, bytesOf } from '../../lib/ip.ts'
import { describe, expect, it } from 'vitest'
import type { Chain, Element, Op } from '../types.ts'
import { type Message, messagesOf } from '../../netlink/message.ts'
import { NLM_F_ACK, NLM_F_EXCL } from '../../netlink/uapi/netlink.ts'
import { NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END } from '../../netlink/uapi/nfnetlink.ts'
import { Writer } from '../../netlink/writer.ts'
import { writeBatch } from './batch.ts'
import { messageType } from './messages.ts'
import { makeSet } from '../make-set.ts'

const set = makeSet('cluster-ips', ['ipv4_addr'])
const chain: Chain = { name: 'services', comment: undefined, hook: undefined, rules: [] }
const rule = { text: 'drop', comment: undefined, expressions: [{ kind: 'verdict', code: 'drop' }] } as const
const element: Element = { key: asBytes('\n\0\0\x01') }

const everyOp: Op[] = [
  { op: 'addTable', comment: undefined },
  { op: 'addSet', set },
  { op: 'addChain', chain },
  { op: 'addRule', chain: 'services', rule },
  { op: 'addElements', set, elements: [element] },
  { op: 'deleteElements', set, elements: [element] },
  { op: 'flushChain', name: 'services' },
  { op: 'deleteChain', name: 'services' },
  { op: 'deleteSet', name: 'cluster-ips' },
  { op: 'deleteTable' },
]

function batchOf(ops: readonly Op[]): { messages: Message[]; origins: ReturnType<typeof writeBatch> } {
  const writer = new Writer()
  const origins = writeBatch(writer, { family: 'ip6', table: 'kube-proxy' }, ops)
  return { messages: [...messagesOf(writer.written())], origins }
}

describe('writeBatch()', () => {
  it('writes each operation as its message, between the two that make a transaction', () => {
    const { messages } = batchOf(everyOp)
    expect(messages.map(({ type }) => type)).toEqual([
      NFNL_MSG_BATCH_BEGIN,
      messageType('newTable'),
      messageType('newSet'),
      messageType('newChain'),
      messageType('newRule'),
      messageType('newElements'),
      messageType('deleteElements'),
      messageType('deleteRule'),
      messageType('deleteChain'),
      messageType('deleteSet'),
      // Created first, so that deleting it cannot fail.
      messageType('newTable'),
      messageType('deleteTable'),
      NFNL_MSG_BATCH_END,
    ])
    expect(new Set(messages.slice(1, -1).map(({ view, start }) => view.getUint8(start)))).toEqual(new Set([10]))
  })

  it('says which operation a message came from, and where it starts', () => {
    const { messages, origins } = batchOf(everyOp)
    expect(origins.map(({ start }) => start)).toEqual(messages.map(({ start }) => start - 16))
    const ops = [undefined, ...everyOp, everyOp.at(-1), undefined]
    expect(origins.map(({ op }) => op)).toEqual(ops)
  })

  it('asks for one acknowledgement, on the last operation', () => {
    const { messages } = batchOf(everyOp)
    expect(messages.map(({ flags }) => (flags & NLM_F_ACK) !== 0).indexOf(true)).toBe(messages.length - 2)
    expect(messages.filter(({ flags }) => (flags & NLM_F_ACK) !== 0)).toHaveLength(1)
  })

  it('never insists that something is new', () => {
    const { messages } = batchOf(everyOp)
    expect(messages.filter(({ flags }) => (flags & NLM_F_EXCL) !== 0)).toHaveLength(0)
  })

  it('spreads many elements over several messages of one operation', () => {
    const elements = Array.from({ length: 9000 }, (_, i) => ({ key: bytesOf(10, 1, i >> 8, i & 255) }))
    const op: Op = { op: 'addElements', set, elements }
    const { messages, origins } = batchOf([op])
    expect(messages.slice(1, -1).map(({ type }) => type)).toEqual(Array(3).fill(messageType('newElements')))
    expect(origins.slice(1, -1).map((origin) => origin.op)).toEqual([op, op, op])
  })
})
