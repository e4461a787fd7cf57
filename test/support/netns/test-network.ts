// The test network of test/support/addresses.ts, made of network namespaces.

import { control, echoPorts, external, hole, node, peer, pods, ranges, unservedPort } from '../addresses.ts'
import { Cleanup } from '../cleanup.ts'
import { serveEcho } from './echo-server.ts'
import { serveSctp } from './sctp.ts'
import { openNetns, restIn } from './netns.ts'
import { hostSysctls, routerSysctls } from '../../../src/sandbox/netns/sysctls.ts'
import type { DualStack, Pod, PodName } from '../addresses.ts'
import type { Netns } from './netns.ts'
import type { Source } from '../../conformance/packet-flow.ts'

export interface TestNetwork extends AsyncDisposable {
  readonly node: Netns
  readonly peer: Netns
  readonly external: Netns
  readonly pods: Readonly<Record<PodName, Netns>>
  /** The namespace of each source of the packet-flow table. */
  readonly sources: Readonly<Record<Source, Netns>>
}

const prefixLength = { 4: 32, 6: 128 } as const
const families = [4, 6] as const

/**
 * Builds the network, starts the echo servers and moves this process to the control namespace, where it stays until the
 * network is disposed of: servers that it opens there (an API server) are reached at control.ip.
 */
export async function openTestNetwork(): Promise<TestNetwork> {
  const cleanup = new Cleanup()
  const open = (name: string) => cleanup.use(openNetns(name))
  const lan = open('control')
  const namespaces = { node: open('node'), peer: open('peer'), external: open('external') }
  const podNamespaces = Object.fromEntries(Object.keys(pods).map((name) => [name, open(name)])) as Record<
    PodName,
    Netns
  >

  for (const netns of [lan, ...Object.values(namespaces), ...Object.values(podNamespaces)]) {
    const isRouter = netns === namespaces.node || netns === namespaces.peer
    netns.setSysctls(isRouter ? routerSysctls : hostSysctls)
  }
  buildLan(lan, namespaces)
  answerUnserved(lan)
  for (const pod of Object.values(pods)) {
    attachPod(pod, podNamespaces[pod.name as PodName], pod.nodeName === node.name ? namespaces.node : namespaces.peer)
  }
  addRoutes(namespaces, podNamespaces)

  for (const [name, netns] of [...Object.entries(podNamespaces), ['node', namespaces.node] as const]) {
    cleanup.use(await serveEcho(netns, name, echoPorts))
    for (const port of echoPorts.sctp) cleanup.use(serveSctp(netns, name, port))
  }
  cleanup.use(await serveEcho(lan, control.name, { tcp: [unservedPort], udp: [] }))
  cleanup.use(restIn(lan))
  return {
    ...namespaces,
    pods: podNamespaces,
    sources: {
      localPod: podNamespaces.localA,
      otherLocalPod: podNamespaces.localB,
      remotePod: podNamespaces.remoteA,
      node: namespaces.node,
      external: namespaces.external,
    },
    [Symbol.asyncDispose]: () => cleanup[Symbol.asyncDispose](),
  }
}

function buildLan(lan: Netns, hosts: { node: Netns; peer: Netns; external: Netns }): void {
  lan.ip([
    'link set lo up',
    'link add br0 type bridge',
    'link set br0 up',
    ...addresses('br0', [control.ip, hole.ip], { 4: 24, 6: 64 }),
    ...Object.values(hosts).flatMap((host) => [
      `link add to-${host.name} type veth peer name eth0 netns ${host.path}`,
      `link set to-${host.name} master br0 up`,
    ]),
  ])
  const onLan = { 4: 24, 6: 64 } as const
  hosts.node.ip([
    'link set lo up',
    'link set eth0 up',
    ...addresses('eth0', [node.ip, node.secondIp], onLan),
    ...podBridge(node.bridgeIp),
  ])
  hosts.peer.ip([
    'link set lo up',
    'link set eth0 up',
    ...addresses('eth0', [peer.ip], onLan),
    ...podBridge(peer.bridgeIp),
  ])
  hosts.external.ip([
    'link set lo up',
    'link set eth0 up',
    ...addresses('eth0', [external.ip, external.secondIp], onLan),
  ])
}

/** What no proxy takes comes here through the hole; the answer goes back by the node. */
function answerUnserved(lan: Netns): void {
  lan.ip(
    families.flatMap((family) => [
      `route add local ${ranges.unserved[family]} dev lo`,
      `route add ${ranges.localPods[family]} via ${node.ip[family]}`,
    ]),
  )
}

function podBridge(ip: DualStack): string[] {
  return [
    `link add ${node.bridge} type bridge`,
    `link set ${node.bridge} up`,
    ...addresses(node.bridge, [ip], { 4: 24, 6: 64 }),
  ]
}

function attachPod(pod: Pod, netns: Netns, host: Netns): void {
  const gateway = pod.nodeName === node.name ? node.bridgeIp : peer.bridgeIp
  host.ip([
    `link add veth-${pod.name} type veth peer name eth0 netns ${netns.path}`,
    `link set veth-${pod.name} master ${node.bridge} up`,
  ])
  // Host routes only: traffic between two pods of a node passes the node, not just its bridge.
  netns.ip([
    'link set lo up',
    'link set eth0 up',
    ...addresses('eth0', [pod.ip], prefixLength),
    ...families.flatMap((family) => [
      `route add ${gateway[family]}/${prefixLength[family]} dev eth0`,
      `route add default via ${gateway[family]} dev eth0`,
    ]),
  ])
}

function addRoutes(
  hosts: { node: Netns; peer: Netns; external: Netns },
  inPods: Readonly<Record<PodName, Netns>>,
): void {
  const eachFamily = (commands: (family: 4 | 6) => string[]) => families.flatMap(commands)
  hosts.node.ip(
    eachFamily((family) => [
      `route add ${ranges.remotePods[family]} via ${peer.ip[family]}`,
      `route add ${ranges.crowd[family]} via ${external.ip[family]}`,
      `route add ${ranges.manyPods[family]} via ${pods.localC.ip[family]}`,
      `route add default via ${hole.ip[family]}`,
    ]),
  )
  hosts.peer.ip(eachFamily((family) => [`route add default via ${node.ip[family]}`]))
  hosts.external.ip(
    eachFamily((family) => [
      `route add default via ${node.ip[family]}`,
      `route add local ${ranges.crowd[family]} dev lo`,
    ]),
  )
  inPods.localC.ip(eachFamily((family) => [`route add local ${ranges.manyPods[family]} dev lo`]))
}

function addresses(link: string, ips: readonly DualStack[], length: Readonly<Record<4 | 6, number>>): string[] {
  return ips.flatMap((ip, nth) => [
    `addr add ${ip[4]}/${length[4]} dev ${link}`,
    // Further addresses are not chosen as a source unless a client asks for them.
    `addr add ${ip[6]}/${length[6]} dev ${link} nodad${nth === 0 ? '' : ' preferred_lft 0'}`,
  ])
}
