import { expect, test } from 'vitest'
import type { EndpointSlice } from './apiserver/objects/endpoints.ts'
import type { Service } from './apiserver/objects/service.ts'
import { planNodes } from './load-balancer-routes.ts'

const nodes = ['node-1', 'node-2', 'node-3']

function aService(externalTrafficPolicy: string): Service {
  const spec = { type: 'LoadBalancer', externalTrafficPolicy }
  return { kind: 'Service', apiVersion: 'v1', metadata: { name: 's' }, spec, status: { loadBalancer: {} } }
}

function aSlice(...endpoints: readonly { nodeName: string; ready?: boolean }[]): EndpointSlice {
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { name: 's-1' },
    addressType: 'IPv4',
    endpoints: endpoints.map(({ nodeName, ready = true }) => ({
      addresses: ['10.0.0.1'],
      nodeName,
      conditions: { ready },
    })),
    ports: [],
  }
}

test('planNodes() sends to one node, whichever, where any will do', () => {
  expect(planNodes(aService('Cluster'), [aSlice({ nodeName: 'node-2' })], nodes)).toEqual(['node-1'])
})

test('planNodes() sends to all nodes with ready endpoints where the policy is Local', () => {
  const slices = [aSlice({ nodeName: 'node-3' }, { nodeName: 'node-1', ready: false }), aSlice({ nodeName: 'node-2' })]
  expect(planNodes(aService('Local'), slices, nodes)).toEqual(['node-2', 'node-3'])
})

test('planNodes() has to send somewhere when no node has endpoints', () => {
  expect(planNodes(aService('Local'), [], nodes)).toEqual(['node-1'])
})
