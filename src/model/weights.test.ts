import { describe, expect, test } from 'vitest'
import { ipBytes } from '../lib/ip.ts'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { ProblemLog } from './problems.ts'
import { ServiceModel } from './service-model.ts'
import { parseWeights, weightOf, WEIGHTS_ANNOTATION } from './weights.ts'

function weigh(text: string, ip: string, nodeName = 'node-x') {
  const problems: string[] = []
  const weights = parseWeights(text, problems)
  return { weight: weights && weightOf(weights, { address: ipBytes(ip), nodeName }), problems }
}

describe('parseWeights()', () => {
  test('is undefined without an annotation', () => {
    expect(parseWeights(undefined, [])).toBeUndefined()
    expect(parseWeights('  ', [])).toBeUndefined()
  })

  test.each([
    ['an address', '10.1.0.7=3', '10.1.0.7', 3],
    ['an address, however it is written', 'FD00:0::1=3', 'fd00::1', 3],
    ['a range', '10.2.0.0/16=5', '10.2.3.4', 5],
    ['a node', 'node-x=7', '10.1.0.7', 7],
    ['every other endpoint', '10.1.0.7=3,*=9', '10.1.0.8', 9],
    ['no endpoint: 1', '10.1.0.7=3', '10.1.0.8', 1],
    ['0, which is a weight', 'node-x=0', '10.1.0.7', 0],
  ])('weighs by %s', (_, text, ip, weight) => {
    expect(weigh(text, ip)).toEqual({ weight, problems: [] })
  })

  test('takes the most precise name: address, narrower range, wider range, node', () => {
    const text = ' *=1, node-x=2 , 10.0.0.0/8=3, 10.1.0.0/16=4, 10.1.0.7=5 '
    expect(weigh(text, '10.1.0.7').weight).toBe(5)
    expect(weigh(text, '10.1.0.8').weight).toBe(4)
    expect(weigh(text, '10.2.0.8').weight).toBe(3)
    expect(weigh(text, '192.0.2.1').weight).toBe(2)
    expect(weigh(text, '192.0.2.1', 'node-y').weight).toBe(1)
  })

  test.each(['node-x', 'node-x=', 'node-x=-1', 'node-x=65536', 'node-x=heavy', 'a b=1', '=1'])(
    'ignores %j and says so, and heeds the rest',
    (nonsense) => {
      const { weight, problems } = weigh(`${nonsense},10.1.0.7=2`, '10.1.0.7')
      expect(weight).toBe(2)
      expect(problems).toHaveLength(1)
      expect(problems[0]).toContain(`annotation ${WEIGHTS_ANNOTATION}: ${JSON.stringify(nonsense)} is ignored`)
    },
  )
})

test('parseWeights() tells of a hundred thousand bad parts in one line', () => {
  const problems: string[] = []
  parseWeights(Array.from({ length: 100_000 }, (_, i) => `x${i}`).join(','), problems)
  expect(problems).toHaveLength(1)
  expect(problems[0]).toMatch(/\(and 99999 more\)$/)
})

describe('ServiceModel', () => {
  const weighed = (text: string) => service({ annotations: { [WEIGHTS_ANNOTATION]: text } })
  const weights = (model: ServiceModel) => model.view('default/web')?.backends.map(({ weight }) => weight)

  test('gives backends the weights of the annotation, and tells when they change', () => {
    const problems = new ProblemLog(() => {})
    const model = new ServiceModel({ node: nodeView(), problems, allowExternalIPs: true, weighs: true, startedMs: 0 })
    model.setService(weighed('10.1.0.1=3'))
    model.setSlice(slice(['10.1.0.1', '10.1.0.2']))
    model.takeChanges()
    expect(weights(model)).toEqual([3, undefined])
    model.setService(weighed('10.1.0.1=3, '))
    model.setService(weighed('10.1.0.1=1,10.1.0.2=0'))
    expect(model.takeChanges()).toHaveLength(1)
    expect(weights(model)).toEqual([undefined, 0])
    model.setService(service())
    expect(model.takeChanges()).toHaveLength(1)
    expect(weights(model)).toEqual([undefined, undefined])
  })

  test('tells the health check port of a service with its views', () => {
    const problems = new ProblemLog(() => {})
    const model = new ServiceModel({ node: nodeView(), problems, allowExternalIPs: true, startedMs: 0 })
    const local = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 32000 }
    model.setService(service(local))
    model.takeChanges()
    expect(model.view('default/web')?.healthCheckNodePort).toBe(32000)
    model.setService(service({ ...local, healthCheckNodePort: 32001 }))
    expect(model.takeChanges()).toHaveLength(1)
    expect(model.view('default/web')?.healthCheckNodePort).toBe(32001)
  })
})
