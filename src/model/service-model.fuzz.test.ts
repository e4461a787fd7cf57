// Objects that no API server should let pass: they must not end the program, nor change another service.

import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import type { EndpointSlice, Protocol, Service } from '../kube/types.ts'
import { ProblemLog } from './problems.ts'
import { ServiceModel } from './service-model.ts'
import { runs } from '../../test/support/runs.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    'None',
    '10.0.0.1',
    '203.0.113.1',
    'fd00::1',
    '::',
    '0.0.0.0/0',
    'default',
    'default/web',
    'web:',
    '__proto__',
  ),
)
const texts = fc.array(text, { maxLength: 3 })
const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, 80, 65536))
const protocol = fc.constantFrom<string>('TCP', 'UDP', 'SCTP', '', 'ICMP') as fc.Arbitrary<Protocol>

const hostileService: fc.Arbitrary<Service> = fc.record({
  namespace: fc.constantFrom('evil', 'default', '', 'default/web'),
  name: text.filter((name) => name !== 'web'),
  type: fc.oneof(text, fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer')),
  clusterIPs: fc.oneof(texts, fc.constant(['10.0.0.9'])),
  externalIPs: texts,
  ports: fc.array(fc.record({ name: text, protocol, port: number, nodePort: number }), { maxLength: 3 }),
  sessionAffinity: fc.constantFrom('ClientIP', 'None', ''),
  affinityTimeoutSeconds: fc.option(number, { nil: undefined }),
  externalTrafficPolicy: fc.constantFrom('Local', 'Cluster', ''),
  internalTrafficPolicy: fc.constantFrom('Local', 'Cluster', ''),
  loadBalancerSourceRanges: texts,
  healthCheckNodePort: number,
  ingress: fc.array(fc.record({ ip: text, ipMode: fc.constantFrom('VIP', 'Proxy', '') }), { maxLength: 2 }),
  labels: fc.option(fc.dictionary(text, text), { nil: undefined }),
  annotations: fc.option(fc.dictionary(text, text), { nil: undefined }),
  createdMs: number,
})

const hostileSlice: fc.Arbitrary<EndpointSlice> = fc.record({
  namespace: fc.constantFrom('evil', 'default', '', 'default/web'),
  name: text.filter((name) => name !== 'web-1'),
  serviceName: text.filter((name) => name !== 'web'),
  addressType: fc.oneof(text, fc.constant('IPv4')),
  ports: fc.array(fc.record({ name: text, protocol, port: fc.option(number, { nil: undefined }) }), { maxLength: 2 }),
  endpoints: fc.array(
    fc.record({
      address: text,
      ready: fc.boolean(),
      serving: fc.boolean(),
      terminating: fc.boolean(),
      nodeName: fc.option(text, { nil: undefined }),
      zone: fc.option(text, { nil: undefined }),
      zoneHints: fc.option(texts, { nil: undefined }),
      nodeHints: fc.option(texts, { nil: undefined }),
    }),
    { maxLength: 4 },
  ),
  triggerTimeMs: fc.option(number, { nil: undefined }),
})

test('ServiceModel survives hostile objects, and they leave another service alone', () => {
  fc.assert(
    fc.property(
      fc.array(hostileService, { maxLength: 3 }),
      fc.array(hostileSlice, { maxLength: 3 }),
      (services, slices) => {
        const problems = new ProblemLog(() => {})
        const model = new ServiceModel({ node: nodeView(), problems, allowExternalIPs: true, startedMs: 0 })
        model.setService(service())
        model.setSlice(slice(['10.1.0.1']))
        model.takeChanges()
        const before = model.view('default/web')
        for (const object of slices) model.setSlice(object)
        for (const object of services) model.setService(object)
        model.takeChanges()
        const contested = services.some(({ clusterIPs }) => clusterIPs.includes('10.0.0.1'))
        if (!contested) expect(model.view('default/web')).toBe(before)
        for (const view of model.views()) {
          for (const { port, affinitySeconds = 1 } of view.frontends) {
            expect(port > 0 && port < 65536 && Number.isInteger(port)).toBe(true)
            expect(affinitySeconds > 0 && Number.isInteger(affinitySeconds)).toBe(true)
          }
        }
        for (const { message } of problems.problems()) expect(message.length).toBeLessThan(1000)
      },
    ),
    runs(500),
  )
})
