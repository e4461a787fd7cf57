import { describe, expect, test } from 'vitest'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { type Balance, BALANCE_ANNOTATION, BALANCES, balanceFor } from './balance.ts'
import { type Problem, ProblemLog } from './problems.ts'
import { ServiceModel } from './service-model.ts'

test.each<[Balance | undefined, Balance | undefined, readonly Balance[] | undefined, Balance]>([
  [undefined, undefined, undefined, 'random'],
  ['hash-client', undefined, undefined, 'hash-client'],
  [undefined, 'hash-client', undefined, 'hash-client'],
  ['random', 'hash-client', undefined, 'random'],
  ['least-connections', 'hash-client', ['random', 'hash-client'], 'hash-client'],
  ['hash-client', 'hash-connection', ['random'], 'random'],
])('asked for %s, and %s on this node, of %j: %s', (asked, node, able, chosen) => {
  expect(balanceFor(asked, { node, able })).toBe(chosen)
})

describe('ServiceModel', () => {
  function aModel(balances: readonly Balance[] = BALANCES) {
    const told: Problem[] = []
    const problems = new ProblemLog((problem) => told.push(problem))
    const model = new ServiceModel({ node: nodeView(), problems, allowExternalIPs: true, balances, startedMs: 0 })
    model.setSlice(slice(['10.1.0.1', '10.1.0.2']))
    return { model, told, balance: () => model.view('default/web')?.backends.balance }
  }
  const asking = (text: string) => service({ annotations: { [BALANCE_ANNOTATION]: text } })

  test('follows the annotation, and the node where there is none', () => {
    const { model, balance } = aModel()
    model.setService(asking('hash-client'))
    model.takeChanges()
    expect(balance()).toBe('hash-client')
    model.setService(service())
    expect(model.takeChanges()).toHaveLength(1)
    expect(balance()).toBe('random')
    model.setNode(nodeView({ balance: 'hash-connection' }))
    expect(model.takeChanges()).toHaveLength(1)
    expect(balance()).toBe('hash-connection')
  })

  test.each<[string, readonly Balance[], string]>([
    [
      'hash',
      BALANCES,
      '"hash" is ignored, it must be "random", "hash-connection", "hash-client" or "least-connections"',
    ],
    ['hash-client', ['random'], '"hash-client" is ignored, this proxy mode has only "random"'],
  ])('works as without %s, and tells the owner what is allowed', (text, balances, problem) => {
    const { model, told, balance } = aModel(balances)
    model.setService(asking(text))
    model.takeChanges()
    expect(balance()).toBe('random')
    expect(told).toEqual([
      {
        object: 'Annotations of Service default/web',
        message: `annotation ${BALANCE_ANNOTATION}: ${problem}`,
        owner: 'default/web',
      },
    ])
  })
})
