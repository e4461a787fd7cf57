// The packet-flow table against what a mode plans: no kernel, every random choice tried.

import { runs } from './runs.ts'
import { expect, test } from 'vitest'
import { endpointSlices } from '../../src/kube/objects/endpoint-slice.ts'
import { nodes } from '../../src/kube/objects/node.ts'
import { services } from '../../src/kube/objects/service.ts'
import type { EndpointSlice, Service } from '../../src/kube/types.ts'
import type { Resource } from '../../src/kube/resource.ts'
import type { JsonObject } from '../../src/lib/json.ts'
import { JsonReader } from '../../src/kube/encoding/json-reader.ts'
import { StringPool } from '../../src/kube/encoding/string-pool.ts'
import type { ManualClock } from './manual-clock.ts'
import { type Bytes, type Family, formatIp } from '../../src/lib/ip.ts'
import { planNodeView } from '../../src/model/node-view.ts'
import { ProblemLog } from '../../src/model/problems.ts'
import { ServiceModel } from '../../src/model/service-model.ts'
import type { NodeView, ServicePortChange } from '../../src/model/types.ts'
import { isPromisedBy, type ModeName } from '../conformance/modes.ts'
import { packetFlowCases } from '../conformance/packet-flow.cases.ts'
import {
  effectiveSettings,
  type Flow,
  type Outcome,
  type PacketFlowCase,
  type ProxySettings,
  sources,
} from '../conformance/packet-flow.ts'
import { crowdIp, hostAt, nodeAddresses, ranges } from './addresses.ts'
import { anEmptyCluster, type ApiObject } from './builders.ts'

/** What became of a packet, in any mode. */
export interface PlannedWay {
  readonly verdict: 'accept' | 'drop' | 'reject'
  readonly destination: Bytes
  readonly destinationPort: number
  readonly translated: boolean
  readonly masqueraded: boolean
  /** The rules that it met, for a person. */
  readonly met: readonly string[]
}

/** One family of a node whose kernel is made of data. */
export interface PlannedNode {
  readonly clock: ManualClock
  /** Programs what changed. */
  sync(changes: readonly ServicePortChange[]): void | Promise<void>
  /** The packet's way, with `choice` for every random number. */
  walk(flow: Flow, client: string, choice: number): PlannedWay
}

export interface PlannedMode {
  readonly name: ModeName
  readonly defaultNodePortAddresses: readonly string[]
  /** A node that has been programmed without services. */
  open(node: NodeView): PlannedNode | Promise<PlannedNode>
}

/** One test per row of the table that the mode promises. */
export function testPlannedFlows(mode: PlannedMode, rows: readonly PacketFlowCase[] = packetFlowCases): void {
  test.for(rows)('$name', async (row, { skip }) => {
    if (!isPromisedBy(mode.name, row)) skip(`${mode.name} does not promise it`)
    const planned = { 4: await FamilyOfNode.open(mode, 4, row), 6: await FamilyOfNode.open(mode, 6, row) }
    const both = [planned[4], planned[6]]
    const expectFlows = (flows: readonly Flow[], when: string) => {
      for (const flow of flows) {
        const about = `${when}: ${flow.from} to ${flow.to.address} port ${flow.to.port}/${flow.to.protocol}`
        expect(complaintAbout(planned[familyOf(flow)].node, flow), about).toBeUndefined()
      }
    }
    for (const family of both) await family.change(row.objects, [])
    expectFlows(row.flows, 'at first')
    for (const step of row.steps) {
      for (const family of both) await family.change(step.put ?? [], step.remove ?? [])
      for (const { node } of both) await node.clock.advance((step.idleSeconds ?? 0) * 1000)
      expectFlows(step.flows, step.when)
    }
  })
}

const reader = new JsonReader(new StringPool())

function decode<T>(resource: Resource<T>, object: ApiObject): T {
  return resource.fromJson(object as unknown as JsonObject, reader).object
}

class FamilyOfNode {
  readonly node: PlannedNode
  readonly #model: ServiceModel

  private constructor(node: PlannedNode, model: ServiceModel) {
    this.node = node
    this.#model = model
  }

  static async open(mode: PlannedMode, family: Family, row: PacketFlowCase): Promise<FamilyOfNode> {
    const node = nodeViewOf(family, row.settings, mode.defaultNodePortAddresses)
    const problems = new ProblemLog(() => {})
    const model = new ServiceModel({ node, problems, allowExternalIPs: true, startedMs: 0 })
    return new FamilyOfNode(await mode.open(node), model)
  }

