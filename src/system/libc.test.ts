import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { KernelError } from '../lib/errors.ts'
import { boundCall, errnoName, lastErrno, mustCall, tryCall } from './libc.ts'

const NO_FD = -1

/** Sets errno of this thread to ENOENT, as calls of Node and V8 do that nobody sees. */
function failElsewhere(): void {
  expect(() => readFileSync('/nowhere/at/all')).toThrow('ENOENT')
}

test('why a call failed is known whatever has failed elsewhere since', () => {
  expect(tryCall('close', NO_FD)).toBe(-1)
  failElsewhere()
  expect(lastErrno()).toBe('EBADF')
  expect(tryCall('socket', 0xffff, 0, 0)).toBe(-1)
  failElsewhere()
  expect(lastErrno()).toBe('EAFNOSUPPORT')
})

test('the same holds for the functions themselves', () => {
  const close = boundCall('close')
  tryCall('socket', 0xffff, 0, 0)
  expect(close(NO_FD)).toBe(-1)
  failElsewhere()
  expect(lastErrno()).toBe('EBADF')
})

test('a call that has to succeed says what was attempted, and why it failed', () => {
  expect(() => mustCall('close nothing', 'close', NO_FD)).toThrow(new KernelError('close nothing', 'EBADF'))
})

test('a number without a name is reported as it is', () => {
  expect(errnoName(2)).toBe('ENOENT')
  expect(errnoName(11)).toBe('EAGAIN')
  expect(errnoName(4095)).toBe('errno 4095')
})
