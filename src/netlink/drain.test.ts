import { expect, test } from 'vitest'
import { KernelError } from '../lib/errors.ts'
import { drainFor, drainSocket } from './drain.ts'
import { Writer } from './writer.ts'

/** Gives messages of these types, and then nothing: errors are thrown. */
function socketOf(...answers: (number | string)[]) {
  return {
    calls: 0,
    receive() {
      this.calls++
      const next = answers.shift()
      if (typeof next === 'string') throw new KernelError('receive from netlink', next)
      return next === undefined ? undefined : messageOf(next)
    },
  }
}

function messageOf(type: number): Uint8Array {
  const writer = new Writer()
  writer.beginMessage(type, 0)
  writer.endMessage()
  return writer.written()
}

function drained(...answers: (number | string)[]): [string, number[]] {
  const seen: number[] = []
  const result = drainSocket(socketOf(...answers), ({ type }) => seen.push(type))
  return [result, seen]
}

test('everything is passed on until nothing is left', () => {
  expect(drained(1, 2, 3)).toEqual(['whole', [1, 2, 3]])
  expect(drained()).toEqual(['whole', []])
})

test('what the kernel had to drop is reported, and the rest is passed on', () => {
  expect(drained(1, 'ENOBUFS', 2)).toEqual(['lost', [1, 2]])
})

test.for(['ENOMEM', 'EAGAIN', 'EIO'])('%s is a loss and no reason to end', (errno) => {
  expect(drained(1, errno, 2)).toEqual(['lost', [1]])
})

test('a socket that says for ever that something was lost is left alone', () => {
  const socket = { calls: 0, receive: (): undefined => fail(socket) }
  expect(drainSocket(socket, () => {})).toBe('lost')
  expect(socket.calls).toBeLessThan(100)
})

test('where more comes all the time, there is an end after a while', () => {
  let seen = 0
  const result = drainFor(5, { receive: () => messageOf(1) }, () => seen++)
  expect(result).toEqual({ isLost: false, isMore: true })
  expect(seen).toBeGreaterThan(0)
  const answers = socketOf(1, 'ENOBUFS', 2)
  expect(drainFor(60_000, answers, () => {})).toEqual({ isLost: true, isMore: false })
})

function fail(socket: { calls: number }): never {
  socket.calls++
  throw new KernelError('receive from netlink', 'ENOBUFS')
}
