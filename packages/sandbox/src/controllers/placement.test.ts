import { describe, expect, it } from 'vitest'
import { aNode, aPod, aSandboxService } from '../../../../test/support/sandbox-objects.ts'
import { IpRange } from '../apiserver/allocation/ip-range.ts'
import { isNeeded } from './service-cidr-controller.ts'
import { NodeLoads, pickNode } from './scheduler.ts'
import { planLoadBalancer } from './load-balancers.ts'
import { planMirror } from './mirror-controller.ts'
import { PodAddresses } from './pod-addresses.ts'
import type { Endpoints } from '../apiserver/objects/endpoints.ts'
import type { ServiceCIDR } from '../apiserver/objects/small.ts'

describe('pickNode()', () => {
  const free = aPod({ node: '' })
  const none = new NodeLoads()
  const name = (choice: ReturnType<typeof pickNode>) =>
    choice.kind === 'node' ? choice.node.metadata.name : choice.reason

  it('goes round: the emptiest node first, by name among equals', () => {
    const nodes = [aNode('b'), aNode('a')]
    const loads = new NodeLoads()
    expect(name(pickNode(free, nodes, loads))).toBe('a')
    const pod = aPod({ node: 'a' })
    expect(loads.replace(free, pod)).toBe(false)
    expect(name(pickNode(free, nodes, loads))).toBe('b')
    expect(loads.replace(pod, aPod({ node: 'a', deleting: true }))).toBe(true)
    expect(name(pickNode(free, nodes, loads))).toBe('a')
  })

  it('puts no more pods on a node than it says it takes', () => {
    const small = { ...aNode('a'), status: { allocatable: { pods: '1' } } }
    const loads = new NodeLoads()
    expect(name(pickNode(free, [small], loads))).toBe('a')
    loads.replace(undefined, aPod({ node: 'a' }))
    expect(name(pickNode(free, [small], loads))).toBe('0/1 nodes are available: 1 Too many pods.')
  })

  it('respects cordons, selectors and taints, and says what is in the way', () => {
    const cordoned = aNode('a', { spec: { unschedulable: true } })
    const tainted = aNode('b', { spec: { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] } })
    expect(name(pickNode(free, [cordoned, tainted], none))).toBe(
      '0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) had untolerated taint {k: v}.',
    )
    const tolerant = aPod({ node: '', spec: { tolerations: [{ key: 'k', operator: 'Exists' }] } })
    expect(name(pickNode(tolerant, [cordoned, tainted], none))).toBe('b')
    const picky = aPod({ node: '', spec: { nodeSelector: { disk: 'ssd' } } })
    expect(name(pickNode(picky, [aNode('a'), aNode('b', { labels: { disk: 'ssd' } })], none))).toBe('b')
    expect(name(pickNode(free, [], none))).toBe('0/0 nodes are available.')
  })
})

describe('PodAddresses', () => {
  const node = aNode('node-1', { spec: { podCIDRs: ['10.1.0.0/29', 'fd00:1::/64'] } })

  it('gives one address of each range, and leaves the first to the node', () => {
    expect(new PodAddresses().pick(node)).toEqual(['10.1.0.2', 'fd00:1::2'])
  })

  it('does not give out again at once what was freed', () => {
    const addresses = new PodAddresses()
    const given = Array.from({ length: 6 }, () => {
      const ips = addresses.pick(node) ?? []
      addresses.release(ips)
      return ips[0]
    })
    expect(given).toEqual(['10.1.0.2', '10.1.0.3', '10.1.0.4', '10.1.0.5', '10.1.0.6', '10.1.0.2'])
  })

  it('skips what is taken on the node, and says when the range is full', () => {
    const addresses = new PodAddresses()
    const given = Array.from({ length: 6 }, () => addresses.pick(node)?.[0])
    expect(given).toEqual(['10.1.0.2', '10.1.0.3', '10.1.0.4', '10.1.0.5', '10.1.0.6', undefined])
    addresses.release(['10.1.0.4'])
    expect(addresses.pick(node)?.[0]).toBe('10.1.0.4')
  })
})

