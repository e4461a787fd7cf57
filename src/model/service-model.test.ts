import { describe, expect, test } from 'vitest'
import { draining, nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { BALANCE_ANNOTATION } from './balance.ts'
import { ProblemLog } from './problems.ts'
import { ServiceModel } from './service-model.ts'
import type { NodeView, ServicePortChange } from './types.ts'
import { WEIGHTS_ANNOTATION } from './weights.ts'

function aModel(node: Partial<NodeView> = {}) {
  const told: string[] = []
  const problems = new ProblemLog(({ object, message }) => told.push(`${object}: ${message}`))
  const options = { node: nodeView(node), problems, allowExternalIPs: true, startedMs: 1000 }
  return { told, problems, model: new ServiceModel(options) }
}

/** One word per change: `+name`, `-name`, `~name`. */
function words(changes: readonly ServicePortChange[]): string[] {
  return changes.map(({ name, before, after }) => `${before ? (after ? '~' : '-') : '+'}${name}`)
}

const backendsOf = (model: ServiceModel, name: string) =>
  model.view(name)?.backends.map(({ ip, port }) => `${ip}:${port}`)
const kindsOf = (model: ServiceModel, name: string) => model.view(name)?.frontends.map(({ kind }) => kind)

describe('ServiceModel changes', () => {
  test('come when they are taken, and once', () => {
    const { model } = aModel()
    model.setService(service())
    model.setSlice(slice(['10.1.0.1']))
    expect(model.view('default/web')).toBeUndefined()
    expect(words(model.takeChanges())).toEqual(['+default/web'])
    expect(backendsOf(model, 'default/web')).toEqual(['10.1.0.1:8080'])
    expect(model.takeChanges()).toEqual([])
  })

  test('tell the view before and the view after', () => {
    const { model } = aModel()
    model.setService(service())
    const [added] = model.takeChanges()
    expect(added).toMatchObject({ name: 'default/web', before: undefined })
    model.setSlice(slice(['10.1.0.1']))
    const [changed] = model.takeChanges()
    expect(changed?.before).toBe(added?.after)
    expect(changed?.after).toBe(model.view('default/web'))
    model.deleteService('default/web')
    const [removed] = model.takeChanges()
    expect(removed).toEqual({ name: 'default/web', before: changed?.after, after: undefined })
    expect([...model.views()]).toEqual([])
  })

  test('are none when an object says the same again or something that does not matter', () => {
    const { model } = aModel()
    model.setService(service())
    model.setSlice(slice(['10.1.0.1', '10.1.0.2']))
    model.takeChanges()
    model.setService(service({ annotations: { 'service.x': 'y' } }))
    model.setSlice(slice(['10.1.0.2', '10.1.0.1']))
    model.setSlice(slice(['10.1.0.1', '10.1.0.2', { address: '10.1.0.3', ready: false }]))
    expect(model.takeChanges()).toEqual([])
  })

  test('are none when a change is taken back in time', () => {
    const { model } = aModel()
    model.setService(service())
    model.takeChanges()
    model.deleteService('default/web')
    expect(model.changeCounts.servicesPending).toBe(1)
    model.setService(service())
    expect(model.changeCounts.servicesPending).toBe(0)
    expect(model.takeChanges()).toEqual([])
  })

  test('concern only the ports that changed', () => {
    const { model } = aModel()
    const ports = [{ name: 'a' }, { name: 'b', port: 81 }]
    model.setService(service({ ports }))
    model.setSlice(slice(['10.1.0.1'], { ports: [{ name: 'a' }, { name: 'b', port: 81 }] }))
    model.takeChanges()
    model.setSlice(slice(['10.1.0.1'], { ports: [{ name: 'a' }, { name: 'b', port: 82 }] }))
    expect(words(model.takeChanges())).toEqual(['~default/web:b'])
    model.setService(service({ ports: [{ name: 'a' }, { name: 'c', port: 83 }] }))
    expect(words(model.takeChanges())).toEqual(['+default/web:c', '-default/web:b'])
  })

  test('follow the node where it matters, and only there', () => {
    const { model } = aModel()
    model.setService(service({ internalTrafficPolicy: 'Local' }))
    model.setSlice(slice([{ address: '10.1.0.1', nodeName: 'node-b' }]))
    model.takeChanges()
    model.setNode(nodeView({ nodePortAddresses: { kind: 'all' }, masqueradeMark: 1 }))
    model.setNode(nodeView({ zone: 'zone-b' }))
    expect(model.takeChanges()).toEqual([])
    model.setNode(nodeView({ nodeName: 'node-b' }))
    expect(words(model.takeChanges())).toEqual(['~default/web'])
    expect(backendsOf(model, 'default/web')).toEqual(['10.1.0.1:8080'])
  })

  test('follow the address of the node where source ranges let it in', () => {
    const { model } = aModel()
    const ingress = [{ ip: '203.0.113.9', ipMode: 'VIP' }]
    model.setService(service({ type: 'LoadBalancer', ingress, loadBalancerSourceRanges: ['192.168.0.0/16'] }))
    model.takeChanges()
    expect(model.view('default/web')?.frontends[1]?.allowedSources).toHaveLength(2)
    model.setNode(nodeView({ nodeIp: '172.16.0.1' }))
    model.takeChanges()
    expect(model.view('default/web')?.frontends[1]?.allowedSources).toHaveLength(1)
  })

  test('cannot be of another family', () => {
    expect(() => aModel().model.setNode(nodeView({ family: 6 }))).toThrow('Cannot plan for IPv6: the model is IPv4')
  })
})

describe('ServiceModel leaves out ports that ask too much of the kernel, and says so', () => {
  const many = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i))
  const names = many(2000, (i) => `p${i}`)
  const slices = many(5, (s) =>
    slice(
      many(1000, (i) => `10.${s + 1}.${i >> 8}.${i & 255}`),
      { name: `web-${s}`, ports: names.map((name, i) => ({ name, port: i + 1 })) },
    ),
  )

  test('where ports and endpoints multiply', () => {
    const { model, told } = aModel()
    model.setService(service({ ports: names.map((name, i) => ({ name, port: i + 1 })) }))
    for (const each of slices) model.setSlice(each)
    model.takeChanges()
    // 5,000 endpoints for a cluster IP and, perhaps, a node port.
    expect([...model.views()]).toHaveLength(99)
    expect(told[0]).toContain('Service port default/web:p99: the port is left out: with 10002 entries')
  })

  test('where ports, addresses and allowed sources multiply', () => {
    const { model, told } = aModel()
    const ingress = many(10, (i) => ({ ip: `203.0.113.${i + 1}`, ipMode: 'VIP' }))
    const loadBalancerSourceRanges = many(20_000, (i) => `100.64.${i >> 8}.${i & 255}/32`)
    const ports = names.map((name, i) => ({ name, port: i + 1 }))
    model.setService(service({ type: 'LoadBalancer', ingress, loadBalancerSourceRanges, ports }))
    model.takeChanges()
    expect([...model.views()]).toHaveLength(4)
    expect(told[0]).toContain('the port is left out')
  })

  test.each([
    ['weights of the Service', { [WEIGHTS_ANNOTATION]: '10.1.0.1=127, 10.1.0.2=128' }, {}],
    ['weights of a slice', {}, { [WEIGHTS_ANNOTATION]: '10.1.0.1=127, 10.1.0.2=128' }],
    ['least connections', { [BALANCE_ANNOTATION]: 'least-connections' }, {}],
  ])('where %s give two endpoints 256 places', (_, annotations, ofSlice) => {
    const { model } = aModel()
    const ports = names.slice(0, 100).map((name, i) => ({ name, port: i + 1 }))
    const externalIPs = many(200, (i) => `203.0.113.${i}`)
    model.setService(service({ annotations, externalIPs, ports }))
    model.setSlice(slice(['10.1.0.1', '10.1.0.2'], { annotations: ofSlice, ports }))
    model.takeChanges()
    // 257 entries for each of 202 frontends.
    expect([...model.views()]).toHaveLength(19)
  })

  test('and serves them when they ask for less', () => {
    const { model, problems } = aModel()
    model.setService(service({ ports: names.map((name, i) => ({ name, port: i + 1 })) }))
    for (const each of slices) model.setSlice(each)
    model.takeChanges()
    for (const { namespace, name } of slices.slice(1)) model.deleteSlice(`${namespace}/${name}`)
    model.setService(service({ ports: names.slice(0, 400).map((name, i) => ({ name, port: i + 1 })) }))
    model.takeChanges()
    expect([...model.views()]).toHaveLength(400)
    expect([...problems.problems()]).toEqual([])
  })
})

