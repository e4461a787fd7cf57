import { expect, test } from 'vitest'
import {
  add,
  assemble,
  call,
  exit,
  jumpIfNull,
  jumpUnless,
  label,
  load,
  loadMap,
  move,
  set,
  STACK,
  type Step,
  storeValue,
} from './instructions.ts'

/** As clang writes them down: bytes of one instruction in a line. */
function hex(steps: readonly Step[]): string[] {
  const { bytes, count } = assemble(steps)
  expect(bytes.length).toBe(count * 8)
  return Array.from({ length: count }, (_, i) => Buffer.from(bytes.slice(i * 8, i * 8 + 8), 'latin1').toString('hex'))
}

test('assemble() writes the instructions of the kernel', () => {
  expect(hex([move(6, 1), load(4, 0, 6, 24), add(2, -8), set(0, 1), call(7), exit()])).toEqual([
    'bf16000000000000',
    '6160180000000000',
    '07020000f8ffffff',
    'b700000001000000',
    '8500000007000000',
    '9500000000000000',
  ])
  expect(hex([storeValue(2, STACK, -2, 0)])).toEqual(['6a0afeff00000000'])
})

test('assemble() takes two instructions for a map, and counts both in jumps', () => {
  const steps = [jumpUnless(0, 6, 'end'), loadMap(1, 9), jumpIfNull(0, 'end'), set(0, 0), label('end'), exit()]
  expect(hex(steps)).toEqual([
    '5600040006000000',
    '1811000009000000',
    '0000000000000000',
    '1500010000000000',
    'b700000000000000',
    '9500000000000000',
  ])
})

test('assemble() refuses a jump to nowhere', () => {
  expect(() => assemble([jumpIfNull(0, 'end')])).toThrow('there is no label "end"')
})
