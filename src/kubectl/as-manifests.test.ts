import { expect, test } from 'vitest'
import { parseManifest } from '../kube/manifests/parse-manifest.ts'
import { flagsOfConfig, formatManifests } from './as-manifests.ts'

test('objects of an API server become manifests that the proxy can read', () => {
  const metadata = {
    name: 'web',
    namespace: 'shop',
    uid: 'u',
    resourceVersion: '7',
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { 'kubernetes.io/service-name': 'web' },
    annotations: {
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'service.kubernetes.io/topology-mode': 'Auto',
    },
    managedFields: [{}],
  }
  const service = {
    metadata,
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1'],
      ports: [{ port: 80, protocol: 'TCP', targetPort: 'http' }],
    },
    status: { loadBalancer: {} },
  }
  const slice = {
    metadata,
    addressType: 'IPv4',
    endpoints: [
      {
        addresses: ['10.244.1.3'],
        conditions: { ready: true },
        nodeName: 'node-1',
        targetRef: { kind: 'Pod', name: 'web-1' },
      },
    ],
    ports: [{ name: '', port: 8080, protocol: 'TCP' }],
  }
  const node = {
    metadata: { name: 'node-1', labels: { 'topology.kubernetes.io/zone': 'a' } },
    spec: { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'], providerID: 'x' },
    status: { addresses: [{ type: 'InternalIP', address: '172.18.0.2' }], capacity: { cpu: '2' } },
  }
  const text = formatManifests({ services: [service], slices: [slice], nodes: [node] })
  const { objects, remarks } = parseManifest(text)
  expect(remarks.filter(({ severity }) => severity === 'error')).toEqual([])
  expect(objects.map(({ kind }) => kind)).toEqual(['Service', 'EndpointSlice', 'Node'])
  expect(text).not.toContain('last-applied')
  expect(text).toContain('topology-mode')
})

test('a slice without endpoints says null', () => {
  const text = formatManifests({
    services: [],
    slices: [{ metadata: { name: 's' }, endpoints: null, ports: null }],
    nodes: [],
  })
  expect(text).toContain('"endpoints":[]')
})

test('the configuration of a kube-proxy becomes flags', () => {
  expect(flagsOfConfig('')).toEqual(['--proxy-mode=iptables'])
  const config = `
mode: nftables
clusterCIDR: 10.244.0.0/16,fd00::/56
detectLocalMode: NodeCIDR
nodePortAddresses: [primary]
nftables: { masqueradeAll: true }
iptables: { localhostNodePorts: false }
`
  expect(flagsOfConfig(config)).toEqual([
    '--proxy-mode=nftables',
    '--cluster-cidr=10.244.0.0/16,fd00::/56',
    '--detect-local-mode=NodeCIDR',
    '--nodeport-addresses=primary',
    '--masquerade-all',
    '--iptables-localhost-nodeports=false',
  ])
})
