import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { lookUp } from './dns.ts'

let socket: Socket
afterEach(() => socket.close())

/** Asks a server that answers with this code and these records. */
async function answerOf(code: number, ...records: readonly Buffer[]): ReturnType<typeof lookUp> {
  const port = await serve((question) => {
    const header = Buffer.from(question.subarray(0, 12))
    header.writeUInt16BE(0x8180 | code, 2)
    header.writeUInt16BE(records.length, 6)
    header.writeUInt16BE(0, 10)
    const end = question.indexOf(0, 12) + 5
    return Buffer.concat([header, question.subarray(12, end), ...records])
  })
  return lookUp('127.0.0.1', port, 'web.default.svc.cluster.local', 4)
}

async function serve(answer: (question: Buffer) => Buffer): Promise<number> {
  socket = createSocket('udp4')
  socket.on('message', (message, { port, address }) => socket.send(answer(message), port, address))
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket.address().port
}

function record(type: number, data: readonly number[]): Buffer {
  return Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 5, 0, data.length, ...data])
}

test('an address is read', async () => {
  expect(await answerOf(0, record(1, [10, 96, 0, 80]))).toEqual({ kind: 'addresses', addresses: ['10.96.0.80'] })
})

test('an address is read behind an alias', async () => {
  const alias = Buffer.from([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 5, 0, 6, 3, 119, 119, 119, 0xc0, 16])
  const name = Buffer.from([3, 119, 119, 119, 0xc0, 16, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 96, 0, 80])
  expect(await answerOf(0, alias, name)).toEqual({ kind: 'addresses', addresses: ['10.96.0.80'] })
})

test.each([
  [3, 'NXDOMAIN'],
  [2, 'SERVFAIL'],
  [5, 'REFUSED'],
  [0, 'no address'],
])('the code %i is %s', async (code, name) => {
  expect(await answerOf(code)).toEqual({ kind: 'code', code: name })
})

test('what is cut off is no address', async () => {
  expect(await answerOf(0, record(1, [10, 96]).subarray(0, -9))).toEqual({
    kind: 'code',
    code: 'an answer that cannot be read',
  })
})

test('the answer to another question is none, and a port that is closed refuses', async () => {
  const port = await serve((question) => Buffer.from(question.map((byte, i) => (i < 2 ? byte ^ 0xff : byte))))
  expect(await lookUp('127.0.0.1', port, 'web', 4)).toEqual({ kind: 'silent', error: 'no answer within 1500 ms' })
  expect(await lookUp('127.0.0.1', 1, 'web', 4)).toEqual({ kind: 'silent', error: 'ECONNREFUSED' })
})
