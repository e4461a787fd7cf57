// The law that everything else relies on: what the model knows after any sequence of events is what a new model knows
// that was given the final objects only.

import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { describePort, restorePort, type PortState } from '../serve/control/port-state.ts'
import { namespacedName } from '../kube/types.ts'
import type { EndpointSlice, Service } from '../kube/types.ts'
import { ProblemLog } from './problems.ts'
import { ServiceModel } from './service-model.ts'
import type { NodeView, ServicePortView } from './types.ts'
import { runs } from '../../test/support/runs.ts'

type Event =
  | { readonly kind: 'setService'; readonly object: Service }
  | { readonly kind: 'deleteService' | 'deleteSlice'; readonly key: string }
  | { readonly kind: 'setSlice'; readonly object: EndpointSlice }
  | { readonly kind: 'setNode'; readonly node: NodeView }
  | { readonly kind: 'take' }

const serviceNames = ['a', 'b', 'c']
const sliceNames = ['s', 't', 'u', 'v']
const nodeNames = ['node-a', 'node-b']
const protocol = fc.constantFrom('TCP' as const, 'UDP' as const)
const portName = fc.constantFrom('', 'p', 'q')
const policy = fc.constantFrom('Cluster', 'Local')
/** Few values, so that services often claim the same. */
const address = fc.constantFrom('10.0.0.1', '10.0.0.2', '203.0.113.1', 'fd00::1', 'garbage')

const anyService: fc.Arbitrary<Service> = fc
  .record({
    name: fc.constantFrom(...serviceNames),
    type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
    clusterIPs: fc.constantFrom<string[]>(
      ['10.0.0.1'],
      ['10.0.0.2'],
      ['10.0.0.3', 'fd00::3'],
      ['fd00::4'],
      ['None'],
      [],
    ),
    externalIPs: fc.array(address, { maxLength: 2 }),
    ingress: fc.array(fc.record({ ip: address, ipMode: fc.constantFrom('VIP', 'Proxy') }), { maxLength: 2 }),
    loadBalancerSourceRanges: fc.subarray(['10.1.0.0/16', '192.168.0.0/16', '0.0.0.0/0', 'x', 'fd00::/8'], {
      maxLength: 2,
    }),
    externalTrafficPolicy: policy,
    internalTrafficPolicy: policy,
    sessionAffinity: fc.constantFrom('None', 'ClientIP'),
    healthCheckNodePort: fc.constantFrom(0, 30100),
    createdMs: fc.integer({ min: 0, max: 2 }),
    ports: fc.array(
      fc.record({
        name: portName,
        protocol,
        port: fc.constantFrom(0, 53, 80),
        nodePort: fc.constantFrom(0, 30000, 30001),
      }),
      { maxLength: 3 },
    ),
  })
  .map(service)

const anEndpoint = fc.record({
  address: fc.constantFrom('10.1.0.1', '10.1.0.2', '10.1.0.3', '10.1.0.10', 'fd00::9', 'garbage'),
  ready: fc.boolean(),
  serving: fc.boolean(),
  terminating: fc.boolean(),
  nodeName: fc.constantFrom(...nodeNames, undefined),
  zoneHints: fc.constantFrom<readonly string[] | undefined>(['zone-a'], ['zone-b'], undefined),
  nodeHints: fc.constantFrom<readonly string[] | undefined>(['node-a'], undefined),
})

const aSlice: fc.Arbitrary<EndpointSlice> = fc
  .record({
    endpoints: fc.array(anEndpoint, { maxLength: 4 }),
    name: fc.constantFrom(...sliceNames),
    serviceName: fc.constantFrom(...serviceNames, ''),
    addressType: fc.constantFrom('IPv4', 'IPv4', 'IPv4', 'IPv6', 'FQDN'),
    ports: fc.array(fc.record({ name: portName, protocol, port: fc.constantFrom(8080, 8081, undefined) }), {
      maxLength: 2,
    }),
  })
  .map(({ endpoints, ...wish }) => slice(endpoints, wish))

const aNode: fc.Arbitrary<NodeView> = fc
  .record({
    nodeName: fc.constantFrom(...nodeNames),
    zone: fc.constantFrom('zone-a', undefined),
    nodeIp: fc.constantFrom('192.168.0.1', '172.16.0.1'),
    masqueradeAll: fc.boolean(),
    localDetector: fc.constantFrom({ kind: 'none' } as const, { kind: 'interface', name: 'cni0' } as const),
  })
  .map(nodeView)

const anEvent: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: anyService.map((object) => ({ kind: 'setService' as const, object })) },
  { weight: 5, arbitrary: aSlice.map((object) => ({ kind: 'setSlice' as const, object })) },
  fc.constantFrom(...serviceNames).map((name) => ({ kind: 'deleteService' as const, key: `default/${name}` })),
  fc.constantFrom(...sliceNames).map((name) => ({ kind: 'deleteSlice' as const, key: `default/${name}` })),
  aNode.map((node) => ({ kind: 'setNode' as const, node })),
  { weight: 3, arbitrary: fc.constant({ kind: 'take' as const }) },
)

function aModel(node: NodeView) {
  const problems = new ProblemLog(() => {})
  return { problems, model: new ServiceModel({ node, problems, allowExternalIPs: true, startedMs: 0 }) }
}

function apply(model: ServiceModel, event: Event): void {
  switch (event.kind) {
    case 'setService':
      return model.setService(event.object)
    case 'deleteService':
      return model.deleteService(event.key)
    case 'setSlice':
      return model.setSlice(event.object)
    case 'deleteSlice':
      return model.deleteSlice(event.key)
    case 'setNode':
      return model.setNode(event.node)
    case 'take':
      return undefined
  }
}