  async change(put: readonly ApiObject[], remove: readonly ApiObject[]): Promise<void> {
    for (const object of remove) {
      const key = `${object.metadata.namespace}/${object.metadata.name}`
      if (object.kind === 'Service') this.#model.deleteService(key)
      if (object.kind === 'EndpointSlice') this.#model.deleteSlice(key)
    }
    for (const object of put.filter(isServed)) {
      if (object.kind === 'Service') this.#model.setService(decode(services, object))
      if (object.kind === 'EndpointSlice') this.#model.setSlice(decode(endpointSlices, object))
    }
    await this.node.sync(this.#model.takeChanges())
  }
}

/** Services and slices as the proxy gets them. */
export function decodeObjects(objects: readonly ApiObject[]): { services: Service[]; slices: EndpointSlice[] } {
  const served = objects.filter(isServed)
  return {
    services: served.filter(({ kind }) => kind === 'Service').map((object) => decode(services, object)),
    slices: served.filter(({ kind }) => kind === 'EndpointSlice').map((object) => decode(endpointSlices, object)),
  }
}

/** The API server applies the watches' selectors. */
function isServed({ kind, metadata }: ApiObject): boolean {
  return kind !== 'EndpointSlice' || metadata.labels?.['service.kubernetes.io/headless'] === undefined
}

/** The node under test as the settings of a row make it. */
export function nodeViewOf(
  family: Family,
  rowSettings: ProxySettings,
  defaultNodePortAddresses: readonly string[],
): NodeView {
  const settings = effectiveSettings(rowSettings)
  const node = anEmptyCluster().find((object) => object.kind === 'Node' && object.metadata.name === 'node-a')
  return planNodeView(
    {
      nodeName: 'node-a',
      bindAddress: '0.0.0.0',
      detectLocal: {
        mode: settings.detectLocalMode ?? 'ClusterCIDR',
        clusterCIDRs: settings.clusterCIDR.split(',').filter((cidr) => cidr !== ''),
        bridgeInterface: settings.podBridgeInterface ?? '',
        interfaceNamePrefix: settings.podInterfaceNamePrefix ?? '',
      },
      nodePortAddresses: settings.nodePortAddresses ?? defaultNodePortAddresses,
      ...(settings.localhostNodePorts === true && { localhostNodePorts: true }),
      ...(settings.answerPing === true && { answerPing: true }),
      masqueradeAll: settings.masqueradeAll ?? false,
      masqueradeBit: 14,
    },
    {
      node: decode(nodes, node!),
      machineAddresses: [...nodeAddresses, '127.0.0.1', '::1'],
      serviceCidrs: [ranges.services[4], ranges.services[6]],
    },
    family,
  )
}

/** More choices than any service of the table has endpoints; in `npm run ok` twice as many as this one has, and some. */
function choicesFor(outcome: Outcome): number {
  const backends = outcome.kind === 'to' ? outcome.backends.length : 0
  return Math.max(runs(60).numRuns, 2 * backends, 8)
}

function complaintAbout(node: PlannedNode, flow: Flow): string | undefined {
  const family = familyOf(flow)
  const { outcome } = flow
  const own = sources[flow.from].ip[family]
  const clients = flow.clients === undefined ? [own] : range(flow.clients).map((n) => crowdIp(family, n + 1))
  const choices = choicesFor(outcome)
  const missing = new Set(outcome.kind === 'to' ? outcome.backends.map(({ host, port }) => `${host}:${port}`) : [])
  for (const [nth, client] of clients.entries()) {
    const seen = new Set<string>()
    for (const choice of range(choices)) {
      const way = node.walk(flow, client, choice + nth)
      const complaint = judge(flow, way, client)
      if (complaint !== undefined) return `${complaint}\n${way.met.map((line) => `  ${line}`).join('\n')}`
      missing.delete(reached(way))
      seen.add(reached(way))
    }
    if (outcome.kind === 'to' && outcome.sticky && seen.size > 1) return `not sticky: ${[...seen].join(' and ')}`
  }
  const all = outcome.kind === 'to' && (!outcome.sticky || flow.clients !== undefined)
  return all && missing.size > 0 ? `never came to ${[...missing].join(', ')}` : undefined
}

function judge({ from, outcome }: Flow, way: PlannedWay, client: string): string | undefined {
  const got = way.verdict === 'accept' ? `${way.translated ? 'to' : 'left alone at'} ${reached(way)}` : way.verdict
  const expected = JSON.stringify(outcome)
  const fits = isOutcome(outcome, way, { from, client })
  return fits ? undefined : `expected ${expected}, got ${got}, masqueraded: ${way.masqueraded}`
}

function isOutcome(outcome: Outcome, way: PlannedWay, { from, client }: { from: string; client: string }): boolean {
  if (outcome.kind === 'untouched') return way.verdict === 'accept' && !way.translated
  if (outcome.kind !== 'to') return way.verdict === outcome.kind
  if (way.verdict !== 'accept' || !way.translated) return false
  // What the node itself sends is seen as one of the node's addresses in any case.
  const asNode = way.masqueraded || (from === 'node' && nodeAddresses.includes(client))
  const seenRight = outcome.seenAs === 'node' ? asNode : !way.masqueraded
  return seenRight && outcome.backends.some(({ host, port }) => `${host}:${port}` === reached(way))
}

function reached(way: PlannedWay): string {
  const address = formatIp(way.destination)
  return `${hostAt(address) ?? address}:${way.destinationPort}`
}

function familyOf(flow: Flow): Family {
  return flow.to.address.includes(':') ? 6 : 4
}

function range(length: number): number[] {
  return Array.from({ length }, (_, i) => i)
}
