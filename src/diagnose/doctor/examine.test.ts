import { describe, expect, it } from 'vitest'
import type { Explanation } from '../explain/explanation.ts'
import { plain } from '../paint.ts'
import { couldNotLook, examine } from './examine.ts'
import type { ServiceExamination } from './facts.ts'
import { formatDiagnosis } from './format.ts'

const explanation: Explanation = {
  version: 1,
  headline: 'A connection is sent.',
  agreement: 'agrees',
  question: {
    from: 'the node itself',
    source: '172.30.0.11',
    to: 'default/web',
    destination: '10.96.0.80',
    port: 80,
    protocol: 'TCP',
    asked: 'a test',
    hasObjects: true,
    node: 'node-1',
    mode: 'nftables',
    assumed: [],
  },
  outcome: 'to',
  because: 'default/web has 1 of 1 endpoints',
  client: { kind: 'node', because: '' },
  frontend: { servicePort: 'default/web', kind: 'clusterIP', address: '10.96.0.80', port: 80, protocol: 'TCP' },
  misses: [],
  sources: null,
  policy: null,
  backends: [
    { address: '10.244.1.3', port: 3000, node: 'node-1', eligible: true, why: '', masquerade: true, share: null },
  ],
  affinity: null,
  atConnect: null,
  masquerade: null,
  problems: [],
  kernel: { what: 'table ip kube-proxy', error: null, ways: [], differences: [] },
  sent: null,
}

const notDialled = { ways: undefined, tries: [], ends: undefined, serviceTry: undefined }

/** Nothing is wrong. */
const healthy: ServiceExamination = {
  asked: { service: 'default/web', port: '', from: 'node', via: undefined },
  proxy: { kind: 'answers', mode: 'nftables', node: 'node-1', unheard: [] },
  installation: { logs: 'journalctl -u kube-proxy', status: 'systemctl status kube-proxy' },
  service: {
    type: 'ClusterIP',
    clusterIP: '10.96.0.80',
    awaitsLoadBalancer: false,
    loadBalancerClass: undefined,
    externalName: '',
    proxyName: undefined,
    selector: { app: 'web' },
    ports: [{ name: '', port: 80, protocol: 'TCP', targetPort: 'web', nodePort: 0 }],
    pods: [{ name: 'a1', phase: 'Running', ready: true, why: '', portNames: ['web'] }],
    endpoints: { count: 1, ready: 1, draining: 0 },
    endpointPorts: ['(unnamed) 3000/TCP'],
    endpointFamilies: ['IPv4'],
  },
  apiError: undefined,
  near: [],
  explanation,
  others: [],
  machine: {
    forwardingOff: [],
    conntrack: { count: 10, max: 1000 },
    smallMtus: [],
    podMtu: { link: 'cni0', mtu: 1500 },
    strictRpFilter: [],
    rpFiltered: 0,
  },
  foreign: { found: [], walls: [], doubts: [], policyEngines: [] },
  ways: [{ to: '10.244.1.3:3000', way: { kind: 'link', link: 'eth0', mtu: 1500 } }],
  wayBack: undefined,
  tries: [{ to: '10.244.1.3:3000', pod: '', result: 'connected', error: '' }],
  ends: undefined,
  serviceTry: { to: '10.96.0.80:80', pod: '', result: 'connected', error: '' },
  staleFlows: undefined,
  dns: { kind: 'not asked' },
}

const pending = { ...healthy.service!, type: 'LoadBalancer', awaitsLoadBalancer: true }
const nodePort = { ...explanation.frontend!, kind: 'nodePort', address: '172.30.0.11', port: 30_000 } as const
const way = { to: '10.244.1.3:3000', way: { kind: 'link', link: 'eth0', mtu: 1500 } } as const
const lost = { to: '10.244.1.3:3000', pod: '', result: 'no answer', error: 'timeout' } as const

