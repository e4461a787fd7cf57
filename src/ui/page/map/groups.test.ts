import { expect, test } from 'vitest'
import { makeSnapshot } from '../../../../test/support/ui-snapshots.ts'
import { groupTargets } from './groups.ts'
import { podState } from './pod-state.ts'
import { planTargets } from './targets.ts'

function targetsOf(pods: number, sick: readonly number[] = []) {
  const snapshot = makeSnapshot({ pods, nodes: 3 })
  const broken = snapshot.pods.map((pod, i) => (sick.includes(i) ? { ...pod, fail: 'refuse' as const } : pod))
  return planTargets({ ...snapshot, pods: broken }, snapshot.services)
}
const stateOf = (target: Parameters<typeof podState>[0]) => podState(target, [])

test('24 pods are drawn one by one', () => {
  const { targets, groupOf } = groupTargets(targetsOf(24), stateOf, null)
  expect(targets).toHaveLength(24)
  expect(groupOf.size).toBe(0)
})

test('more pods are groups with counts; the sick ones and the selected one are drawn by themselves', () => {
  const all = targetsOf(300, [4, 17])
  const { targets, groupOf } = groupTargets(all, stateOf, all[100]!.id)
  expect(
    targets.filter(({ isGroup }) => isGroup === true).map(({ node, label, address }) => [node, label, address]),
  ).toEqual([
    ['node-1', 'whoami', '100 pods'],
    ['node-2', 'whoami', '98 pods'],
    ['node-3', 'whoami', '99 pods'],
  ])
  expect(targets.filter(({ isGroup }) => isGroup !== true).map(({ id }) => id)).toEqual([
    all[4]!.id,
    all[17]!.id,
    all[100]!.id,
  ])
  expect(groupOf.size).toBe(297)
})
