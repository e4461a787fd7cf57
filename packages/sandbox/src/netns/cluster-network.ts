// The network of a sandbox, made of namespaces and cables:
//
//   this machine --- fabric (a switch, and the control plane) --- node-1 --- bridge cni0 --- pods
//                                                            \--- node-2 --- bridge cni0 --- pods
//
// The machine gets one link, and routes through it to the nodes' pods, to services and to load balancers. When this process
// ends, however it ends, the namespaces end with it, and the machine's link with them.

import { asBytes, familyOf, ipBytes, parseCidr, type Bytes, type Cidr } from '../../../../src/lib/ip.ts'
import { KernelError, UnsupportedError } from '../../../../src/lib/errors.ts'
import { Rtnetlink } from '../../../../src/links/rtnetlink.ts'
import type { AddressPlan, NodeAddresses } from '../address-plan.ts'
import { openNetworkNamespace, ownNetworkNamespace, type NetworkNamespace } from './network-namespace.ts'
import { hostSysctls, routerSysctls } from './sysctls.ts'

const ANYWHERE: readonly Cidr[] = [parseCidr('0.0.0.0/0')!, parseCidr('::/0')!]
const BRIDGE = 'cni0'

export class Host implements Disposable {
  readonly netns: NetworkNamespace
  readonly links: Rtnetlink

  constructor(netns: NetworkNamespace) {
    this.netns = netns
    this.links = netns.enter(() => new Rtnetlink())
  }

  /** Closes the namespace: it ends when no other process holds it. */
  [Symbol.dispose](): void {
    this.links.close()
    this.netns.close()
  }
}

export interface NodeNetwork extends Host {
  readonly plan: NodeAddresses
  readonly eth0: number
  readonly bridge: number
}

export class ClusterNetwork implements Disposable {
  readonly plan: AddressPlan
  readonly machine: Host
  readonly machineLink: string
  readonly fabric: Host
  readonly #fabricBridge: number
  readonly #machineIndex: number
  #nodes: readonly NodeNetwork[] = []

  constructor(plan: AddressPlan) {
    this.plan = plan
    this.machineLink = machineLinkOf(plan.index)
    this.machine = new Host(ownNetworkNamespace('machine'))
    // A packet for an address that is not in the sandbox ends here with an ICMP error: nothing leaves the sandbox.
    this.fabric = openHost('fabric', 'router')
    this.#fabricBridge = addBridge(this.fabric, 'fabric', plan.controlPlane)
    addAddresses(this.fabric, this.#fabricBridge, plan.controlPlane, plan.fabricRanges)
    for (const range of ANYWHERE) this.fabric.links.setRoute(range, 'unreachable')
    this.#machineIndex = this.#connectMachine()
  }

  get nodes(): readonly NodeNetwork[] {
    return this.#nodes
  }

  #connectMachine(): number {
    const { machine, fabric, machineLink, plan } = this
    // A leftover of a sandbox of the same number, whose namespaces are still on their way out.
    machine.links.deleteLink(machineLink)
    fabric.links.addLink({
      name: 'machine',
      master: this.#fabricBridge,
      kind: { type: 'veth', peer: machineLink, netns: machine.netns.fd },
    })
    machine.netns.setSysctls({
      // The machine may have switched IPv6 off for links that come; this one is ours.
      [`ipv6/conf/${machineLink}/disable_ipv6`]: 0,
      // An address that becomes usable seconds later is a change of the network to a browser: it drops what it is loading.
      [`ipv6/conf/${machineLink}/accept_dad`]: 0,
    })
    const index = machine.links.setUp(machineLink)
    addAddresses(machine, index, plan.machine, plan.fabricRanges)
    return index
  }