test('A mode that compares one frontend after the other tells the owner of a Service with thousands, once', () => {
  const told: unknown[] = []
  const problems = new ProblemLog((problem) => told.push(problem))
  const externalIPs = Array.from({ length: 1000 }, (_, i) => `203.0.${i >> 8}.${i & 255}`)
  for (const comparesEach of [false, true]) {
    const model = new ServiceModel({ node: nodeView(), problems, allowExternalIPs: true, startedMs: 0, comparesEach })
    model.setService(service({ externalIPs: externalIPs.slice(1) }))
    model.takeChanges()
    expect(told).toEqual([])
    model.setService(service({ externalIPs }))
    model.takeChanges()
    model.setService(service({ externalIPs, ports: [{ port: 81 }] }))
    model.takeChanges()
    if (!comparesEach) continue
    const message = expect.stringContaining('more than 1000 addresses and ports') as string
    const about = { object: 'Size of Service default/web', owner: 'default/web', event: 'ServiceIsLarge' }
    expect(told).toEqual([{ ...about, message }])
    model.deleteService('default/web')
    model.takeChanges()
    expect([...problems.problems()]).toEqual([])
  }
})

describe('ServiceModel slices', () => {
  test('may come before their service and stay after it', () => {
    const { model } = aModel()
    model.setSlice(slice(['10.1.0.1']))
    expect(model.takeChanges()).toEqual([])
    model.setService(service())
    model.takeChanges()
    model.deleteService('default/web')
    model.takeChanges()
    model.setService(service())
    model.takeChanges()
    expect(backendsOf(model, 'default/web')).toEqual(['10.1.0.1:8080'])
  })

  test('move at once when their label changes, and end when it goes', () => {
    const { model } = aModel()
    model.setService(service())
    model.setService(service({ name: 'api', clusterIPs: ['10.0.0.2'] }))
    model.setSlice(slice(['10.1.0.1']))
    model.takeChanges()
    model.setSlice(slice(['10.1.0.1'], { serviceName: 'api' }))
    expect(words(model.takeChanges()).sort()).toEqual(['~default/api', '~default/web'])
    expect(backendsOf(model, 'default/web')).toEqual([])
    expect(backendsOf(model, 'default/api')).toEqual(['10.1.0.1:8080'])
    model.setSlice(slice(['10.1.0.1'], { serviceName: '' }))
    model.takeChanges()
    expect(backendsOf(model, 'default/api')).toEqual([])
  })

  test('of the other family are ignored, also when they were of ours', () => {
    const { model, told } = aModel()
    model.setService(service())
    model.setSlice(slice(['10.1.0.1']))
    model.takeChanges()
    model.setSlice(slice(['fd00::1'], { addressType: 'IPv6' }))
    model.takeChanges()
    expect(backendsOf(model, 'default/web')).toEqual([])
    expect(told).toEqual([])
  })

  test('are merged, and an endpoint in two of them outlives one', () => {
    const { model } = aModel()
    model.setService(service())
    model.setSlice(slice(['10.1.0.1', '10.1.0.2'], { name: 'b' }))
    model.setSlice(slice(['10.1.0.1'], { name: 'a' }))
    model.takeChanges()
    expect(backendsOf(model, 'default/web')).toEqual(['10.1.0.1:8080', '10.1.0.2:8080'])
    model.deleteSlice('default/b')
    model.takeChanges()
    expect(backendsOf(model, 'default/web')).toEqual(['10.1.0.1:8080'])
  })
})

