// Snapshots for tests: a cluster of any size.

import type { BackendInfo, NodeInfo, PodInfo, ServiceInfo, Snapshot } from '../../src/ui/protocol.ts'

export interface Size {
  readonly nodes?: number
  readonly pods?: number
  readonly services?: number
}

export function makeSnapshot({ nodes = 2, pods = 3, services = 1 }: Size = {}): Snapshot {
  const nodeInfos = Array.from({ length: nodes }, (_, i) => makeNode(i + 1))
  const podInfos = Array.from({ length: pods }, (_, i) => makePod(i, nodeInfos[i % nodes]!.name))
  return {
    kind: 'sandbox',
    name: 'sandbox',
    can: { act: true, send: 'anywhere', modes: ['nftables', 'iptables'] },
    terminal: { program: './bin/kube-proxy', sandbox: null, kubeconfig: '/run/kubeconfig' },
    apiServer: { url: 'https://172.30.0.1:6443', state: 'there' },
    nodes: nodeInfos,
    pods: podInfos,
    services: Array.from({ length: services }, (_, i) =>
      makeService(
        i,
        podInfos.filter((_, j) => j % services === i),
      ),
    ),
    deployments: [{ namespace: 'default', name: 'whoami', replicas: pods, ready: pods }],
    outside: { name: 'machine', addresses: ['172.30.0.254'] },
    leftOut: { services: 0, pods: 0, backends: 0 },
    load: null,
  }
}

function makeNode(number: number): NodeInfo {
  return {
    name: `node-${number}`,
    addresses: [`172.30.0.${10 + number}`],
    podRanges: [`10.244.${number}.0/24`],
    zone: null,
    mode: 'nftables',
    proxy: { state: 'ready', pid: 700 + number, restarts: 0, families: [], error: null },
  }
}

export function makePod(index: number, node = 'node-1'): PodInfo {
  return {
    namespace: 'default',
    name: `whoami-79cbd4f87-${String(index).padStart(5, 'a')}`,
    node,
    ips: [`10.244.1.${index + 3}`],
    phase: 'Running',
    ready: true,
    terminating: false,
    fail: 'none',
    labels: {},
    deployment: 'whoami',
    hostNetwork: false,
  }
}

export function makeService(index: number, pods: readonly PodInfo[]): ServiceInfo {
  const name = index === 0 ? 'whoami' : `service-${index}`
  return {
    namespace: 'default',
    name,
    type: 'LoadBalancer',
    clusterIPs: [`10.96.0.${20 + index}`],
    externalIPs: [],
    loadBalancerIPs: [`172.30.0.${129 + index}`],
    loadBalancerSourceRanges: [],
    internalTrafficPolicy: 'Cluster',
    externalTrafficPolicy: 'Cluster',
    affinitySeconds: null,
    connectRetry: false,
    balance: 'random',
    otherBalances: {},
    healthCheckNodePort: null,
    selector: { app: name },
    ports: [
      {
        id: `default/${name}`,
        name: '',
        protocol: 'TCP',
        port: 3000,
        nodePort: 30_000 + index,
        backends: pods.map(makeBackend),
        moreBackends: 0,
      },
    ],
    system: false,
  }
}

function makeBackend({ namespace, name, node, ips }: PodInfo): BackendInfo {
  return {
    address: `${ips[0]}:3000`,
    pod: `${namespace}/${name}`,
    node,
    ready: true,
    serving: true,
    terminating: false,
    notOn: {},
    ejectedOn: [],
  }
}