// What cannot be planted in a sandbox, or not without harm; the rest is in test/sandbox/doctor.test.ts.
describe('examine()', () => {
  it('finds nothing where nothing is wrong', () => {
    const diagnosis = examine(healthy)
    expect(diagnosis.finding).toBeNull()
    expect(diagnosis.answers.every(({ result }) => result === 'yes')).toBe(true)
    expect(formatDiagnosis(diagnosis, plain)).toContain('default/web: no problem found.')
  })

  it.each<[string, Partial<ServiceExamination>]>([
    [
      'kernel-differs',
      { explanation: { ...explanation, kernel: { ...explanation.kernel!, differences: ['it is not there'] } } },
    ],
    ['conntrack-full', { machine: { ...healthy.machine, conntrack: { count: 1000, max: 1000 } } }],
    [
      'rp-filter',
      {
        machine: { ...healthy.machine, strictRpFilter: ['eth0'], rpFiltered: 3 },
        tries: [{ to: '10.244.1.3:3000', pod: '', result: 'no answer', error: 'timeout' }],
      },
    ],
    ['service-silent', { serviceTry: { to: '10.96.0.80:80', pod: '', result: 'no answer', error: 'timeout' } }],
    [
      'endpoint-refuses',
      {
        tries: [
          { to: '10.244.1.3:3000', pod: '', result: 'connected', error: '' },
          { to: '10.244.1.4:3000', pod: '', result: 'refused', error: 'ECONNREFUSED' },
          { to: '10.244.1.5:3000', pod: '', result: 'connected', error: '' },
        ],
      },
    ],
    ['small-mtu', { ways: [{ to: '10.244.2.3:3000', way: { kind: 'link', link: 'eth0', mtu: 1300 } }] }],
    ['no-route', { ways: [{ to: '10.244.2.3:3000', way: { kind: 'none', error: 'its route is a blackhole' } }] }],
    ['no-way-back', { wayBack: { to: '172.30.0.1', way: { kind: 'none', error: 'there is no route' } } }],
    [
      'affinity-pins',
      {
        explanation: {
          ...explanation,
          affinity: { seconds: 60, remembered: true, backend: '10.244.1.4:3000', secondsLeft: 12 },
        },
        tries: [{ to: '10.244.1.4:3000', pod: '', result: 'no answer', error: 'timeout' }],
      },
    ],
    [
      'stale-flow',
      {
        staleFlows: [
          { protocol: 'UDP', client: '10.244.1.9:5353', dialled: '10.96.0.10:53', endpoint: '10.244.7.7:53' },
        ],
      },
    ],
    ['dns-silent', { dns: { kind: 'silent', name: 'web', server: '10.96.0.10', error: 'ECONNREFUSED' } }],
    ['dns-wrong', { dns: { kind: 'wrong', name: 'web', server: '10.96.0.10', answer: 'SERVFAIL' } }],
    [
      'network-policy',
      {
        foreign: {
          found: [
            {
              table: 'filter of iptables-nft',
              chain: 'cali-fw-x',
              rule: '-j DROP',
              verdict: 'drop',
              owner: { name: 'Calico', kind: 'network policy' },
              packet: 'a packet',
              next: 'iptables -L',
            },
          ],
          walls: [],
          doubts: [],
          policyEngines: ['Calico'],
        },
      },
    ],
    [
      'node-port-closed',
      {
        asked: { ...healthy.asked, via: 'nodePort' },
        others: [
          {
            label: 'its node port 30000/TCP',
            kind: 'nodePort',
            explanation: undefined,
            ...notDialled,
          },
        ],
      },
    ],
    [
      'service-silent',
      {
        others: [
          {
            label: 'its node port 172.30.0.11:30000/TCP',
            kind: 'nodePort',
            explanation,
            ...notDialled,
            tries: healthy.tries,
            serviceTry: { to: '172.30.0.11:30000', pod: '', result: 'no answer', error: 'timeout' },
          },
        ],
      },
    ],
    [
      'no-address',
      {
        explanation: undefined,
        nothingToDial: 'Service default/web has no load-balancer IP',
        asked: { ...healthy.asked, via: 'loadBalancerIP' },
      },
    ],
    ['load-balancer-pending', { service: pending, asked: { ...healthy.asked, via: 'loadBalancerIP' } }],
    ['load-balancer-pending', { service: pending, explanation: { ...explanation, frontend: nodePort } }],
    ['wrong-route', { ways: [{ ...way, mismatch: 'does not answer: it is on this node' }] }],
    ['next-hop-silent', { ways: [{ ...way, silentHop: '172.30.0.99' }], tries: [lost] }],
    ['stale-endpoint', { ways: [way], tries: [{ ...lost, isNobodys: true }] }],
    ['cannot-dial', { ways: [way], tries: [{ ...lost, result: 'not possible', error: 'EADDRNOTAVAIL' }] }],
    ['endpoint-unreachable', { ways: [way], tries: [{ ...lost, result: 'unreachable', error: 'EHOSTUNREACH' }] }],
    [
      'forwarding-off',
      { machine: { ...healthy.machine, forwardingOff: [{ setting: 'net.ipv4.conf.cni0.forwarding', link: 'cni0' }] } },
    ],
    [
      'endpoint-refuses',
      {
        tries: [],
        explanation: { ...explanation, question: { ...explanation.question, protocol: 'UDP' } },
        ends: [{ to: '10.244.1.3:53', answer: 'refused', droppedBy: null, drops: [], dropsError: null }],
      },
    ],
    [
      'endpoint-family',
      {
        explanation: { ...explanation, backends: [] },
        service: { ...healthy.service!, endpointFamilies: ['IPv6'] },
      },
    ],
    ['proxy-uninformed', { proxy: { kind: 'answers', mode: 'nftables', node: 'node-1', unheard: ['nothing'] } }],
    ['not-sent', { explanation: { ...explanation, outcome: 'untouched', headline: 'Nothing takes it.' } }],
  ])('finds %s', (code, change) => {
    expect(examine({ ...healthy, ...change }).finding?.code).toBe(code)
  })

  it('stops at the first that fails, and says what to type', () => {
    const facts: ServiceExamination = { ...healthy, service: { ...healthy.service!, pods: [] }, tries: [] }
    const { answers, finding } = examine(facts)
    expect(answers.at(-1)).toMatchObject({ question: 'does its selector match a pod', result: 'no' })
    expect(finding).toMatchObject({
      code: 'selector-matches-nothing',
      next: 'kubectl -n default get pods --show-labels',
    })
    expect(formatDiagnosis({ service: 'default/web', answers, finding }, plain)).toMatch(
      /\nNext: kubectl -n default get pods --show-labels\n$/,
    )
  })

  it('says how many of the endpoints fail', () => {
    const tries = ['connected', 'refused', 'connected'].map((result, i) => ({
      to: `10.244.1.${3 + i}:3000`,
      pod: '',
      result: result as 'connected' | 'refused',
      error: '',
    }))
    expect(examine({ ...healthy, tries }).finding?.what).toMatch(
      /^1 of 3 endpoints refuses connections: 10\.244\.1\.4:3000/,
    )
  })

  it('claims nothing about what could not be looked at', () => {
    const machine = { ...healthy.machine, conntrack: undefined, forwardingOff: undefined }
    const foreign = {
      found: [],
      walls: [],
      doubts: [
        { what: 'table inet fw, chain in may drop it', next: 'nft -a list chain inet fw in', isOfThisNode: true },
      ],
      policyEngines: [],
    }
    const diagnosis = examine({ ...healthy, machine, foreign })
    expect(diagnosis.finding).toBeNull()
    expect(couldNotLook(diagnosis)).toBe(true)
    expect(diagnosis.answers.filter(({ result }) => result === 'not known')).toHaveLength(3)
    expect(formatDiagnosis(diagnosis, plain)).toContain(
      'default/web: no problem found, but 3 questions were not answered (marked ?).',
    )
  })

  it('does not claim without an API server what only that knows', () => {
    const service = {
      ...healthy.service!,
      selector: 'not known' as const,
      pods: undefined,
      endpoints: { count: 3, ready: 0, draining: 0 },
    }
    expect(examine({ ...healthy, service }).finding).toMatchObject({
      code: 'pods-not-ready',
      what: 'none of its 3 endpoints is ready',
    })
  })

  it('claims nothing of endpoints that only this node cannot reach', () => {
    const wall = { what: 'a rule may drop it', next: 'nft list ruleset', isOfThisNode: true }
    const foreign = { ...healthy.foreign!, walls: [wall] }
    const diagnosis = examine({ ...healthy, foreign, ways: [way], tries: [lost] })
    expect(diagnosis.finding).toBeNull()
    expect(couldNotLook(diagnosis)).toBe(true)
  })

  it('takes what the Service itself says for no fault, unless just that was asked', () => {
    const sources = { allowed: false, why: 'loadBalancerSourceRanges has 10.9.0.0/16' }
    const others = [
      {
        label: 'its load-balancer IP 172.30.0.129:80/TCP',
        kind: 'loadBalancerIP',
        explanation: { ...explanation, outcome: 'drop' as const, sources },
        ...notDialled,
      },
    ]
    expect(examine({ ...healthy, others }).finding).toBeNull()
    const asked = { ...healthy.asked, via: 'loadBalancerIP' }
    expect(examine({ ...healthy, asked, others }).finding?.code).toBe('source-not-allowed')
  })
})
