import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { goneUdpFrontends, staleAnswerers, StaleFlowIndex } from './stale-flows.ts'
import { parseCidr } from '../lib/ip.ts'
import { BackendList } from './backend-list.ts'
import type { UdpFlow } from './stale-flows.ts'
import type { Frontend, ServicePortView } from './types.ts'

const clusterIp = '10.0.0.10'
const nodeIp = '192.168.0.1'
const client = '10.1.9.9'

/** A flow from the client to an address, answered from another one: `dns(clusterIp, '10.1.0.1')`. */
function flow(dst: string, dport: number, answeredBy: string, answeredFrom: number): UdpFlow {
  return {
    original: { src: client, dst, dport },
    reply: { src: answeredBy, sport: answeredFrom },
    isAnswered: true,
  }
}

function frontend(address: string | undefined, port: number, protocol: Frontend['protocol'] = 'UDP'): Frontend {
  const route = { verdict: { kind: 'reject', reason: 'has no endpoints' }, masquerade: false } as const
  const routes = { fromPods: route, fromNode: route, fromOthers: route }
  const kind = address === undefined ? 'nodePort' : 'clusterIP'
  return {
    kind,
    address,
    protocol,
    port,
    ...routes,
    isSplit: false,
    allowedSources: undefined,
    affinitySeconds: undefined,
  }
}

function view(
  frontends: readonly Frontend[],
  serving: readonly string[],
  wish: Partial<ServicePortView> = {},
): ServicePortView {
  const names = { name: 'kube-system/dns', namespace: 'kube-system', service: 'dns', portName: '' }
  return { ...names, protocol: 'UDP', frontends, lists: {}, backends: BackendList.none, serving, ...wish }
}

const dns = (serving: readonly string[]) => view([frontend(clusterIp, 53), frontend(undefined, 30053)], serving)

function stale(
  flows: readonly UdpFlow[],
  servicePorts: readonly ServicePortView[],
  gone: readonly Frontend[] = [],
): UdpFlow[] {
  const index = new StaleFlowIndex(new Set([nodeIp]))
  index.addGone(gone)
  for (const view of servicePorts) index.add(view)
  return flows.filter((each) => index.isStale(each))
}

