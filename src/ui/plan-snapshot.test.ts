import { expect, test } from 'vitest'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import type { Known } from '../diagnose/explain/known.ts'
import { modeNamed } from '../modes/all.ts'
import { MOST_BACKENDS, MOST_SERVICES, planSnapshot, type ClusterFacts, type ObservedNode } from './plan-snapshot.ts'
import type { PodInfo } from './protocol.ts'

const known: Known = {
  source: 'a test',
  hasObjects: true,
  mode: modeNamed('nftables'),
  nodes: { 4: nodeView({ nodeName: 'node-1' }) },
  machineAddresses: [],
  services: [service()],
  slices: [
    slice([
      '10.1.0.1',
      { address: '10.1.0.2', ready: false, serving: false, terminating: false },
      '10.1.0.3',
      '10.1.0.5',
    ]),
  ],
  allowExternalIPs: true,
  localhostNodePorts: false,
  connectRetry: true,
  ejected: new Map([['10.1.0.3:8080', 'refused, since then']]),
  otherNodes: [],
  pods: [],
}
const node: ObservedNode = {
  name: 'node-1',
  addresses: ['192.168.0.1'],
  podRanges: [],
  zone: null,
  asked: 'nftables',
  pid: 7,
  restarts: 2,
  state: undefined,
  known,
  error: 'no proxy runs',
}
const facts: ClusterFacts = {
  kind: 'sandbox',
  name: 's',
  can: { act: true, send: 'anywhere', modes: [] },
  terminal: { program: 'kube-proxy', sandbox: null, kubeconfig: null },
  apiServer: { url: '', state: 'there' },
  outside: null,
  load: null,
  nodes: [node],
  pods: [
    { namespace: 'default', name: 'a', ips: ['10.1.0.1'], hostNetwork: false, node: 'node-1' } as unknown as PodInfo,
  ],
  deployments: [],
  services: [service()],
  slices: [
    slice([
      '10.1.0.1',
      { address: '10.1.0.2', ready: false, serving: false, terminating: false },
      '10.1.0.3',
      '10.1.0.4',
    ]),
  ],
  selectors: new Map([['default/web', { app: 'web' }]]),
}

test('each backend comes with its pod, and with the nodes that do not use it and why', () => {
  const { services } = planSnapshot(facts)
  expect(services[0]).toMatchObject({ namespace: 'default', name: 'web', selector: { app: 'web' }, system: false })
  const { backends } = services[0]!.ports[0]!
  expect(backends.map(({ address, pod, notOn, ejectedOn }) => [address, pod, notOn['node-1'], ejectedOn])).toEqual([
    ['10.1.0.1:8080', 'default/a', undefined, []],
    ['10.1.0.2:8080', null, 'not ready', []],
    ['10.1.0.3:8080', null, 'ejected: refused, since then', ['node-1']],
    // The API has it, and the proxy has not heard of it yet.
    ['10.1.0.4:8080', null, 'its proxy does not know of it', []],
  ])
})

test('a proxy that cannot be asked is away, and says why', () => {
  expect(planSnapshot(facts).nodes[0]).toMatchObject({
    mode: 'nftables',
    proxy: { state: 'away', pid: 7, restarts: 2, error: 'no proxy runs' },
  })
})

test('what there is no room for is counted, and the system comes last', () => {
  const many = Array.from({ length: MOST_SERVICES }, (_, i) => ({ ...service(), name: `web-${i}` }))
  const dns = { ...service(), namespace: 'kube-system', name: 'dns' }
  const { services, leftOut } = planSnapshot({ ...facts, services: [dns, ...many] })
  expect(services).toHaveLength(MOST_SERVICES)
  expect(leftOut).toEqual({ services: 1, pods: 0, backends: 0 })
  expect(services.some(({ system }) => system)).toBe(false)
  expect(planSnapshot({ ...facts, services: [dns, service()] }).services.map(({ name }) => name)).toEqual([
    'web',
    'dns',
  ])
})

test('endpoints that there is no room for are counted, each once', () => {
  const addresses = Array.from({ length: MOST_BACKENDS + 3 }, (_, i) => `10.1.${i >> 7}.${i & 127}`)
  const slices = [slice(addresses), { ...slice(addresses.slice(-2)), name: 'again' }]
  const { services, leftOut } = planSnapshot({ ...facts, slices })
  const [port] = services[0]!.ports
  expect([port!.backends.length, port!.moreBackends]).toEqual([MOST_BACKENDS, 3])
  expect(leftOut).toEqual({ services: 0, pods: 0, backends: 3 })
})

test('says how endpoints are chosen, and on which nodes otherwise', () => {
  const asked = service({ annotations: { 'service.kube-proxy-ts.io/balance': 'least-connections' } })
  const other = { ...node, name: 'node-2', known: { ...known, mode: modeNamed('iptables') } }
  const [found] = planSnapshot({ ...facts, services: [asked], nodes: [node, other] }).services
  expect(found).toMatchObject({ balance: 'least-connections', otherBalances: { 'node-2': 'random' } })
  expect(planSnapshot(facts).services[0]).toMatchObject({ balance: 'random', otherBalances: {} })
})
