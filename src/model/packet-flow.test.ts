// The packet-flow table, read against the model alone: each row's objects become views, and a packet follows them. What
// holds here is what every mode has to show in the kernel.

import { expect, test } from 'vitest'
import { effectiveSettings, sources } from '../../test/conformance/packet-flow.ts'
import type { Destination, Flow, Outcome, PacketFlowCase, Source } from '../../test/conformance/packet-flow.ts'
import { packetFlowCases } from '../../test/conformance/packet-flow.cases.ts'
import { hostAt, nodeAddresses, ranges } from '../../test/support/addresses.ts'
import { anEmptyCluster } from '../../test/support/builders.ts'
import type { ApiObject } from '../../test/support/builders.ts'
import { endpointSlices } from '../kube/objects/endpoint-slice.ts'
import { nodes } from '../kube/objects/node.ts'
import { services } from '../kube/objects/service.ts'
import type { JsonObject } from '../lib/json.ts'
import { JsonReader } from '../kube/encoding/json-reader.ts'
import { StringPool } from '../kube/encoding/string-pool.ts'
import { cidrContains, ipFamily, parseCidr, ipBytes } from '../lib/ip.ts'
import type { Cidr, Family } from '../lib/ip.ts'
import { isRefusedOnLocalhost, planLocalhostListener } from './localhost.ts'
import { LOCALHOST, openNodePortAddresses } from './node-port-addresses.ts'
import { answersPing } from './ping.ts'
import { planNodeView } from './node-view.ts'
import { ProblemLog } from './problems.ts'
import { ServiceModel } from './service-model.ts'
import type { Frontend, NodeView, Route, ServicePortView } from './types.ts'

const reader = new JsonReader(new StringPool())

// Rows of iptables alone are about its own defaults: loopback is not in the model.
const rows = packetFlowCases.filter(({ modes }) => modes?.join() !== 'iptables')

test.each(rows.map((row) => ({ name: row.name, row })))('model: $name', ({ row }) => {
  const cluster = aCluster(row)
  for (const object of [...anEmptyCluster(), ...row.objects]) cluster.put(object)
  cluster.expectFlows(row.flows)
  for (const step of row.steps) {
    for (const object of step.remove ?? []) cluster.remove(object)
    for (const object of step.put ?? []) cluster.put(object)
    cluster.expectFlows(step.flows)
  }
})

function aCluster(row: PacketFlowCase) {
  const node = nodes.fromJson(anEmptyCluster()[0] as unknown as JsonObject, reader).object
  const facts = { node, machineAddresses: nodeAddresses, serviceCidrs: [] }
  const settings = effectiveSettings(row.settings)
  const view = (family: Family) =>
    planNodeView(
      {
        nodeName: node.name,
        bindAddress: '0.0.0.0',
        detectLocal: {
          mode: settings.detectLocalMode ?? 'ClusterCIDR',
          clusterCIDRs: settings.clusterCIDR.split(','),
          bridgeInterface: settings.podBridgeInterface ?? '',
          interfaceNamePrefix: settings.podInterfaceNamePrefix ?? '',
        },
        nodePortAddresses: settings.nodePortAddresses ?? ['primary'],
        ...(settings.localhostNodePorts === true && { localhostNodePorts: true }),
        ...(settings.answerPing === true && { answerPing: true }),
        masqueradeAll: settings.masqueradeAll ?? false,
        masqueradeBit: 14,
      },
      facts,
      family,
    )
  const views = { 4: view(4), 6: view(6) }
  const problems = new ProblemLog(() => {})
  const aModel = (family: Family) =>
    new ServiceModel({ node: views[family], problems, allowExternalIPs: true, startedMs: 0 })
  const models = { 4: aModel(4), 6: aModel(6) }
  const both = Object.values(models)
  const isWatched = ({ kind, metadata }: ApiObject) =>
    kind !== 'EndpointSlice' || metadata.labels?.['service.kubernetes.io/headless'] === undefined

  return {
    put(object: ApiObject): void {
      if (!isWatched(object)) return
      const json = object as unknown as JsonObject
      if (object.kind === 'Service') for (const model of both) model.setService(services.fromJson(json, reader).object)
      if (object.kind === 'EndpointSlice') {
        for (const model of both) model.setSlice(endpointSlices.fromJson(json, reader).object)
      }
    },
    remove({ kind, metadata }: ApiObject): void {
      const key = `${metadata.namespace}/${metadata.name}`
      if (kind === 'Service') for (const model of both) model.deleteService(key)
      if (kind === 'EndpointSlice') for (const model of both) model.deleteSlice(key)
    },
    expectFlows(flows: readonly Flow[]): void {
      for (const model of both) model.takeChanges()
      for (const { from, to, outcome } of flows) {
        const family = ipFamily(to.address) as Family
        const found = follow({ model: models[family], node: views[family], from, to })
        const about = `${from} -> ${to.address}:${to.port}/${to.protocol}`
        // What is no frontend is refused or dropped by some modes as a mode's own idea: those rows name the modes.
        if (found === 'no frontend' && row.modes !== undefined)
          expect(isOurs(to), about).toBe(outcome.kind !== 'untouched')
        else expect(found, about).toEqual(shown(outcome))
      }
    },
  }
}

