import { expect, test } from 'vitest'
import { editDistance, nearest } from './nearest.ts'

const flags = ['proxy-mode', 'cluster-cidr', 'kubeconfig', 'config', 'cleanup']

test.each([
  ['proxy-moed', 'proxy-mode'],
  ['clustercidr', 'cluster-cidr'],
  ['KubeConfig', 'kubeconfig'],
  ['clean-up', 'cleanup'],
  ['cidr', 'cluster-cidr'],
])('nearest(%s) is %s', (word, expected) => {
  expect(nearest(word, flags)).toBe(expected)
})

test('nearest() suggests nothing for a word that is like none', () => {
  expect(nearest('no-such-flag', flags)).toBeUndefined()
  expect(nearest('', flags)).toBeUndefined()
})

test('editDistance() counts a swap of neighbours once', () => {
  expect(editDistance('moed', 'mode')).toBe(1)
  expect(editDistance('kitten', 'sitting')).toBe(3)
})
