import { describe, expect, test } from 'vitest'
import { nodeView, service } from '../../test/support/kube-objects.ts'
import type { Service } from '../kube/types.ts'
import { formatCidr, ipBytes } from '../lib/ip.ts'
import { claimedFrontends } from './claims.ts'
import type { Endpoint } from './endpoints.ts'
import { planServicePort, sameView } from './frontends.ts'
import type { PlannedServicePort } from './frontends.ts'
import { parseService } from './service-ports.ts'
import type { Frontend, NodeView, Route, ServicePortView } from './types.ts'
import { WITHOUT_LOCAL_ANNOTATION } from './without-local.ts'

const at = (ip: string) => ({ ip, address: ipBytes(ip) })
const local: Endpoint = {
  ...at('10.1.0.1'),
  port: 8080,
  isLocal: true,
  nodeName: 'node-a',
  ready: true,
  serving: true,
  terminating: false,
  weight: 1,
  zoneHints: undefined,
  nodeHints: undefined,
}
const remote: Endpoint = { ...local, ...at('10.1.1.1'), isLocal: false }

const everywhere = {
  type: 'LoadBalancer',
  externalIPs: ['203.0.113.9'],
  ingress: [{ ip: '198.51.100.2', ipMode: 'VIP' }],
  healthCheckNodePort: 30100,
  ports: [{ nodePort: 30000 }],
}

interface Given {
  readonly wish?: Parameters<typeof service>[0]
  readonly endpoints?: readonly Endpoint[]
  readonly node?: Partial<NodeView>
  readonly owns?: (address: string | undefined) => boolean
  readonly previous?: ServicePortView
}

function plan({
  wish = {},
  endpoints = [local, remote],
  node = {},
  owns = () => true,
  previous,
}: Given): PlannedServicePort {
  const object: Service = service(wish)
  const info = parseService(object, 'default/web', { family: 4, allowExternalIPs: true, problems: [] })
  const [port] = info?.ports ?? []
  if (port === undefined) throw new Error('Cannot plan: the service has no port')
  const owned = claimedFrontends(port).filter(({ address }) => owns(address))
  return planServicePort({ port, endpoints, node: nodeView(node), owned, previous })
}

/** One line per frontend: what happens to pods, the node and others. */
function rows(given: Given): string[] {
  return plan(given).view.frontends.map(row)
}

function row(frontend: Frontend): string {
  const { kind, address, port, fromPods, fromNode, fromOthers } = frontend
  return `${kind} ${address ?? '*'}:${port} | ${[fromPods, fromNode, fromOthers].map(routeText).join(' | ')}`
}

function routeText({ verdict, masquerade }: Route): string {
  if (verdict.kind !== 'to') return masquerade ? 'impossible' : verdict.kind
  return `${masquerade ? 'masq ' : ''}${verdict.policy} ${verdict.backends.map(({ ip }) => ip.slice(5)).join(',')}`
}