test('ServiceModel believes the same of two slices that disagree, whichever came first', () => {
  const here = slice([{ address: '10.1.0.1', nodeName: 'node-a' }], { name: 'a' })
  const there = slice([{ address: '10.1.0.1', nodeName: 'node-b' }], { name: 'b' })
  for (const order of [
    [here, there],
    [there, here],
  ]) {
    const { model } = aModel()
    model.setService(service())
    for (const object of order) model.setSlice(object)
    model.takeChanges()
    expect([...model.view('default/web')!.backends]).toMatchObject([{ isLocal: true }])
  }
})

describe('ServiceModel problems', () => {
  test('are reported once per object, not once per event', () => {
    const { model, told } = aModel()
    for (const address of ['10.1.0.1', '10.1.0.2']) model.setSlice(slice([address, 'garbage']))
    expect(told).toEqual([
      'EndpointSlice default/web-1: endpoint address "garbage" is not an IPv4 address and is ignored',
    ])
    model.deleteSlice('default/web-1')
    model.setSlice(slice(['garbage']))
    expect(told).toHaveLength(2)
  })

  test('include frontends that another service has, until it goes', () => {
    const { model, told } = aModel()
    const shared = { type: 'NodePort', ports: [{ nodePort: 30000 }] }
    model.setService(service({ ...shared, name: 'young', clusterIPs: ['10.0.0.2'], createdMs: 2 }))
    model.takeChanges()
    expect(kindsOf(model, 'default/young')).toEqual(['clusterIP', 'nodePort'])
    model.setService(service({ ...shared, name: 'old', createdMs: 1 }))
    expect(words(model.takeChanges()).sort()).toEqual(['+default/old', '~default/young'])
    expect(kindsOf(model, 'default/young')).toEqual(['clusterIP'])
    model.setService(service({ ...shared, name: 'young', clusterIPs: ['10.0.0.3'], createdMs: 2 }))
    model.takeChanges()
    expect(told).toEqual([
      'Service port default/young: node port 30000/TCP belongs to default/old; this port does not get it',
    ])
    model.deleteService('default/old')
    expect(words(model.takeChanges()).sort()).toEqual(['-default/old', '~default/young'])
    expect(kindsOf(model, 'default/young')).toEqual(['clusterIP', 'nodePort'])
  })
})

