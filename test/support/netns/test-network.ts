// The test network of test/support/addresses.ts: a network of the sandbox with two nodes, in which the external client is the
// machine and the control namespace the fabric, and with what the packet-flow table asks for beyond that.

import { control, echoPorts, external, hole, node, peer, pods, ranges, unservedPort } from '../addresses.ts'
import { Cleanup } from '../cleanup.ts'
import { serveEcho } from './echo-server.ts'
import { serveSctp } from './sctp.ts'
import { Netns, openNetns, restIn } from './netns.ts'
import { ClusterNetwork, openPodNetwork } from '../../../packages/sandbox/src/netns/cluster-network.ts'
import { hostSysctls } from '../../../packages/sandbox/src/netns/sysctls.ts'
import type { AddressPlan, NodeAddresses } from '../../../packages/sandbox/src/address-plan.ts'
import type { DualStack, PodName } from '../addresses.ts'
import type { NetworkNamespace } from '../../../packages/sandbox/src/netns/network-namespace.ts'
import type { Source } from '../../conformance/packet-flow.ts'

export interface TestNetwork extends AsyncDisposable {
  readonly node: Netns
  readonly peer: Netns
  readonly external: Netns
  readonly pods: Readonly<Record<PodName, Netns>>
  /** The namespace of each source of the packet-flow table. */
  readonly sources: Readonly<Record<Source, Netns>>
}

const families = [4, 6] as const

const plan: AddressPlan = {
  index: 0,
  families,
  podRanges: both(ranges.pods),
  serviceRanges: both(ranges.services),
  loadBalancerRanges: [],
  fabricRanges: both(ranges.lan),
  machine: both(external.ip),
  controlPlane: both(control.ip),
}

function planOf({ name, ip, bridgeIp }: typeof node | typeof peer, podRange: DualStack): NodeAddresses {
  return { name, addresses: both(ip), podRanges: both(podRange), gateways: both(bridgeIp) }
}

/**
 * Builds the network, starts the echo servers and moves this process to the control namespace, where it stays until the
 * network is disposed of: servers that it opens there (an API server) are reached at control.ip.
 */
export async function openTestNetwork(): Promise<TestNetwork> {
  const cleanup = new Cleanup()
  const outside = cleanup.use(openNetns(external.name))
  outside.setSysctls(hostSysctls)
  outside.ip(['link set lo up'])
  const network = cleanup.use(outside.enter(() => new ClusterNetwork(plan)))
  network.addNodes([planOf(node, ranges.localPods), planOf(peer, ranges.remotePods)])
  const [here, there] = network.nodes as [NodeNetwork, NodeNetwork]
  const hosts = { node: asNetns(here.netns), peer: asNetns(there.netns), external: outside }
  const inPods = Object.fromEntries(
    Object.values(pods).map(({ name, nodeName, ip }) => {
      const host = nodeName === node.name ? here : there
      return [name, asNetns(cleanup.use(openPodNetwork(host, name, both(ip))))]
    }),
  ) as Record<PodName, Netns>
  const lan = asNetns(network.fabric.netns)
  addToLan(lan)
  addToHosts(hosts, network.machineLink)
  inPods.localC.ip(eachFamily((family) => [`route add local ${ranges.manyPods[family]} dev lo`]))

  for (const [name, netns] of [...Object.entries(inPods), ['node', hosts.node] as const]) {
    cleanup.use(await serveEcho(netns, name, echoPorts))
    for (const port of echoPorts.sctp) cleanup.use(serveSctp(netns, name, port))
  }
  cleanup.use(await serveEcho(lan, control.name, { tcp: [unservedPort], udp: [] }))
  cleanup.use(restIn(lan))
  return {
    ...hosts,
    pods: inPods,
    sources: {
      localPod: inPods.localA,
      otherLocalPod: inPods.localB,
      remotePod: inPods.remoteA,
      node: hosts.node,
      external: hosts.external,
    },
    [Symbol.asyncDispose]: () => cleanup[Symbol.asyncDispose](),
  }
}

type NodeNetwork = ClusterNetwork['nodes'][number]

/** The hole swallows packets; the fabric of a sandbox would tell their senders. What no proxy takes is answered here. */
function addToLan(lan: Netns): void {
  lan.setSysctls(hostSysctls)
  lan.ip([
    'route del unreachable 0.0.0.0/0',
    'route del unreachable ::/0',
    // Where IPv6 has no route, the kernel says so even if it is no router.
    'route add blackhole ::/0',
    ...furtherAddress('fabric', hole.ip),
    ...eachFamily((family) => [`route add local ${ranges.unserved[family]} dev lo`]),
  ])
}

/** Each way leads to the node under test, and its own to the hole. */
function addToHosts(hosts: Readonly<Record<'node' | 'peer' | 'external', Netns>>, externalLink: string): void {
  hosts.node.ip([
    ...furtherAddress('eth0', node.secondIp),
    ...eachFamily((family) => [
      `route add ${ranges.crowd[family]} via ${external.ip[family]}`,
      `route add ${ranges.manyPods[family]} via ${pods.localC.ip[family]} dev ${node.bridge}`,
      `route replace default via ${hole.ip[family]}`,
    ]),
  ])
  hosts.peer.ip(eachFamily((family) => [`route replace default via ${node.ip[family]}`]))
  hosts.external.ip([
    ...furtherAddress(externalLink, external.secondIp),
    ...eachFamily((family) => [
      `route add default via ${node.ip[family]}`,
      `route add local ${ranges.crowd[family]} dev lo`,
    ]),
  ])
}

/** One that is not chosen as a source unless a client asks for it. */
function furtherAddress(link: string, ip: DualStack): string[] {
  return [`addr add ${ip[4]}/24 dev ${link}`, `addr add ${ip[6]}/64 dev ${link} nodad preferred_lft 0`]
}

function asNetns({ name, fd }: NetworkNamespace): Netns {
  return new Netns(name, fd)
}

function eachFamily(commands: (family: 4 | 6) => string[]): string[] {
  return families.flatMap(commands)
}

function both(ip: DualStack): string[] {
  return families.map((family) => ip[family])
}