describe('planServicePort()', () => {
  test('lists cluster IP, load-balancer IPs, external IPs and node port', () => {
    expect(rows({ wish: everywhere })).toEqual([
      'clusterIP 10.0.0.1:80 | Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1',
      'loadBalancerIP 198.51.100.2:80 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1',
      'externalIP 203.0.113.9:80 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1',
      'nodePort *:30000 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1',
    ])
  })

  test('masquerades no source at the cluster IP when it cannot tell pods, and every source with masqueradeAll', () => {
    const none = { localDetector: { kind: 'none' } } as const
    expect(rows({ node: none })).toEqual([
      'clusterIP 10.0.0.1:80 | Cluster 0.1,1.1 | Cluster 0.1,1.1 | Cluster 0.1,1.1',
    ])
    expect(rows({ node: { ...none, masqueradeAll: true } })).toEqual([
      'clusterIP 10.0.0.1:80 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1',
    ])
  })

  test('under external policy Local keeps the source, and gives pods and the node the Cluster list', () => {
    const wish = { ...everywhere, externalTrafficPolicy: 'Local' }
    expect(rows({ wish })).toEqual([
      'clusterIP 10.0.0.1:80 | Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1',
      'loadBalancerIP 198.51.100.2:80 | Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | Local 0.1',
      'externalIP 203.0.113.9:80 | Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | Local 0.1',
      'nodePort *:30000 | Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | Local 0.1',
    ])
  })

  describe('without local endpoints, where the policy is Local', () => {
    const annotated = (words: string) => ({
      ...everywhere,
      externalTrafficPolicy: 'Local',
      annotations: { [WITHOUT_LOCAL_ANNOTATION]: words },
    })
    const outer = (given: Given) => rows(given).slice(1)

    test('drops by default', () => {
      expect(outer({ wish: annotated('drop'), endpoints: [remote] })).toEqual([
        'loadBalancerIP 198.51.100.2:80 | Cluster 1.1 | masq Cluster 1.1 | drop',
        'externalIP 203.0.113.9:80 | Cluster 1.1 | masq Cluster 1.1 | drop',
        'nodePort *:30000 | Cluster 1.1 | masq Cluster 1.1 | drop',
      ])
    })

    test('uses others as with policy Cluster, and the health check port still says that there are none', () => {
      const given = { wish: annotated('use-others'), endpoints: [remote] }
      expect(outer(given)).toEqual([
        'loadBalancerIP 198.51.100.2:80 | masq Cluster 1.1 | masq Cluster 1.1 | masq Cluster 1.1',
        'externalIP 203.0.113.9:80 | masq Cluster 1.1 | masq Cluster 1.1 | masq Cluster 1.1',
        'nodePort *:30000 | masq Cluster 1.1 | masq Cluster 1.1 | masq Cluster 1.1',
      ])
      expect(plan(given)).toMatchObject({ lacksLocal: { external: true }, view: { healthCheckNodePort: 30100 } })
      expect(outer({ wish: annotated('use-others') })).toEqual(outer({ wish: annotated('drop') }))
    })

    test('leaves alone at addresses, not at node ports; without any endpoint for all clients', () => {
      expect(outer({ wish: annotated('leave-alone'), endpoints: [remote] })).toEqual([
        'loadBalancerIP 198.51.100.2:80 | Cluster 1.1 | masq Cluster 1.1 | leave',
        'externalIP 203.0.113.9:80 | Cluster 1.1 | masq Cluster 1.1 | leave',
        'nodePort *:30000 | Cluster 1.1 | masq Cluster 1.1 | drop',
      ])
      expect(outer({ wish: annotated('leave-alone'), endpoints: [] })).toEqual([
        'loadBalancerIP 198.51.100.2:80 | leave | leave | leave',
        'externalIP 203.0.113.9:80 | leave | leave | leave',
        'nodePort *:30000 | reject | reject | reject',
      ])
    })

    test('says nothing at the cluster IP, nor with policy Cluster', () => {
      const cluster = { ...annotated('leave-alone'), externalTrafficPolicy: 'Cluster' }
      expect(rows({ wish: cluster, endpoints: [] }).map((each) => each.split(' | ')[3])).toEqual(
        Array(4).fill('reject'),
      )
    })
  })

  test('under external policy Local treats pods like others when it cannot tell them', () => {
    const wish = { type: 'NodePort', externalTrafficPolicy: 'Local', ports: [{ nodePort: 30000 }] }
    expect(rows({ wish, node: { localDetector: { kind: 'none' } } })[1]).toBe(
      'nodePort *:30000 | Local 0.1 | masq Cluster 0.1,1.1 | Local 0.1',
    )
  })

  test('masqueradeAll does not touch external addresses', () => {
    const wish = { type: 'NodePort', externalTrafficPolicy: 'Local', ports: [{ nodePort: 30000 }] }
    expect(rows({ wish, node: { masqueradeAll: true } })[1]).toBe(
      'nodePort *:30000 | Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | Local 0.1',
    )
  })

  test('under external policy Local drops what comes from outside when endpoints are only elsewhere', () => {
    const wish = { type: 'NodePort', externalTrafficPolicy: 'Local', ports: [{ nodePort: 30000 }] }
    const planned = plan({ wish, endpoints: [remote] })
    expect(planned.view.frontends.map(row)).toEqual([
      'clusterIP 10.0.0.1:80 | Cluster 1.1 | masq Cluster 1.1 | masq Cluster 1.1',
      'nodePort *:30000 | Cluster 1.1 | masq Cluster 1.1 | drop',
    ])
    expect(planned.lacksLocal).toEqual({ internal: false, external: true })
  })

  test('under internal policy Local uses local endpoints at the cluster IP, or drops', () => {
    const wish = { internalTrafficPolicy: 'Local' }
    expect(rows({ wish })).toEqual(['clusterIP 10.0.0.1:80 | Local 0.1 | masq Local 0.1 | masq Local 0.1'])
    const planned = plan({ wish, endpoints: [remote] })
    expect(planned.view.frontends.map(row)).toEqual(['clusterIP 10.0.0.1:80 | drop | drop | drop'])
    expect([...planned.view.backends]).toEqual([])
    expect(planned.lacksLocal).toEqual({ internal: true, external: false })
  })

  test('decides internal and external policy separately', () => {
    const wish = { type: 'NodePort', internalTrafficPolicy: 'Local', ports: [{ nodePort: 30000 }] }
    expect(rows({ wish, endpoints: [remote] })).toEqual([
      'clusterIP 10.0.0.1:80 | drop | drop | drop',
      'nodePort *:30000 | masq Cluster 1.1 | masq Cluster 1.1 | masq Cluster 1.1',
    ])
  })

  test.each(['Cluster', 'Local'])('rejects all clients everywhere without endpoints, policy %s', (policy) => {
    const wish = { ...everywhere, externalTrafficPolicy: policy, internalTrafficPolicy: policy }
    for (const endpoints of [[], [{ ...remote, ready: false }]]) {
      const planned = plan({ wish, endpoints })
      expect(planned.view.frontends.map((frontend) => row(frontend).replace(/^[^|]*/, ''))).toEqual(
        Array.from({ length: 4 }, () => '| reject | reject | reject'),
      )
      expect(planned.lacksLocal).toEqual({ internal: false, external: false })
    }
  })

  test('has as backends what its frontends may choose, each once and in order', () => {
    const draining = { ...local, ...at('10.1.0.5'), ready: false, terminating: true }
    const wish = { type: 'NodePort', externalTrafficPolicy: 'Local', ports: [{ nodePort: 30000 }] }
    const { view } = plan({ wish, endpoints: [draining, remote] })
    expect(view.frontends.map(row)[1]).toBe('nodePort *:30000 | Cluster 1.1 | masq Cluster 1.1 | Local 0.5')
    expect(view.backends.map(({ ip }) => ip)).toEqual(['10.1.0.5', '10.1.1.1'])
  })

  test('shares one list between verdicts of one policy', () => {
    const { frontends, backends } = plan({ wish: everywhere }).view
    const lists = frontends.flatMap(({ fromPods, fromNode, fromOthers }) =>
      [fromPods, fromNode, fromOthers].map(({ verdict }) => verdict.kind === 'to' && verdict.backends),
    )
    expect(new Set([...lists, backends]).size).toBe(1)
  })

  test('restricts load-balancer IPs to the source ranges and nothing else', () => {
    const wish = { ...everywhere, loadBalancerSourceRanges: ['10.9.0.0/16'] }
    const sources = plan({ wish }).view.frontends.map(({ allowedSources }) => allowedSources?.map(formatCidr))
    expect(sources).toEqual([undefined, ['10.9.0.0/16'], undefined, undefined])
    expect(plan({ wish: everywhere }).view.frontends[1]?.allowedSources).toBeUndefined()
  })

  test('lets the load-balancer IPs through themselves when the node is in a range', () => {
    const ingress = [...everywhere.ingress, { ip: '192.168.0.7', ipMode: 'VIP' }]
    const wish = { ...everywhere, ingress, loadBalancerSourceRanges: ['192.168.0.0/24', '198.51.100.2/32'] }
    const sources = plan({ wish }).view.frontends[1]?.allowedSources?.map(formatCidr)
    expect(sources).toEqual(['192.168.0.0/24', '192.168.0.7/32', '198.51.100.2/32'])
  })

  test('gives every frontend the affinity', () => {
    const wish = { ...everywhere, sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 60 }
    expect(plan({ wish }).view.frontends.map(({ affinitySeconds }) => affinitySeconds)).toEqual([60, 60, 60, 60])
  })

  test('leaves out frontends that it does not own, and the backends that only they would use', () => {
    const wish = { type: 'NodePort', internalTrafficPolicy: 'Local', ports: [{ nodePort: 30000 }] }
    const external = plan({
      wish: { ...wish, externalTrafficPolicy: 'Local' },
      owns: (address) => address === '10.0.0.1',
    })
    expect(external.view.frontends.map(({ kind }) => kind)).toEqual(['clusterIP'])
    expect(external.view.backends.map(({ ip }) => ip)).toEqual(['10.1.0.1'])
    const nodePort = plan({ wish, owns: (address) => address === undefined })
    expect(nodePort.view.frontends.map(row)).toEqual([
      'nodePort *:30000 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1 | masq Cluster 0.1,1.1',
    ])
    const nothing = plan({ wish, owns: () => false }).view
    expect([nothing.frontends, [...nothing.backends]]).toEqual([[], []])
  })

  test('remembers for UDP which endpoints still serve, whatever the policies say', () => {
    const endpoints = [
      { ...local, ready: false, terminating: true },
      remote,
      { ...remote, ...at('10.1.1.2'), ready: false, serving: false },
    ]
    expect(plan({ wish: { ports: [{ protocol: 'UDP' }] }, endpoints }).view.serving).toEqual([
      '10.1.0.1:8080',
      '10.1.1.1:8080',
    ])
    expect(plan({ endpoints }).view.serving).toEqual([])
  })

  test('reuses lists of the last view', () => {
    const wish = {
      type: 'NodePort',
      externalTrafficPolicy: 'Local',
      ports: [{ nodePort: 30000, protocol: 'UDP' as const }],
    }
    const before = plan({ wish }).view
    const again = plan({ wish, previous: before }).view
    expect(again.backends).toBe(before.backends)
    expect(again.serving).toBe(before.serving)
    expect(sameView(before, again)).toBe(true)
    const more = plan({ wish, previous: before, endpoints: [local, { ...remote, ...at('10.1.0.2') }, remote] }).view
    expect(more.backends.map(({ ip }) => ip)).toEqual(['10.1.0.1', '10.1.0.2', '10.1.1.1'])
    const localList = (view: ServicePortView) => {
      const verdict = view.frontends[1]?.fromOthers.verdict
      return verdict?.kind === 'to' ? verdict.backends : undefined
    }
    expect(localList(more)).toBe(localList(before))
    expect(sameView(before, more)).toBe(false)
  })

  test('makes a new list when the port or the place of an address changes', () => {
    const before = plan({}).view
    const moved = plan({
      previous: before,
      endpoints: [
        { ...local, isLocal: false },
        { ...remote, port: 81 },
      ],
    }).view
    expect([...moved.backends]).toEqual([
      { ip: '10.1.0.1', port: 8080, isLocal: false },
      { ip: '10.1.1.1', port: 81, isLocal: false },
    ])
  })
})

