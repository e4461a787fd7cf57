import { describe, expect, it } from 'vitest'
import { makePod } from '../../../../test/support/ui-snapshots.ts'
import { podState } from './pod-state.ts'
import { lastPart, shorten } from './shorten.ts'

const pod = makePod(1)

describe('what is said of a pod', () => {
  it.each([
    [{}, [], { kind: 'good', word: '' }],
    [{ ready: false }, [], { kind: 'off', word: 'not ready' }],
    [{ ready: false, phase: 'Pending' }, [], { kind: 'off', word: 'pending' }],
    [{ fail: 'refuse' as const }, [], { kind: 'bad', word: 'refuses' }],
    [{ fail: 'hang' as const }, ['node-1'], { kind: 'bad', word: 'hangs, ejected' }],
    [{ terminating: true }, [], { kind: 'off', word: 'terminating' }],
  ])('%j, ejected on %j', (change, ejectedOn, expected) => {
    expect(podState({ pod: { ...pod, ...change } }, ejectedOn)).toEqual(expected)
  })
})

describe('a name', () => {
  it('keeps its beginning and its end', () => {
    expect(shorten('whoami', 100)).toBe('whoami')
    expect(shorten('whoami-79cbd4f87-f2zqg', 100)).toBe('whoami-…-f2zqg')
    expect(lastPart('whoami-79cbd4f87-f2zqg', 60)).toBe('f2zqg')
  })
})
