import { expect, test } from 'vitest'
import { placeOfClient, podNamed, withAddress } from './choose-node.ts'

test.each([
  ['explain', ['client', 'web'], 0],
  ['explain', ['--via', 'nodePort', 'client', 'web'], 2],
  ['explain', ['web'], undefined],
  ['explain', ['web', '--from', 'client'], 2],
  ['doctor', ['web', '--from=shop/client'], 1],
  ['doctor', ['web', 'x'], undefined],
])('the client of %s %j', (command, words, place) => {
  expect(placeOfClient(command, words)).toBe(place)
})

test.each([
  ['client', { namespace: 'default', name: 'client' }],
  ['shop/client', { namespace: 'shop', name: 'client' }],
  ['--from=shop/client', { namespace: 'shop', name: 'client' }],
  ['node', undefined],
  ['outside', undefined],
  ['10.244.0.7', undefined],
  ['fd00::7', undefined],
])('the pod that %s names', (word, pod) => {
  expect(podNamed(word)).toEqual(pod)
})

test('a proxy gets the address', () => {
  expect(withAddress(['client', 'web'], 0, '10.244.0.7')).toEqual(['10.244.0.7', 'web'])
  expect(withAddress(['web', '--from=client'], 1, '10.244.0.7')).toEqual(['web', '--from=10.244.0.7'])
})