/** What the model can show of an outcome. It does not know which client came to which backend before. */
function shown(outcome: Outcome): unknown {
  if (outcome.kind === 'untouched') return 'no frontend'
  if (outcome.kind !== 'to') return outcome.kind
  const backends = outcome.backends.map(({ host, port }) => `${host}:${port}`).sort()
  const { seenAs, sticky } = outcome
  return { backends: sticky ? expect.arrayContaining(backends) : backends, seenAs, sticky }
}

function isOurs({ address }: Destination): boolean {
  const bytes = ipBytes(address)
  return Object.values(ranges.services).some((range) => cidrContains(parseCidr(range) as Cidr, bytes))
}

interface Packet {
  readonly model: ServiceModel
  readonly node: NodeView
  readonly from: Source
  readonly to: Destination
}

function follow({ model, node, from, to }: Packet): unknown {
  const views = [...model.views()]
  const { protocol } = to
  if (protocol === 'ICMP') return followPing(views, node, { from, to })
  const onLocalhost = to.address === LOCALHOST[node.family] && views.filter((view) => hasNodePort(view, to))
  if (onLocalhost && onLocalhost.length > 0 && isRefusedOnLocalhost(node, protocol)) return 'reject'
  const listening = onLocalhost ? onLocalhost.filter((view) => planLocalhostListener(node, view) !== undefined) : []
  const frontends = [
    ...views.flatMap((view) => view.frontends).filter((one) => isFor(one, to, node)),
    ...listening.flatMap((view) => view.frontends.filter(({ kind }) => kind === 'nodePort')),
  ]
  // An address goes before a node port.
  const frontend = frontends.find(({ address }) => address !== undefined) ?? frontends[0]
  if (frontend === undefined) return 'no frontend'
  const source = sources[from].ip[node.family]
  const bytes = ipBytes(source)
  if (frontend.allowedSources?.some((cidr) => cidrContains(cidr, bytes)) === false) return 'drop'
  const { verdict, masquerade } = routeFor(frontend, from, node)
  if (verdict.kind !== 'to') return verdict.kind === 'leave' ? 'no frontend' : verdict.kind
  const backends = verdict.backends.map(({ ip, port }) => ({ ip, text: `${hostAt(ip)}:${port}` }))
  // Hairpin is not the model's; and what ends on the node itself passes no postrouting hook.
  const isHairpin = backends.every(({ ip }) => ip === source)
  const isOnNode = backends.every(({ ip }) => nodeAddresses.includes(ip))
  const seenAs = from === 'node' || isHairpin || (masquerade && !isOnNode) ? 'node' : 'client'
  const sticky = frontend.affinitySeconds !== undefined || verdict.backends.balance === 'hash-client'
  return { backends: [...new Set(backends.map(({ text }) => text))].sort(), seenAs, sticky }
}

function followPing(
  views: readonly ServicePortView[],
  node: NodeView,
  { from, to }: Pick<Packet, 'from' | 'to'>,
): unknown {
  const asked = views.flatMap(({ frontends }) => frontends).filter(({ address }) => address === to.address)
  const isAnswered = asked.some((frontend) => answersPing(node, frontend))
  return isAnswered
    ? { backends: ['node:0'], seenAs: from === 'node' ? 'node' : 'client', sticky: false }
    : 'no frontend'
}

function hasNodePort({ frontends }: ServicePortView, { port, protocol }: Destination): boolean {
  return frontends.some((each) => each.kind === 'nodePort' && each.port === port && each.protocol === protocol)
}

function isFor({ address, port, protocol }: Frontend, to: Destination, node: NodeView): boolean {
  if (port !== to.port || protocol !== to.protocol) return false
  if (address !== undefined) return address === to.address
  return openNodePortAddresses(node.nodePortAddresses, nodeAddresses).has(to.address)
}

function routeFor(frontend: Frontend, from: Source, { localDetector, family }: NodeView): Route {
  const { ip, iif } = sources[from]
  const isPod = {
    none: () => false,
    cidr: () =>
      localDetector.kind === 'cidr' && localDetector.cidrs.some((cidr) => cidrContains(cidr, ipBytes(ip[family]))),
    interface: () => localDetector.kind === 'interface' && iif === localDetector.name,
    interfacePrefix: () => localDetector.kind === 'interfacePrefix' && iif?.startsWith(localDetector.prefix) === true,
  }[localDetector.kind]()
  if (isPod) return frontend.fromPods
  return from === 'node' ? frontend.fromNode : frontend.fromOthers
}
