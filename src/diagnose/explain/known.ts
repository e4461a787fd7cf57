// What is known of a cluster and of one of its nodes, from any source. An explanation uses nothing else.

import type { EndpointSlice, NamespacedName, Service } from '../../kube/types.ts'
import type { Family } from '../../lib/ip.ts'
import type { Balance } from '../../model/balance.ts'
import type { RetryScope } from '../../model/connect-retry.ts'
import { FrontendIndex, type OpenLoopback } from '../../model/follow.ts'
import { LOCALHOST } from '../../model/node-port-addresses.ts'
import { ProblemLog } from '../../model/problems.ts'
import { annotationsOf, ServiceModel } from '../../model/service-model.ts'
import type { Rungs } from '../../model/shares.ts'
import type { NodeView, ServicePortName } from '../../model/types.ts'
import type { ModeSemantics } from '../../modes/contract.ts'

export interface Known {
  /** For people: `the proxy of this node`, `manifests in ./web`. */
  readonly source: string
  /** False: only a dump of rules is there, and nothing is decided. */
  readonly hasObjects: boolean
  readonly mode: { readonly name: string; readonly semantics: ModeSemantics; readonly balances: readonly Balance[] }
  readonly nodes: Readonly<Partial<Record<Family, NodeView>>>
  /** Of the node, both families, without those of services. */
  readonly machineAddresses: readonly string[]
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
  readonly allowExternalIPs: boolean
  /** iptables.localhostNodePorts */
  readonly localhostNodePorts: boolean
  /** connectRetry of the configuration: only service ports that use it leave out ejected backends. */
  readonly connectRetry: RetryScope
  /** `ip:port` of backends that get no new connections for a while, and why. */
  readonly ejected: ReadonlyMap<string, string>
  /** With least connections: of backends that get less than others now, by service port. */
  readonly rungs?: ReadonlyMap<ServicePortName, Rungs> | undefined
  /** The cgroup whose processes choose an endpoint when they connect; absent: none do. */
  readonly socketBalancing?: string | undefined
  /** Addresses of other nodes, by name. */
  readonly otherNodes: readonly { readonly name: string; readonly addresses: readonly string[] }[]
  readonly pods: readonly KnownPod[]
}

export interface KnownPod {
  readonly namespace: string
  readonly name: string
  readonly ips: readonly string[]
  readonly nodeName: string
}

/** One IP family of it, decided. */
export interface Decided {
  readonly node: NodeView
  readonly model: ServiceModel
  readonly index: FrontendIndex
  /** What services and slices ask for and do not get, by object. */
  readonly problems: ReadonlyMap<string, readonly string[]>
  readonly services: ReadonlyMap<NamespacedName, Service>
  readonly isOwnAddress: (address: string) => boolean
}

/** Undefined when the node does not have the family. */
export function decideAll(known: Known, family: Family): Decided | undefined {
  const node = known.nodes[family]
  if (node === undefined) return undefined
  const log = new ProblemLog(() => {})
  const { allowExternalIPs, connectRetry } = known
  const { balances, semantics } = known.mode
  const canLimit = () => semantics.canLimit
  const model = new ServiceModel({
    node,
    problems: log,
    allowExternalIPs,
    balances,
    canLimit,
    connectRetry,
    startedMs: 0,
  })
  model.setEjections(new Set(known.ejected.keys()), [])
  for (const [name, rungs] of known.rungs ?? []) model.setRungs(name, rungs)
  for (const service of known.services) model.setService(service)
  for (const slice of known.slices) model.setSlice(slice)
  model.takeChanges()
  const problems = new Map<string, string[]>()
  for (const { object, message } of log.problems()) {
    const list = problems.get(object)
    if (list === undefined) problems.set(object, [message])
    else list.push(message)
  }
  const own = new Set(known.machineAddresses)
  return {
    node,
    model,
    index: new FrontendIndex(model.views(), node, known.machineAddresses, openLoopback(known, node)),
    problems,
    services: new Map(known.services.map((service) => [`${service.namespace}/${service.name}`, service])),
    isOwnAddress: (address) => own.has(address) || isLoopbackText(address),
  }
}

/** Whether problems of this object are the service's, or those of one of its ports. */
export function isOfService(object: string, key: NamespacedName): boolean {
  const port = `Service port ${key}`
  const service = `Service ${key}`
  return object === service || object === annotationsOf(service) || object === port || object.startsWith(`${port}:`)
}

/** By rules, as the iptables mode opens them: never for IPv6, nor where nodePortAddresses leaves them out. */
function openLoopback({ mode, localhostNodePorts }: Known, node: NodeView): OpenLoopback {
  const { family, nodePortAddresses } = node
  if (node.localhostNodePorts === 'served by listeners') return new Set([LOCALHOST[family]])
  if (mode.semantics.localhostNodePorts !== 'by rules' || !localhostNodePorts || family === 6) return 'none'
  if (nodePortAddresses.kind === 'all') return 'all'
  return nodePortAddresses.loopback === undefined ? 'none' : new Set(nodePortAddresses.loopback)
}

function isLoopbackText(address: string): boolean {
  return address === '::1' || address.startsWith('127.')
}