describe('StaleFlowIndex', () => {
  test('keeps what a serving endpoint answers', () => {
    const flows = [flow(clusterIp, 53, '10.1.0.1', 5353), flow(nodeIp, 30053, '10.1.0.1', 5353)]
    expect(stale(flows, [dns(['10.1.0.1:5353'])])).toEqual([])
  })

  test('deletes what an endpoint that is gone, or another port of it, would answer', () => {
    const flows = [
      flow(clusterIp, 53, '10.1.0.2', 5353),
      flow(clusterIp, 53, '10.1.0.1', 53),
      flow(nodeIp, 30053, '10.1.0.2', 5353),
    ]
    expect(stale(flows, [dns(['10.1.0.1:5353'])])).toEqual(flows)
  })

  test('deletes translated flows when no endpoint is left', () => {
    const flows = [flow(clusterIp, 53, '10.1.0.2', 5353), flow(nodeIp, 30053, '10.1.0.2', 5353)]
    expect(stale(flows, [dns([])])).toEqual(flows)
  })

  test('deletes flows that no rule translated once there are endpoints, not before', () => {
    const flows = [flow(clusterIp, 53, clusterIp, 53), flow(nodeIp, 30053, nodeIp, 30053)]
    expect(stale(flows, [dns([])])).toEqual([])
    expect(stale(flows, [dns(['10.1.0.1:5353'])])).toEqual(flows)
  })

  test('keeps a flow to an endpoint that has the address and port of the frontend itself', () => {
    expect(stale([flow(nodeIp, 30053, nodeIp, 30053)], [dns([`${nodeIp}:30053`])])).toEqual([])
  })

  test('leaves the node port number alone on other hosts', () => {
    const flows = [flow('192.168.0.2', 30053, '192.168.0.2', 30053), flow('192.168.0.2', 30053, '10.1.0.2', 5353)]
    expect(stale(flows, [dns(['10.1.0.1:5353'])], [frontend(undefined, 30053)])).toEqual([])
  })

  test('leaves direct flows and other ports alone', () => {
    const flows = [
      flow('10.1.0.2', 5353, '10.1.0.2', 5353),
      flow(clusterIp, 54, clusterIp, 54),
      flow('8.8.8.8', 53, '8.8.8.8', 53),
    ]
    expect(stale(flows, [dns(['10.1.0.1:5353'])])).toEqual([])
  })

  test('does not look at service ports of other protocols', () => {
    const tcp = view([frontend(clusterIp, 53, 'TCP')], [], { protocol: 'TCP' })
    expect(stale([flow(clusterIp, 53, '10.1.0.2', 5353)], [tcp])).toEqual([])
  })

  test('deletes translated flows to frontends that went away, and only those', () => {
    const translated = flow(clusterIp, 53, '10.1.0.1', 5353)
    const direct = flow(clusterIp, 53, clusterIp, 53)
    expect(stale([translated, direct], [], [frontend(clusterIp, 53)])).toEqual([translated])
    expect(stale([flow(nodeIp, 30053, '10.1.0.1', 5353)], [], [frontend(undefined, 30053)])).toHaveLength(1)
  })

  test('goes by the new owner when a frontend was handed on', () => {
    const flows = [flow(clusterIp, 53, '10.1.0.1', 5353), flow(clusterIp, 53, '10.1.0.2', 5353)]
    expect(stale(flows, [dns(['10.1.0.1:5353'])], [frontend(clusterIp, 53)])).toEqual(flows.slice(1))
  })

  test('says nothing about the flows of a service port that it was told to forget', () => {
    const index = new StaleFlowIndex(new Set([nodeIp]))
    const moved = flow(clusterIp, 53, '10.1.0.2', 5353)
    index.add(dns(['10.1.0.1:5353']))
    expect(index.isStale(moved)).toBe(true)
    index.forget(dns([]))
    expect(index.isStale(moved)).toBe(false)
    expect(index.isStale(flow(nodeIp, 30053, '10.1.0.2', 5353))).toBe(false)
  })

  describe('where source ranges are set', () => {
    const allowing = (...ranges: readonly string[]) => {
      const allowedSources = ranges.map((range) => parseCidr(range)!)
      return view([{ ...frontend(clusterIp, 514), kind: 'loadBalancerIP', allowedSources }], ['10.1.0.1:514'])
    }
    const answered = flow(clusterIp, 514, '10.1.0.1', 514)
    const unanswered = { ...answered, isAnswered: false }

    test('deletes flows of a client that is in none of them, but for those that were answered', () => {
      const syslog = allowing('10.2.0.0/16', '10.1.9.10/31')
      expect(stale([unanswered, answered], [syslog])).toEqual([unanswered])
    })

    test('keeps flows of a client that is in one of them', () => {
      for (const range of ['10.1.9.9/32', '10.1.8.0/22', '0.0.0.0/0']) {
        expect(stale([unanswered], [allowing('10.2.0.0/16', range, '9.0.0.0/8')])).toEqual([])
      }
    })

    test('looks at the frontend that was dialled, not at the others of the service port', () => {
      const both = { ...allowing('10.2.0.0/16') }
      const syslog = { ...both, frontends: [...both.frontends, frontend('10.0.0.11', 514)] }
      expect(stale([{ ...flow('10.0.0.11', 514, '10.1.0.1', 514), isAnswered: false }], [syslog])).toEqual([])
    })
  })

  test('speaks IPv6', () => {
    const six = view([frontend('fd02::a', 53)], ['[fd01::1]:5353'])
    const flows = [flow('fd02::a', 53, 'fd01::1', 5353), flow('fd02::a', 53, 'fd01::2', 5353)]
    expect(stale(flows, [six])).toEqual(flows.slice(1))
  })

  test('never deletes what a serving endpoint answers, whatever else there is', () => {
    const ip = fc.constantFrom(clusterIp, nodeIp, '10.1.0.1', '10.1.0.2')
    const port = fc.constantFrom(53, 5353, 30053)
    const flows = fc.array(fc.tuple(ip, port, ip, port).map((args) => flow(...args)))
    const serving = fc.subarray(['10.1.0.1:5353', '10.1.0.2:5353', `${nodeIp}:30053`])
    fc.assert(
      fc.property(flows, serving, (given, endpoints) => {
        for (const { original, reply } of stale(given, [dns(endpoints)], [frontend(clusterIp, 5353)])) {
          const isFrontend = [clusterIp, nodeIp].includes(original.dst)
          const isServed = original.dport !== 5353 && endpoints.includes(`${reply.src}:${reply.sport}`)
          expect([isFrontend, isServed]).toEqual([true, false])
        }
      }),
    )
  })
})

