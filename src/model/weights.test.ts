import { describe, expect, test } from 'vitest'
import { ipBytes } from '../lib/ip.ts'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { ProblemLog, type Problem } from './problems.ts'
import { ServiceModel } from './service-model.ts'
import { parseWeights, weightOf, WEIGHTS_ANNOTATION } from './weights.ts'

function weigh(text: string, ip: string, nodeName = 'node-x') {
  const problems: string[] = []
  const weights = parseWeights(text, (part, allowed) => problems.push(`${part}: ${allowed}`))
  return { weight: weights && weightOf(weights, { address: ipBytes(ip), nodeName }), problems }
}

describe('parseWeights()', () => {
  test('is undefined of an empty annotation', () => {
    expect(weigh('  ', '10.1.0.7').weight).toBeUndefined()
  })

  test.each([
    ['an address', '10.1.0.7=3', '10.1.0.7', 3],
    ['an address, however it is written', 'FD00:0::1=3', 'fd00::1', 3],
    ['a range', '10.2.0.0/16=5', '10.2.3.4', 5],
    ['a node', 'node-x=7', '10.1.0.7', 7],
    ['every other endpoint', '10.1.0.7=3,*=9', '10.1.0.8', 9],
    ['no endpoint: 1', '10.1.0.7=3', '10.1.0.8', 1],
    ['0, which is a weight', 'node-x=0', '10.1.0.7', 0],
    ['a percentage', '10.1.0.7=25%', '10.1.0.7', 0.25],
    ['a weight alone', '3', '10.1.0.7', 3],
    ['a percentage alone', '150%, 10.1.0.7=1', '10.1.0.8', 1.5],
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

  test.each(['node-x', '1%%', 'node-x=1.5', 'node-x=', 'node-x=-1', 'node-x=65536', 'node-x=heavy', 'a b=1', '=1'])(
    'ignores %j and says so, and heeds the rest',
    (nonsense) => {
      const { weight, problems } = weigh(`${nonsense},10.1.0.7=2`, '10.1.0.7')
      expect(weight).toBe(2)
      expect(problems).toHaveLength(1)
      expect(problems[0]).toMatch(`${nonsense}: must `)
    },
  )
})

describe('ServiceModel', () => {
  const weighed = (text: string) => service({ annotations: { [WEIGHTS_ANNOTATION]: text } })
  const weights = (model: ServiceModel) => model.view('default/web')?.backends.map(({ weight }) => weight)

  function aModel() {
    const told: Problem[] = []
    const problems = new ProblemLog((problem) => told.push(problem))
    const model = new ServiceModel({ node: nodeView(), problems, allowExternalIPs: true, startedMs: 0 })
    return { model, told }
  }

  test('gives backends the weights of the annotation, and tells when they change', () => {
    const { model } = aModel()
    model.setService(weighed('10.1.0.1=3'))
    model.setSlice(slice(['10.1.0.1', '10.1.0.2']))
    model.takeChanges()
    expect(weights(model)).toEqual([3, undefined])
    model.setService(weighed('10.1.0.1=3, '))
    model.setService(weighed('10.1.0.1=1,10.1.0.2=2'))
    expect(model.takeChanges()).toHaveLength(1)
    expect(weights(model)).toEqual([undefined, 2])
    model.setService(service())
    expect(model.takeChanges()).toHaveLength(1)
    expect(weights(model)).toEqual([undefined, undefined])
  })

  test('leaves out backends of weight 0 while another weighs more', () => {
    const { model } = aModel()
    const addresses = () => model.view('default/web')?.backends.map(({ ip }) => ip)
    model.setService(weighed('10.1.0.1=0'))
    model.setSlice(slice(['10.1.0.1', '10.1.0.2']))
    model.takeChanges()
    expect(addresses()).toEqual(['10.1.0.2'])
    model.setService(weighed('0'))
    model.takeChanges()
    expect(addresses()).toEqual(['10.1.0.1', '10.1.0.2'])
    expect(weights(model)).toEqual([undefined, undefined])
  })

  test('looks for another that weighs more among those that the policy allows', () => {
    const { model } = aModel()
    model.setService(service({ internalTrafficPolicy: 'Local', annotations: { [WEIGHTS_ANNOTATION]: 'node-a=0' } }))
    model.setSlice(slice([{ address: '10.1.0.1', nodeName: 'node-a' }, '10.1.0.2']))
    model.takeChanges()
    expect(model.view('default/web')?.backends.map(({ ip }) => ip)).toEqual(['10.1.0.1'])
  })

  test('heeds the annotation of a slice before that of the Service, and makes whole numbers of percentages', () => {
    const { model, told } = aModel()
    model.setService(weighed('2'))
    model.setSlice(slice(['10.1.0.1'], { annotations: { [WEIGHTS_ANNOTATION]: '25%' } }))
    model.setSlice(slice(['10.1.0.2'], { name: 'web-2', annotations: { [WEIGHTS_ANNOTATION]: 'many' } }))
    model.setSlice(slice(['10.1.0.3'], { name: 'web-3' }))
    model.takeChanges()
    expect(weights(model)).toEqual([25, 100, 200])
    expect(told).toEqual([
      {
        object: 'Annotations of EndpointSlice default/web-2',
        message: expect.stringMatching(`^annotation ${WEIGHTS_ANNOTATION}: "many" is ignored, it must be NAME=WEIGHT`),
        owner: 'default/web',
      },
    ])
    model.setSlice(slice(['10.1.0.1'], { annotations: { [WEIGHTS_ANNOTATION]: '50%' } }))
    expect(model.takeChanges()).toHaveLength(1)
    expect(weights(model)).toEqual([50, 100, 200])
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
