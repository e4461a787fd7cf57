// Clusters and packets at random, the same for the same seed: services of all kinds with endpoints in all states, settings of
// the node, and packets to what is there and to what is near it. Addresses are those of addresses.ts.

import { WITHOUT_LOCAL_ANNOTATION } from '../../src/model/without-local.ts'
import type { EndpointSlice, Protocol, Service, SliceEndpoint } from '../../src/kube/types.ts'
import type { Family } from '../../src/lib/ip.ts'
import type { Connection } from '../../src/model/follow.ts'
import type { ProxySettings } from '../conformance/packet-flow.ts'
import { type Source, sources } from '../conformance/packet-flow.ts'
import { seededRandom } from '../faults/random.ts'
import { node, peer, pods } from './addresses.ts'

export interface RandomCluster {
  readonly settings: ProxySettings
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
}

export class Dice {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  below(count: number): number {
    return Math.floor(this.#random() * count)
  }

  /** One in so many. */
  one(outOf: number): boolean {
    return this.below(outOf) === 0
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!
  }

  some<T>(values: readonly T[]): T[] {
    return values.filter(() => this.one(2))
  }
}

const PROTOCOLS: readonly Protocol[] = ['TCP', 'TCP', 'UDP', 'SCTP']
const SETTINGS: readonly ProxySettings[] = [
  {},
  {},
  { detectLocalMode: 'NodeCIDR' },
  { detectLocalMode: 'BridgeInterface', podBridgeInterface: node.bridge },
  { detectLocalMode: 'InterfaceNamePrefix', podInterfaceNamePrefix: 'cni' },
  { clusterCIDR: '' },
  { masqueradeAll: true },
  { nodePortAddresses: ['primary'] },
  { nodePortAddresses: ['10.3.0.0/24', 'fd03::/64'] },
]

export function aRandomCluster(dice: Dice, family: Family): RandomCluster {
  const services: Service[] = []
  const slices: EndpointSlice[] = []
  const count = 1 + dice.below(5)
  for (let i = 0; i < count; i++) {
    const service = aRandomService(dice, family, i)
    services.push(service)
    const slicesOf = dice.one(4) ? 2 : 1
    for (let nth = 0; nth < slicesOf; nth++) if (!dice.one(8)) slices.push(aRandomSlice(dice, family, service, nth))
  }
  return { settings: dice.pick(SETTINGS), services, slices }
}

/** Addresses that several services may claim. */
const EXTERNAL: Readonly<Record<Family, readonly string[]>> = {
  4: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
  6: ['2001:db8::1', '2001:db8::2', '2001:db8::3'],
}

function aRandomService(dice: Dice, family: Family, i: number): Service {
  const type = dice.pick(['ClusterIP', 'ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'])
  const ports = Array.from({ length: 1 + dice.below(2) }, (_, nth) => ({
    name: `p${nth}`,
    protocol: dice.pick(PROTOCOLS),
    port: 80 + nth,
    nodePort: type === 'ClusterIP' ? 0 : 30_000 + dice.below(6),
  }))
  const label = dice.one(12) ? { 'service.kubernetes.io/service-proxy-name': 'other' } : undefined
  return {
    namespace: 'default',
    name: `s${i}`,
    type,
    clusterIPs: [dice.one(15) ? 'None' : family === 4 ? `10.2.0.${10 + i}` : `fd02::${10 + i}`],
    externalIPs: dice.one(3) ? dice.some(EXTERNAL[family]) : [],
    ports,
    sessionAffinity: dice.one(4) ? 'ClientIP' : 'None',
    affinityTimeoutSeconds: 600,
    externalTrafficPolicy: dice.pick(['Cluster', 'Local']),
    internalTrafficPolicy: dice.pick(['Cluster', 'Cluster', 'Local']),
    loadBalancerSourceRanges: dice.one(4) ? dice.some(family === 4 ? RANGES4 : RANGES6) : [],
    healthCheckNodePort: type === 'LoadBalancer' ? 31_000 + i : 0,
    ingress: type === 'LoadBalancer' ? dice.some(EXTERNAL[family]).map((ip) => ({ ip, ipMode: dice.pick(MODES) })) : [],
    labels: label,
    annotations: WITHOUT_LOCAL[i],
    createdMs: dice.below(3),
  }
}

/** By the number of the service. */
const WITHOUT_LOCAL = [undefined, 'use-others', 'leave-alone'].map((words) =>
  words === undefined ? undefined : { [WITHOUT_LOCAL_ANNOTATION]: words },
)
const RANGES4 = ['10.3.0.0/24', '10.1.0.0/16', '10.3.0.100/32']
const RANGES6 = ['fd03::/64', 'fd01::/48', 'fd03::100/128']
const MODES = ['VIP', 'VIP', 'Proxy']

function aRandomSlice(dice: Dice, family: Family, service: Service, nth: number): EndpointSlice {
  const hosts = [...Object.values(pods), ...(dice.one(6) ? [{ ip: node.ip, nodeName: node.name }] : [])]
  const hints = dice.pick(['none', 'none', 'zones', 'nodes', 'some'] as const)
  const ready = dice.pick([2, 10, 10])
  const endpoints = dice.some(hosts).map((host): SliceEndpoint => {
    const terminating = dice.one(4)
    const serving = !dice.one(ready)
    const hinted = hints === 'zones' || (hints === 'some' && dice.one(2))
    return {
      address: host.ip[family],
      ready: serving && !terminating,
      serving,
      terminating,
      nodeName: dice.one(10) ? undefined : host.nodeName,
      zoneHints: hinted ? [dice.pick([node.zone, peer.zone])] : undefined,
      nodeHints: hints === 'nodes' ? [dice.pick([node.name, peer.name])] : undefined,
    }
  })
  const ports = service.ports
    .filter(() => !dice.one(10))
    .map(({ name, protocol }) => ({ name, protocol, port: dice.pick([8080, 8080, 9090]) }))
  return {
    namespace: service.namespace,
    name: `${service.name}-${nth}`,
    serviceName: service.name,
    addressType: family === 4 ? 'IPv4' : 'IPv6',
    ports,
    endpoints,
    triggerTimeMs: undefined,
  }
}

export interface RandomPacket {
  readonly from: Source
  readonly connection: Connection
}

/** To a frontend, or to something that differs from one in a single respect. */
export function aRandomPacket(dice: Dice, family: Family, { services }: RandomCluster): RandomPacket {
  const service = dice.pick(services)
  const port = dice.pick(service.ports)
  const [clusterIP = ''] = service.clusterIPs
  const nodeIps = [node.ip, node.ip, node.secondIp, node.bridgeIp].map((ip) => ip[family])
  const targets = [
    { address: clusterIP === 'None' ? (family === 4 ? '10.2.0.99' : 'fd02::99') : clusterIP, port: port.port },
    ...[...service.externalIPs, ...service.ingress.map(({ ip }) => ip)].map((ip) => ({ address: ip, port: port.port })),
    ...(port.nodePort === 0 ? [] : [{ address: dice.pick(nodeIps), port: port.nodePort }]),
  ]
  const target = dice.pick(targets)
  const from = dice.pick(['localPod', 'otherLocalPod', 'remotePod', 'node', 'external'] as const)
  return {
    from,
    connection: {
      source: sources[from].ip[family],
      inputInterface: sources[from].iif,
      destination: dice.one(20) ? (family === 4 ? '10.2.0.200' : 'fd02::200') : target.address,
      protocol: dice.one(10) ? dice.pick(PROTOCOLS) : port.protocol,
      port: dice.one(12) ? 4444 : target.port,
    },
  }
}
