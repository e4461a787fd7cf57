import { asBytes } from '../../lib/ip.ts'
import { describe, expect, it } from 'vitest'
import type { Op } from '../types.ts'
import { messagesOf } from '../../netlink/message.ts'
import { Writer } from '../../netlink/writer.ts'
import { writeBatch } from './batch.ts'
import { describeOp } from './describe.ts'
import { makeSet } from '../make-set.ts'

const services = makeSet('service-ips', ['ipv4_addr', 'inet_proto', 'inet_service'])
const key = (last: number) => asBytes(`\n\0\0${String.fromCharCode(last)}\x06\0\0\0\0P\0\0`)

describe('describeOp()', () => {
  it.each<[string, Op]>([
    ['add table', { op: 'addTable', comment: undefined }],
    ['delete table', { op: 'deleteTable' }],
    ['add set service-ips', { op: 'addSet', set: services }],
    ['add map service-ips', { op: 'addSet', set: { ...services, data: 'verdict' } }],
    ['delete chain c', { op: 'deleteChain', name: 'c' }],
    ['flush chain c', { op: 'flushChain', name: 'c' }],
    [
      'add rule "drop" to chain c',
      { op: 'addRule', chain: 'c', rule: { text: 'drop', comment: undefined, expressions: [] } },
    ],
    [
      'add element 10.0.0.7 . tcp . 80 to set service-ips',
      { op: 'addElements', set: services, elements: [{ key: key(7) }] },
    ],
    [
      'delete element 10.0.0.0 - 10.255.255.255 from set r',
      {
        op: 'deleteElements',
        set: { ...services, name: 'r', key: ['ipv4_addr'], interval: true },
        elements: [{ key: asBytes('\n\0\0\0'), keyEnd: asBytes('\n\xff\xff\xff') }],
      },
    ],
  ])('says "%s"', (words, op) => {
    expect(describeOp(op)).toBe(words)
  })

  it('names the one element of many that the kernel found fault with', () => {
    const op: Op = { op: 'addElements', set: services, elements: [1, 2, 3].map((n) => ({ key: key(n) })) }
    const writer = new Writer()
    const [, origin] = writeBatch(writer, { family: 'ip', table: 't' }, [op])
    const message = writer.written().subarray(origin!.start)
    // Headers of the element, of its key and of the value, and 12 bytes of value.
    const size = 4 + 4 + 4 + 12
    const { end } = [...messagesOf(message)][0]!
    const words = [3, 2, 1].map((fromEnd) => describeOp(op, message, end - fromEnd * size))
    expect(words).toEqual([1, 2, 3].map((n) => `add element 10.0.0.${n} . tcp . 80 to set service-ips`))
    expect(describeOp(op, message)).toBe('add 3 elements to set service-ips')
    expect(describeOp(op, message, 3)).toBe('add 3 elements to set service-ips')
  })
})
