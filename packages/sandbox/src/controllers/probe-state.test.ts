import { expect, it } from 'vitest'
import { initialState, isFatal, nextState, type ProbeKind } from './probe-state.ts'
import type { Probe } from '../apiserver/objects/pod.ts'

/** What counts after each of the results. */
function follow(kind: ProbeKind, probe: Probe, results: string): string {
  let state = initialState(kind)
  return results
    .split('')
    .map((result) => {
      state = nextState(state, probe, result === '+')
      return isFatal(kind, probe, state) ? '!' : state.isGood ? '+' : '-'
    })
    .join('')
}

it.each([
  ['readiness', {}, '-+--+---+', '-++++++-+'],
  ['readiness', { successThreshold: 2, failureThreshold: 1 }, '++-+-++', '-+----+'],
  ['liveness', { failureThreshold: 2 }, '+-+--', '++++!'],
  ['startup', { failureThreshold: 3 }, '--+', '--+'],
  ['startup', { failureThreshold: 3 }, '---', '--!'],
] as const)('%s %j', (kind, probe, results, expected) => expect(follow(kind, probe, results)).toBe(expected))
