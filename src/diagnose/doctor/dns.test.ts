import { expect, test } from 'vitest'
import { decodeAnswer, encodeQuestion } from './dns.ts'

const question = encodeQuestion(7, 'web.default.svc.cluster.local', 4)

/** What a server makes of the question. */
function answer(code: number, ...records: readonly Buffer[]): Buffer {
  const header = Buffer.from(question.subarray(0, 12))
  header.writeUInt16BE(0x8180 | code, 2)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question.subarray(12), ...records])
}

function record(type: number, data: readonly number[]): Buffer {
  return Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 5, 0, data.length, ...data])
}

test('an address is read behind an alias and a pointer', () => {
  const message = answer(0, record(5, [3, 119, 119, 119, 0]), record(1, [10, 96, 0, 80]))
  expect(decodeAnswer(message, 7, 4)).toEqual({ kind: 'addresses', addresses: ['10.96.0.80'] })
})

test('a code is given by its name, and what is cut off is no address', () => {
  expect(decodeAnswer(answer(3), 7, 4)).toEqual({ kind: 'code', code: 'NXDOMAIN' })
  expect(decodeAnswer(answer(0), 7, 4)).toEqual({ kind: 'code', code: 'no address' })
  expect(decodeAnswer(answer(0, record(1, [10, 96])).subarray(0, -9), 7, 4)).toEqual({
    kind: 'code',
    code: 'an answer that cannot be read',
  })
})

test('the answer to another question is none', () => {
  expect(decodeAnswer(answer(0, record(1, [10, 96, 0, 80])), 8, 4)).toBeUndefined()
})
