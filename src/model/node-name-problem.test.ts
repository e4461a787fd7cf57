import { expect, test } from 'vitest'
import { nodeNameProblem } from './node-name-problem.ts'

const elsewhere = { withNodeName: 2, onThisNode: 0, examples: ['node-a', 'node-b'] }

test('nodeNameProblem() is silent when the Node or an endpoint has the name', () => {
  expect(nodeNameProblem('node-x', true, elsewhere)).toBeUndefined()
  expect(nodeNameProblem('node-x', false, { ...elsewhere, onThisNode: 1 })).toBeUndefined()
})

test('nodeNameProblem() names the node names that there are', () => {
  expect(nodeNameProblem('node-x', false, elsewhere)).toContain(
    'Node name "node-x" matches no Node and no endpoint (endpoints are on "node-a", "node-b")',
  )
  expect(nodeNameProblem('node-x', false, { withNodeName: 0, onThisNode: 0, examples: [] })).toContain(
    '(no endpoint names any node)',
  )
})

test.each([
  ['node-a.example.com', 'node-a'],
  ['node-a', 'node-a.example.com'],
  ['node-a', 'Node-A'],
])('nodeNameProblem() suggests the name that only differs in its spelling: %s for %s', (ours, theirs) => {
  const places = { withNodeName: 1, onThisNode: 0, examples: [theirs] }
  expect(nodeNameProblem(ours, false, places)).toContain(`the name of this node is probably "${theirs}"`)
})