describe('goneUdpFrontends()', () => {
  const before = dns([])

  test('lists the UDP frontends that no change has any longer', () => {
    const after = view([frontend(clusterIp, 53)], [])
    expect(goneUdpFrontends([{ name: 'a', before, after }])).toEqual([before.frontends[1]])
    expect(goneUdpFrontends([{ name: 'a', before, after: undefined }])).toEqual(before.frontends)
    expect(goneUdpFrontends([{ name: 'a', before: undefined, after }])).toEqual([])
  })

  test('does not list a frontend that another service port got', () => {
    const other = view([frontend(clusterIp, 53)], [])
    const changes = [
      { name: 'b', before: undefined, after: other },
      { name: 'a', before, after: undefined },
    ]
    expect(goneUdpFrontends(changes)).toEqual([before.frontends[1]])
  })

  test('does not list other protocols', () => {
    const tcp = view([frontend(clusterIp, 53, 'TCP')], [], { protocol: 'TCP' })
    expect(goneUdpFrontends([{ name: 'a', before: tcp, after: undefined }])).toEqual([])
  })
})

describe('staleAnswerers()', () => {
  const one = '10.1.0.1:5353'
  const two = '10.1.0.2:5353'
  const answerers = (before: ServicePortView | undefined, after: ServicePortView | undefined) =>
    staleAnswerers([{ name: 'a', before, after }])

  test('are the endpoints that went', () => {
    expect(answerers(dns([one, two]), dns([one]))).toEqual(new Set([two]))
    expect(answerers(dns([one]), dns([]))).toEqual(new Set([one]))
  })

  test('are none when endpoints come, and when no UDP port is among the changes', () => {
    expect(answerers(dns([one]), dns([one, two]))).toEqual(new Set())
    const tcp = (serving: readonly string[]) => view([], serving, { protocol: 'TCP' })
    expect(answerers(tcp([one]), tcp([]))).toEqual(new Set())
  })

  test('may be any when more than endpoints changed, and when there were none', () => {
    const moved = view([frontend('10.0.0.11', 53), frontend(undefined, 30053)], [one])
    expect(answerers(undefined, dns([one]))).toBe('any')
    expect(answerers(dns([one]), undefined)).toBe('any')
    expect(answerers(dns([one]), moved)).toBe('any')
    expect(answerers(dns([]), dns([one]))).toBe('any')
    const within = (range: string) => view([{ ...frontend(clusterIp, 53), allowedSources: [parseCidr(range)!] }], [one])
    expect(answerers(within('10.0.0.0/8'), within('10.1.0.0/16'))).toBe('any')
    expect(answerers(within('10.0.0.0/8'), within('10.0.0.0/8'))).toEqual(new Set())
  })

  test('may be any when a policy left some clients without endpoints, and no longer does', () => {
    const backends = BackendList.of([{ ip: '10.1.0.1', port: 5353, isLocal: false }])
    const served = { verdict: { kind: 'to', policy: 'Cluster', backends }, masquerade: true } as const
    const dropped = { verdict: { kind: 'drop', reason: 'has no local endpoints' }, masquerade: false } as const
    const pods = frontend(clusterIp, 53)
    const cluster = view([{ ...pods, fromPods: served, fromNode: served, fromOthers: served }], [one])
    const local = view([{ ...pods, fromPods: served, fromNode: served, fromOthers: dropped }], [one])
    expect(answerers(local, cluster)).toBe('any')
    expect(answerers(cluster, local)).toEqual(new Set())
    expect(answerers(local, local)).toEqual(new Set())
  })

  test('answer all flows that become stale, if none was before', () => {
    const endpoint = fc.constantFrom('10.1.0.1', '10.1.0.2', '10.1.0.3', '10.1.0.4')
    const endpoints = fc.uniqueArray(endpoint, { maxLength: 4 })
    fc.assert(
      fc.property(endpoints, endpoints, fc.boolean(), (before, after, toNodePort) => {
        const [was, is] = [before, after].map((ips) => dns(ips.map((ip) => `${ip}:5353`))) as [
          ServicePortView,
          ServicePortView,
        ]
        const [dst, dport] = toNodePort ? [nodeIp, 30053] : [clusterIp, 53]
        const flows = before.map((ip) => flow(dst, dport, ip, 5353))
        const found = answerers(was, is)
        const looked = found === 'any' ? flows : flows.filter(({ reply }) => found.has(`${reply.src}:${reply.sport}`))
        expect(stale(looked, [is])).toEqual(stale(flows, [is]))
      }),
    )
  })
})
