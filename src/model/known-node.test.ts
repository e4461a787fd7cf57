import { expect, test } from 'vitest'
import type { Node } from '../kube/types.ts'
import { keepKnown } from './known-node.ts'

const bare: Node = { name: 'n1', zone: 'b', addresses: [], podCIDRs: [], deleting: false, taints: ['new'] }
const known: Node = {
  ...bare,
  zone: 'a',
  addresses: [{ type: 'InternalIP', address: '192.0.2.7' }],
  podCIDRs: ['10.4.0.0/24'],
  taints: [],
}
const other: Node = { ...known, addresses: [{ type: 'InternalIP', address: '192.0.2.8' }], podCIDRs: ['10.5.0.0/24'] }
const named = [{ type: 'Hostname', address: 'n1' }]

test.each([
  ['the first is as it is', undefined, bare, bare, []],
  ['one that says something else is followed', known, other, other, []],
  [
    'one that says nothing is taken to be as before',
    known,
    bare,
    { ...bare, addresses: known.addresses, podCIDRs: known.podCIDRs },
    ['addresses', 'podCIDRs'],
  ],
  [
    'a name is no address',
    known,
    { ...other, addresses: named },
    { ...other, addresses: known.addresses },
    ['addresses'],
  ],
  ['what was not known is not kept', bare, { ...bare, addresses: named }, { ...bare, addresses: named }, []],
] as const)('keepKnown(): %s', (_, before, node, expected, kept) => {
  expect(keepKnown(before, node)).toEqual({ node: expected, kept })
})