test('sameView() sees every difference that matters', () => {
  const wish = { ...everywhere, loadBalancerSourceRanges: ['10.9.0.0/16'] }
  const before = plan({ wish }).view
  const same = (given: Given) => sameView(before, plan({ wish, ...given, previous: before }).view)
  expect(same({})).toBe(true)
  expect(same({ wish: { ...wish, loadBalancerSourceRanges: ['10.9.0.0/17'] } })).toBe(false)
  expect(same({ wish: { ...wish, sessionAffinity: 'ClientIP' } })).toBe(false)
  expect(same({ wish: { ...wish, externalTrafficPolicy: 'Local' } })).toBe(false)
  expect(same({ wish: { ...wish, externalIPs: ['203.0.113.8'] } })).toBe(false)
  expect(same({ wish: { ...wish, ports: [{ nodePort: 30001 }] } })).toBe(false)
  expect(same({ wish: { ...wish, ports: [{ nodePort: 30000, protocol: 'UDP' }] } })).toBe(false)
  expect(same({ endpoints: [local] })).toBe(false)
  expect(same({ endpoints: [] })).toBe(false)
  expect(same({ node: { masqueradeAll: true } })).toBe(false)
  expect(same({ owns: (address) => address !== undefined })).toBe(false)
  expect(same({ endpoints: [local, { ...remote, zoneHints: ['elsewhere'] }] })).toBe(true)
  const onlyLocal = { endpoints: [local] }
  const cluster = plan(onlyLocal).view
  const internal = plan({ ...onlyLocal, wish: { internalTrafficPolicy: 'Local' }, previous: cluster }).view
  expect(sameView(cluster, internal)).toBe(false)
})