describe('planLoadBalancer()', () => {
  const ranges = [IpRange.parse('192.0.2.0/30'), IpRange.parse('2001:db8::/112')]
  const balancer = (spec: object = {}) => aSandboxService({ type: 'LoadBalancer', ...spec })

  it('gives the lowest free address of each family', () => {
    expect(planLoadBalancer(balancer(), ranges, new Set())).toEqual({ kind: 'ips', ips: ['192.0.2.1'] })
    const dual = balancer({ ipFamilies: ['IPv6', 'IPv4'] })
    expect(planLoadBalancer(dual, ranges, new Set(['192.0.2.1']))).toEqual({
      kind: 'ips',
      ips: ['2001:db8::1', '192.0.2.2'],
    })
  })

  it('keeps what the service has', () => {
    const service = balancer()
    service.status.loadBalancer.ingress = [{ ip: '192.0.2.2', ipMode: 'VIP' }]
    expect(planLoadBalancer(service, ranges, new Set())).toEqual({ kind: 'ips', ips: ['192.0.2.2'] })
  })

  it('gives what is asked for, or says why not', () => {
    const asking = balancer({ loadBalancerIP: '192.0.2.2' })
    expect(planLoadBalancer(asking, ranges, new Set())).toEqual({ kind: 'ips', ips: ['192.0.2.2'] })
    expect(planLoadBalancer(asking, ranges, new Set(['192.0.2.2']))).toMatchObject({
      reason: expect.stringContaining('it is taken'),
    })
    expect(planLoadBalancer(balancer({ loadBalancerIP: '8.8.8.8' }), ranges, new Set())).toMatchObject({
      reason: expect.stringContaining('not in the pool'),
    })
    expect(planLoadBalancer(balancer(), ranges, new Set(['192.0.2.1', '192.0.2.2']))).toMatchObject({
      reason: 'Cannot give out a load balancer IP: the pool has no free IPv4 address',
    })
  })
})

describe('planMirror()', () => {
  const endpoints = (subsets: Endpoints['subsets'], labels = {}): Endpoints => ({
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: { name: 'web', namespace: 'default', labels },
    ...(subsets === undefined ? {} : { subsets }),
  })

  it('splits families, and keeps readiness and ports', () => {
    const subset = {
      addresses: [{ ip: '10.0.0.1', nodeName: 'n' }, { ip: 'fd00::1' }],
      notReadyAddresses: [{ ip: '10.0.0.2' }],
      ports: [{ name: 'http', port: 80 }],
    }
    expect(planMirror(endpoints([subset]))).toEqual([
      {
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        endpoints: [
          { addresses: ['10.0.0.1'], conditions: { ready: true }, nodeName: 'n' },
          { addresses: ['10.0.0.2'], conditions: { ready: false } },
        ],
      },
      {
        addressType: 'IPv6',
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        endpoints: [{ addresses: ['fd00::1'], conditions: { ready: true } }],
      },
    ])
  })

  it('makes slices of at most 100, and none for services that do not want it', () => {
    const addresses = Array.from({ length: 150 }, (_, i) => ({ ip: `10.0.0.${i}` }))
    const subsets = [{ addresses, ports: [{ port: 80 }] }]
    expect(planMirror(endpoints(subsets)).map((slice) => slice.endpoints?.length)).toEqual([100, 50])
    expect(planMirror(endpoints(subsets, { 'endpointslice.kubernetes.io/skip-mirror': 'true' }))).toEqual([])
  })
})

describe('isNeeded()', () => {
  const cidr = (range: string): ServiceCIDR => ({
    kind: 'ServiceCIDR',
    apiVersion: 'networking.k8s.io/v1',
    metadata: { name: range },
    spec: { cidrs: [range] },
    status: {},
  })

  it('is so while an address is in this range alone', () => {
    expect(isNeeded(cidr('10.0.0.0/24'), [], ['10.0.0.1'])).toBe(true)
    expect(isNeeded(cidr('10.0.0.0/24'), [cidr('10.0.0.0/16')], ['10.0.0.1'])).toBe(false)
    expect(isNeeded(cidr('10.0.0.0/24'), [], ['10.0.1.1'])).toBe(false)
  })
})
