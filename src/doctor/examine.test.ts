import { describe, expect, it } from 'vitest'
import type { Explanation } from '../explain/explanation.ts'
import { plain } from '../explain/paint.ts'
import { examine } from './examine.ts'
import type { Facts } from './facts.ts'
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
  backends: [{ address: '10.244.1.3', port: 3000, node: 'node-1', eligible: true, why: '', masquerade: true }],
  affinity: null,
  atConnect: null,
  masquerade: null,
  problems: [],
  kernel: { what: 'table ip kube-proxy', error: null, ways: [], differences: [] },
  sent: null,
}

/** Nothing is wrong. */
const healthy: Facts = {
  asked: { service: 'default/web', port: '', from: 'node' },
  proxy: { kind: 'answers', mode: 'nftables', node: 'node-1' },
  api: { server: 'https://api' },
  service: {
    type: 'ClusterIP',
    clusterIP: '10.96.0.80',
    externalName: '',
    proxyName: undefined,
    selector: { app: 'web' },
    ports: [{ name: '', port: 80, protocol: 'TCP', targetPort: 'web' }],
    pods: [{ name: 'a1', phase: 'Running', ready: true, why: '', portNames: ['web'] }],
    endpoints: 1,
    endpointPorts: ['(unnamed) 3000/TCP'],
  },
  near: [],
  explanation,
  mistake: undefined,
  machine: { forwarding: true, conntrack: { count: 10, max: 1000 }, smallMtus: [], strictRpFilter: [], rpFiltered: 0 },
  foreign: [],
  tries: [{ to: '10.244.1.3:3000', pod: '', result: 'connected', error: '' }],
  serviceTry: { to: '10.96.0.80:80', pod: '', result: 'connected', error: '' },
}

// What cannot be planted in a sandbox, or not without harm; the rest is in test/sandbox/doctor.test.ts.
describe('examine()', () => {
  it('finds nothing where nothing is wrong', () => {
    const diagnosis = examine(healthy)
    expect(diagnosis.finding).toBeNull()
    expect(diagnosis.answers.every(({ result }) => result === 'yes')).toBe(true)
    expect(formatDiagnosis(diagnosis, plain)).toContain('default/web: nothing is wrong that can be seen from here.')
  })

  it.each<[string, Partial<Facts>]>([
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
    ['not-sent', { explanation: { ...explanation, outcome: 'untouched', headline: 'Nothing takes it.' } }],
  ])('finds %s', (code, change) => {
    expect(examine({ ...healthy, ...change }).finding?.code).toBe(code)
  })

  it('stops at the first that fails, and says what to type', () => {
    const facts: Facts = { ...healthy, service: { ...healthy.service!, pods: [] }, tries: [], foreign: [] }
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
})