describe('ServiceModel numbers', () => {
  test('count events and what is pending', () => {
    const { model } = aModel()
    model.setService(service())
    model.setService(service())
    model.setSlice(slice(['10.1.0.1']))
    model.setSlice(slice(['10.1.0.1']))
    model.setSlice(slice(['fd00::1'], { name: 'six', addressType: 'IPv6' }))
    expect(model.changeCounts).toEqual({ servicesPending: 1, servicesTotal: 2, endpointsPending: 1, endpointsTotal: 2 })
    model.takeChanges()
    expect(model.changeCounts).toEqual({ servicesPending: 0, servicesTotal: 2, endpointsPending: 0, endpointsTotal: 2 })
    model.deleteSlice('default/web-1')
    model.deleteSlice('default/web-1')
    expect(model.changeCounts).toMatchObject({ endpointsPending: 1, endpointsTotal: 3 })
  })

  test('have trigger times of changes after the start, without those of slices that went', () => {
    const { model } = aModel()
    model.setSlice(slice(['10.1.0.1'], { triggerTimeMs: 999 }))
    model.setSlice(slice(['10.1.0.2'], { triggerTimeMs: 1001 }))
    model.setSlice(slice(['10.1.0.2'], { triggerTimeMs: 1002 }))
    model.setSlice(slice(['10.1.0.3'], { triggerTimeMs: 1003 }))
    model.setSlice(slice(['10.1.0.1'], { name: 'api-1', serviceName: 'api', triggerTimeMs: 1004 }))
    model.deleteSlice('default/api-1')
    expect(model.takeTriggerTimes()).toEqual(new Map([['default/web', [1001, 1003]]]))
    expect(model.takeTriggerTimes()).toEqual(new Map())
  })

  test('have the health checks of load balancers with policy Local', () => {
    const { model } = aModel()
    const wish = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30100 }
    const here = { nodeName: 'node-a' }
    model.setService(service(wish))
    model.setService(service({ name: 'plain', clusterIPs: ['10.0.0.2'] }))
    model.setSlice(slice([{ address: '10.1.0.1', ...here }, { address: '10.1.0.2', ...here, ...draining }, '10.1.0.3']))
    expect(model.healthChecks()).toEqual([])
    model.takeChanges()
    expect(model.healthChecks()).toEqual([{ namespace: 'default', service: 'web', port: 30100, localEndpoints: 1 }])
    model.setSlice(slice([{ address: '10.1.0.2', ...here, ...draining }]))
    model.takeChanges()
    expect(model.healthChecks()).toMatchObject([{ localEndpoints: 0 }])
    model.setService(service())
    model.takeChanges()
    expect(model.healthChecks()).toEqual([])
  })

  test('have the service ports without local endpoints, by policy', () => {
    const { model } = aModel()
    const ports = [
      { name: 'a', nodePort: 1 },
      { name: 'b', port: 81, nodePort: 2 },
    ]
    const sliced = { ports: [{ name: 'a' }, { name: 'b' }] }
    model.setService(
      service({ type: 'NodePort', externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local', ports }),
    )
    model.setSlice(slice(['10.1.0.1'], sliced))
    model.takeChanges()
    expect(model.noLocalEndpoints).toEqual({ internal: 2, external: 2 })
    model.setService(service({ type: 'NodePort', externalTrafficPolicy: 'Local', ports }))
    model.takeChanges()
    expect(model.noLocalEndpoints).toEqual({ internal: 0, external: 2 })
    model.setSlice(slice([{ address: '10.1.0.1', nodeName: 'node-a' }], sliced))
    model.takeChanges()
    expect(model.noLocalEndpoints).toEqual({ internal: 0, external: 0 })
    model.setSlice(slice(['10.1.0.1'], sliced))
    model.takeChanges()
    model.deleteService('default/web')
    model.takeChanges()
    expect(model.noLocalEndpoints).toEqual({ internal: 0, external: 0 })
  })

  test('know where endpoints say that they run', () => {
    const { model } = aModel()
    model.setSlice(
      slice(['10.1.0.1', { address: '10.1.0.2', nodeName: 'z' }, { address: '10.1.0.3', nodeName: 'node-a' }]),
    )
    expect(model.endpointPlaces()).toEqual({ withNodeName: 2, onThisNode: 1, examples: ['node-a', 'z'] })
  })
})

describe('ServiceModel, when connections are tried again', () => {
  const addresses = ['10.1.0.1', '10.1.0.2', '10.1.0.3']

  function retrying(annotations: Record<string, string> = {}) {
    const { model } = aModel()
    model.setService(service({ annotations }))
    model.setSlice(slice(addresses))
    model.takeChanges()
    return model
  }

  test('does so for services that do not say when the flag changes, and for none twice', () => {
    const model = retrying()
    expect(model.view('default/web')?.connectRetry).toBeUndefined()
    expect(model.setConnectRetry(true)).toBe(true)
    expect(words(model.takeChanges())).toEqual(['~default/web'])
    expect(model.view('default/web')?.connectRetry).toBe(true)
    expect(model.setConnectRetry(true)).toBe(false)
  })

  test('heeds a service that declines', () => {
    const model = retrying({ 'service.kube-proxy-ts.io/connect-retry': 'off' })
    model.setConnectRetry(true)
    expect(model.takeChanges()).toEqual([])
  })

  test('heeds a service that asks for it only where the operator allows that', () => {
    const model = retrying({ 'service.kube-proxy-ts.io/connect-retry': 'on' })
    expect(model.view('default/web')?.connectRetry).toBeUndefined()
    expect(model.setConnectRetry('annotated')).toBe(true)
    expect(words(model.takeChanges())).toEqual(['~default/web'])
    expect(model.view('default/web')?.connectRetry).toBe(true)
    model.setConnectRetry(true)
    expect(model.takeChanges()).toEqual([])
    model.setConnectRetry(false)
    model.takeChanges()
    expect(model.view('default/web')?.connectRetry).toBeUndefined()
  })

  test('is for those alone that ask for it, where the operator says so', () => {
    const model = retrying()
    model.setConnectRetry('annotated')
    expect(model.takeChanges()).toEqual([])
  })

  test('takes ejected backends out of the lists, and puts them back', () => {
    const model = retrying()
    model.setConnectRetry(true)
    model.takeChanges()
    const before = model.view('default/web')
    model.setEjections(new Set(['10.1.0.2:8080']), ['default/web'])
    expect(words(model.takeChanges())).toEqual(['~default/web'])
    expect(backendsOf(model, 'default/web')).toEqual(['10.1.0.1:8080', '10.1.0.3:8080'])
    expect(model.view('default/web')?.ejected).toMatchObject([{ ip: '10.1.0.2', port: 8080 }])
    model.setEjections(new Set(), ['default/web'])
    model.takeChanges()
    expect(backendsOf(model, 'default/web')).toEqual(before?.backends.map(({ ip, port }) => `${ip}:${port}`))
    expect(model.view('default/web')?.ejected).toBeUndefined()
  })

  test('leaves the lists of other services alone', () => {
    const model = retrying()
    model.setEjections(new Set(['10.1.0.2:8080']), ['default/web'])
    expect(model.takeChanges()).toEqual([])
  })
})

describe('Least connections', () => {
  const least = { [BALANCE_ANNOTATION]: 'least-connections' }
  const addresses = ['10.1.0.1', '10.1.0.2']
  const loads = (first: number) =>
    new Map(addresses.map((ip, i) => [`${ip}:8080`, { open: i === 0 ? first : 2, begun: 5 }]))
  const weightsOf = (model: ServiceModel) => model.view('default/web')?.backends.map(({ weight }) => weight)

  function aBusyModel() {
    const { model } = aModel()
    model.setService(service({ annotations: least }))
    model.setSlice(slice(addresses))
    model.takeChanges()
    expect(model.setLoads('default/web', loads(40))).toBe(true)
    expect(words(model.takeChanges())).toEqual(['~default/web'])
    expect(weightsOf(model)).toEqual([16, 32])
    return model
  }

  test('who has more connections open gets a smaller share, and comes back when nothing goes on', () => {
    const model = aBusyModel()
    expect(model.setLoads('default/web', new Map())).toBe(true)
    expect(model.setLoads('default/web', new Map())).toBe(true)
    model.takeChanges()
    expect(weightsOf(model)).toEqual([undefined, undefined])
    expect(model.setLoads('default/web', new Map())).toBe(false)
  })

  test('another model decides the same with the objects and the rungs', () => {
    const model = aBusyModel()
    const { model: other } = aModel()
    for (const [name, rungs] of model.rungs) other.setRungs(name, rungs)
    const { services, slices } = model.objects()
    for (const each of services) other.setService(each)
    for (const each of slices) other.setSlice(each)
    other.takeChanges()
    expect(weightsOf(other)).toEqual(weightsOf(model))
  })

  test('shares are forgotten with the annotation, and with the service', () => {
    const model = aBusyModel()
    model.setService(service())
    model.takeChanges()
    model.setService(service({ annotations: least }))
    model.takeChanges()
    expect(weightsOf(model)).toEqual([undefined, undefined])
    model.setLoads('default/web', loads(40))
    model.deleteService('default/web')
    model.takeChanges()
    model.setService(service({ annotations: least }))
    model.takeChanges()
    expect(weightsOf(model)).toEqual([undefined, undefined])
  })

  test('a service port that nobody has is left alone', () => {
    expect(aBusyModel().setLoads('default/other', loads(40))).toBe(false)
  })
})