/** Everything that can be asked of a model, in one order. */
function knowledge(model: ServiceModel, problems: ProblemLog) {
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
  return {
    views: [...model.views()].sort(byName),
    noLocalEndpoints: model.noLocalEndpoints,
    healthChecks: model.healthChecks().toSorted((a, b) => (a.service < b.service ? -1 : 1)),
    places: model.endpointPlaces(),
    problems: [...problems.problems()].map(({ object, message }) => `${object}: ${message}`).sort(),
  }
}

/** A model that gets the final objects only, in the opposite of the usual order. */
function fromScratch(events: readonly Event[], start: NodeView) {
  const services = new Map<string, Service>()
  const slices = new Map<string, EndpointSlice>()
  let node = start
  for (const event of events) {
    if (event.kind === 'setService') services.set(namespacedName(event.object), event.object)
    else if (event.kind === 'deleteService') services.delete(event.key)
    else if (event.kind === 'setSlice') slices.set(namespacedName(event.object), event.object)
    else if (event.kind === 'deleteSlice') slices.delete(event.key)
    else if (event.kind === 'setNode') node = event.node
  }
  const made = aModel(node)
  for (const object of [...slices.values()].toReversed()) made.model.setSlice(object)
  for (const object of [...services.values()].toReversed()) made.model.setService(object)
  made.model.takeChanges()
  return made
}

test('ServiceModel knows after any events what a new model knows from the final objects', () => {
  fc.assert(
    fc.property(fc.array(anEvent, { maxLength: 30 }), (events) => {
      const { model, problems } = aModel(nodeView())
      for (const event of events) {
        apply(model, event)
        if (event.kind === 'take') model.takeChanges()
      }
      model.takeChanges()
      const fresh = fromScratch(events, nodeView())
      expect(knowledge(model, problems)).toEqual(knowledge(fresh.model, fresh.problems))
    }),
    runs(1000),
  )
})

test('ServiceModel changes, applied one after the other, lead to its views, and each is a real change', () => {
  fc.assert(
    fc.property(fc.array(anEvent, { maxLength: 30 }), (events) => {
      const { model } = aModel(nodeView())
      const views = new Map<string, ServicePortView>()
      for (const event of [...events, { kind: 'take' } as const]) {
        apply(model, event)
        if (event.kind !== 'take') continue
        for (const { name, before, after } of model.takeChanges()) {
          expect(views.get(name)).toBe(before)
          expect(after).not.toEqual(before)
          if (after === undefined) views.delete(name)
          else views.set(name, after)
        }
        expect(
          [...model.views()].every((view) => views.get(view.name) === view && model.view(view.name) === view),
        ).toBe(true)
        expect([...model.views()]).toHaveLength(views.size)
      }
    }),
    runs(500),
  )
})

test('ServiceModel views keep the promises of their type', () => {
  fc.assert(
    fc.property(fc.array(anEvent, { maxLength: 20 }), (events) => {
      const { model } = aModel(nodeView())
      for (const event of events) {
        apply(model, event)
        if (event.kind === 'take') model.takeChanges()
      }
      model.takeChanges()
      const claimed = new Set<string>()
      for (const view of model.views()) {
        const lists = new Map<string, unknown>()
        const chosen = new Set<unknown>()
        for (const frontend of view.frontends) {
          const claim = `${frontend.address} ${frontend.protocol} ${frontend.port}`
          expect(claimed).not.toContain(claim)
          claimed.add(claim)
          for (const { verdict, masquerade } of [frontend.fromPods, frontend.fromNode, frontend.fromOthers]) {
            if (verdict.kind !== 'to') {
              expect(masquerade).toBe(false)
              continue
            }
            expect(verdict.backends.length).toBeGreaterThan(0)
            expect(lists.get(verdict.policy) ?? verdict.backends).toBe(verdict.backends)
            lists.set(verdict.policy, verdict.backends)
            for (const record of verdict.backends.allRecords()) chosen.add(record)
          }
        }
        expect(new Set<unknown>(view.backends.allRecords())).toEqual(chosen)
        expect(view.backends).toHaveLength(chosen.size)
      }
    }),
    runs(500),
  )
})

test('a model that is given what another one knows decides the same', () => {
  const start = nodeView({})
  const law = fc.property(fc.array(anEvent, { maxLength: 30 }), (events) => {
    const { model } = aModel(start)
    let node = start
    for (const event of events) {
      apply(model, event)
      if (event.kind === 'setNode') node = event.node
    }
    model.takeChanges()
    const { model: copy } = aModel(node)
    const { services, slices } = JSON.parse(
      JSON.stringify({ services: [...model.objects().services], slices: [...model.objects().slices] }),
    ) as { services: Service[]; slices: EndpointSlice[] }
    for (const each of services) copy.setService(each)
    for (const each of slices) copy.setSlice(each)
    copy.takeChanges()
    const byName = (a: ServicePortView, b: ServicePortView) => (a.name < b.name ? -1 : 1)
    expect([...copy.views()].sort(byName)).toEqual([...model.views()].sort(byName))
    expect(copy.endpointPlaces()).toEqual(model.endpointPlaces())
    const sent = JSON.parse(JSON.stringify([...model.views()].map(describePort))) as PortState[]
    expect(sent.map(restorePort)).toEqual([...model.views()])
  })
  fc.assert(law, runs(300))
})