  addNodes(plans: readonly NodeAddresses[]): void {
    this.#nodes = plans.map((plan) => this.#openNode(plan))
    for (const node of this.#nodes) {
      for (const other of this.#nodes) if (other !== node) routeToPods(node, node.eth0, other.plan)
      routeToPods(this.machine, this.#machineIndex, node.plan)
      routeToPods(this.fabric, this.#fabricBridge, node.plan)
    }
    const [first] = this.#nodes
    if (first === undefined) return
    for (const ranges of [this.plan.serviceRanges, this.plan.loadBalancerRanges]) {
      for (const [i, range] of ranges.entries()) {
        this.machine.links.setRoute(cidrOf(range), this.#machineIndex, ipBytes(first.plan.addresses[i]!))
      }
    }
  }

  setLoadBalancer(address: string, nodes: readonly NodeNetwork[]): void {
    const to = hostRange(ipBytes(address))
    const family = this.plan.families.indexOf(to.family)
    const via = nodes.map(({ plan }) => ipBytes(plan.addresses[family]!))
    try {
      this.machine.links.setRoute(to, this.#machineIndex, ...via)
    } catch (error) {
      // A kernel without multipath routes, as that of the tests with IPVS: one of the nodes has to do.
      if (!(error instanceof KernelError) || error.errno !== 'EINVAL' || via.length < 2) throw error
      this.machine.links.setRoute(to, this.#machineIndex, ...via.slice(0, 1))
    }
  }

  #openNode(plan: NodeAddresses): NodeNetwork {
    const node = openHost(plan.name, 'router')
    this.fabric.links.addLink({
      name: plan.name,
      master: this.#fabricBridge,
      kind: { type: 'veth', peer: 'eth0', netns: node.netns.fd },
    })
    const eth0 = node.links.setUp('eth0')
    addAddresses(node, eth0, plan.addresses, this.plan.fabricRanges)
    const bridge = addBridge(node, BRIDGE, plan.gateways)
    addAddresses(node, bridge, plan.gateways, plan.podRanges)
    for (const gateway of this.plan.controlPlane) setDefaultRoute(node, eth0, ipBytes(gateway))
    return Object.assign(node, { plan, eth0, bridge })
  }

  [Symbol.dispose](): void {
    this.machine.links.deleteLink(this.machineLink)
    for (const node of this.#nodes) node[Symbol.dispose]()
    this.fabric[Symbol.dispose]()
    this.machine[Symbol.dispose]()
  }
}

/** Makes a namespace with these addresses and plugs it into the node's bridge. */
export function openPodNetwork(node: NodeNetwork, name: string, addresses: readonly string[]): NetworkNamespace {
  const pod = openHost(name, 'host')
  try {
    // Linux names of links have at most 15 characters, so the name has the address in it.
    const link = `veth${addresses[0]!.replace(/^.*[.:]/, '-')}`
    node.links.deleteLink(link)
    const kind = { type: 'veth', peer: 'eth0', netns: pod.netns.fd } as const
    node.links.addLink({ name: link, master: node.bridge, kind })
    const eth0 = pod.links.setUp('eth0')
    for (const address of addresses) {
      const bytes = ipBytes(address)
      pod.links.addAddress(eth0, bytes, bytes.length * 8)
    }
    // Host routes only: traffic between two pods of a node passes the node, not just its bridge, and so its rules.
    for (const gateway of node.plan.gateways.map(ipBytes)) {
      pod.links.setRoute(hostRange(gateway), eth0)
      setDefaultRoute(pod, eth0, gateway)
    }
    return pod.netns
  } catch (error) {
    pod.netns.close()
    throw error
  } finally {
    pod.links.close()
  }
}

export function machineLinkOf(index: number): string {
  return `kp-sandbox${index}`
}

function openHost(name: string, role: 'host' | 'router'): Host {
  const netns = openNetworkNamespace(name)
  netns.setSysctls(role === 'router' ? routerSysctls : hostSysctls)
  if (role === 'router' && netns.readSysctl('ipv4/ip_forward') !== '1') {
    netns.close()
    const requires = 'a writable /proc/sys (in a container: --privileged)'
    throw new UnsupportedError('nodes that forward packets', requires)
  }
  const host = new Host(netns)
  host.links.setUp('lo')
  return host
}

function routeToPods(from: Host, link: number, { podRanges, addresses }: NodeAddresses): void {
  for (const [i, range] of podRanges.entries()) from.links.setRoute(cidrOf(range), link, ipBytes(addresses[i]!))
}

/** A bridge whose hardware address is made from its first IP address, and so stays what it is. */
function addBridge(host: Host, name: string, addresses: readonly string[]): number {
  const hardwareAddress = `\x02\0${ipBytes(addresses[0]!).slice(-4)}`
  return host.links.addLink({ name, kind: { type: 'bridge', hardwareAddress: asBytes(hardwareAddress) } })
}

function addAddresses(host: Host, link: number, addresses: readonly string[], ranges: readonly string[]): void {
  for (const [i, address] of addresses.entries()) {
    host.links.addAddress(link, ipBytes(address), cidrOf(ranges[i]!).prefix)
  }
}

function setDefaultRoute(host: Host, link: number, via: Bytes): void {
  host.links.setRoute(ANYWHERE[via.length === 4 ? 0 : 1]!, link, via)
}

function hostRange(address: Bytes): Cidr {
  return { family: familyOf(address), network: address, prefix: address.length * 8 }
}

function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text)
  if (cidr === undefined) throw new TypeError(`Cannot use ${JSON.stringify(text)}: not a range of addresses`)
  return cidr
}
