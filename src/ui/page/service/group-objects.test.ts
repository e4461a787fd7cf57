import { expect, it } from 'vitest'
import type { KernelObject } from '../../protocol.ts'
import { groupByHook } from './group-objects.ts'

const object = (id: string, hook: string, rule: string, found: readonly string[]): KernelObject => ({
  id,
  family: 4,
  hook,
  place: 'kube-proxy services',
  rule,
  comment: null,
  found,
  packets: null,
  bytes: null,
  frontends: [],
  backends: [],
})

it('a rule that several packets meet stands once for each hook, with what each of them found', () => {
  const groups = groupByHook([
    object('1', 'prerouting', 'dnat to map @m', ['m: a']),
    object('2', 'prerouting', 'jump x', []),
    object('3', 'prerouting', 'dnat to map @m', ['m: b']),
    object('4', 'output', 'dnat to map @m', ['m: a']),
  ])
  expect(
    groups.map(({ hook, places }) => [
      hook,
      places.map(({ rules }) => rules.map(({ objects }) => objects.map(({ id }) => id))),
    ]),
  ).toEqual([
    ['prerouting', [[['1', '3'], ['2']]]],
    ['output', [[['4']]]],
  ])
})
