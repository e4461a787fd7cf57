// The packet-flow table against the plan of the nftables mode: no kernel, every random choice tried.

import { describe, expect, test } from 'vitest'
import { endpointSlices } from '../../src/kube/objects/endpoint-slice.ts'
import { nodes } from '../../src/kube/objects/node.ts'
import { services } from '../../src/kube/objects/service.ts'
import type { Resource } from '../../src/kube/resource.ts'
import { JsonReader, type JsonObject } from '../../src/kube/wire/json-reader.ts'
import { StringPool } from '../../src/kube/wire/string-pool.ts'
import { ManualClock } from '../../src/lib/clock.ts'
import { type Family, formatIp, isLoopback, parseIp } from '../../src/lib/ip.ts'
import { planNodeView } from '../../src/model/node-view.ts'
import { ProblemLog } from '../../src/model/problems.ts'
import { ServiceModel } from '../../src/model/service-model.ts'
import type { NodeView } from '../../src/model/types.ts'
import { nftablesMode } from '../../src/modes/nftables/mode.ts'
import { NftablesProgrammer, type TableDriver } from '../../src/proxy/nftables-programmer.ts'
import { applyOps } from '../../src/state/nftables/apply-ops.ts'
import { PROTOCOL_NUMBERS } from '../../src/state/nftables/fields.ts'
import { nftFamily } from '../../src/state/nftables/language.ts'
import { type LearnedElement, type Walk, walkTable } from '../../src/state/nftables/walk.ts'
import type { NftSet, Op, Table } from '../../src/state/nftables/types.ts'
import { crowdIp, hostAt, nodeAddresses, ranges } from '../support/addresses.ts'
import { anEmptyCluster, type ApiObject } from '../support/builders.ts'
import { packetFlowCases } from './packet-flow.cases.ts'
import { effectiveSettings, type Flow, type Outcome, type PacketFlowCase, sources } from './packet-flow.ts'

const reader = new JsonReader(new StringPool())

function decode<T>(resource: Resource<T>, object: ApiObject): T {
  return resource.fromJson(object as unknown as JsonObject, reader).object
}

/** One family of a node: the model, the programmer, and a kernel made of data. */
class PlannedNode implements TableDriver {
  readonly learned = new Map<string, Map<string, LearnedElement>>()
  readonly clock = new ManualClock()
  readonly #family: Family
  readonly #node: NodeView
  readonly #model: ServiceModel
  readonly #programmer: NftablesProgrammer
  #table: Table | undefined

  constructor(family: Family, row: PacketFlowCase) {
    this.#family = family
    this.#node = nodeViewOf(family, row)
    const problems = new ProblemLog(() => {})
    this.#model = new ServiceModel({ node: this.#node, problems, allowExternalIPs: true, startedMs: 0 })
    this.#programmer = new NftablesProgrammer({ planner: nftablesMode, driver: this, clock: this.clock })
    this.#programmer.syncAll(this.#node, [])
  }

  change(put: readonly ApiObject[], remove: readonly ApiObject[]): void {
    for (const object of remove) {
      const key = `${object.metadata.namespace}/${object.metadata.name}`
      if (object.kind === 'Service') this.#model.deleteService(key)
      if (object.kind === 'EndpointSlice') this.#model.deleteSlice(key)
    }
    for (const object of put.filter(isServed)) {
      if (object.kind === 'Service') this.#model.setService(decode(services, object))
      if (object.kind === 'EndpointSlice') this.#model.setSlice(decode(endpointSlices, object))
    }
    this.#programmer.sync(this.#node, this.#model.takeChanges())
  }

  /** The packet's way, with `choice` for every random number. */
  walk(flow: Flow, client: string, choice: number): Walk {
    const source = sources[flow.from]
    return walkTable(
      this.#table!,
      {
        inputInterface: source.iif,
        source: parseIp(client)!,
        destination: parseIp(flow.to.address)!,
        protocol: PROTOCOL_NUMBERS[flow.to.protocol],
        sourcePort: 40000,
        destinationPort: flow.to.port,
      },
      {
        isLocalAddress: (address) => isLoopback(address) || nodeAddresses.includes(formatIp(address)),
        random: (modulus) => choice % modulus,
        now: () => this.clock.monotonicNow(),
        learned: this.learned,
      },
    )
  }

  apply(ops: readonly Op[]): { bytes: number } {
    for (const op of ops) {
      if (op.op === 'deleteSet') this.learned.delete(op.name)
      if (op.op !== 'deleteElements' || !op.set.dynamic) continue
      for (const { key } of op.elements) this.learned.get(op.set.name)?.delete(key)
    }
    const planned = ops.filter((op) => op.op !== 'deleteElements' || !op.set.dynamic)
    this.#table = applyOps(nftFamily(this.#family), nftablesMode.table, this.#table, planned)
    return { bytes: 0 }
  }

  read(): Table | undefined {
    return this.#table
  }

  readElements(set: NftSet): { key: string; data: string }[] {
    return Array.from(this.learned.get(set.name) ?? [], ([key, { data }]) => ({ key, data }))
  }

  close(): void {}
}

/** The API server applies the watches' selectors. */
function isServed({ kind, metadata }: ApiObject): boolean {
  return kind !== 'EndpointSlice' || metadata.labels?.['service.kubernetes.io/headless'] === undefined
}

function nodeViewOf(family: Family, row: PacketFlowCase): NodeView {
  const settings = effectiveSettings(row.settings)
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
      nodePortAddresses: settings.nodePortAddresses ?? ['primary'],
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

/** More choices than any service of the table has endpoints. */
const CHOICES = 60

function complaintAbout(node: PlannedNode, flow: Flow): string | undefined {
  const family = flow.to.address.includes(':') ? 6 : 4
  const { outcome } = flow
  const own = sources[flow.from].ip[family]
  const clients = flow.clients === undefined ? [own] : range(flow.clients).map((n) => crowdIp(family, n + 1))
  const missing = new Set(outcome.kind === 'to' ? outcome.backends.map(({ host, port }) => `${host}:${port}`) : [])
  for (const [nth, client] of clients.entries()) {
    const seen = new Set<string>()
    for (const choice of range(CHOICES)) {
      const walk = node.walk(flow, client, choice + nth)
      const complaint = judge(flow, walk, client)
      if (complaint !== undefined) return `${complaint}\n${way(walk)}`
      missing.delete(reached(walk))
      seen.add(reached(walk))
    }
    if (outcome.kind === 'to' && outcome.sticky && seen.size > 1) return `not sticky: ${[...seen].join(' and ')}`
  }
  const all = outcome.kind === 'to' && (!outcome.sticky || flow.clients !== undefined)
  return all && missing.size > 0 ? `never came to ${[...missing].join(', ')}` : undefined
}

function judge({ from, outcome }: Flow, walk: Walk, client: string): string | undefined {
  const got = walk.verdict === 'accept' ? `${walk.translated ? 'to' : 'left alone at'} ${reached(walk)}` : walk.verdict
  const expected = JSON.stringify(outcome)
  const fits = isOutcome(outcome, walk, { from, client })
  return fits ? undefined : `expected ${expected}, got ${got}, masqueraded: ${walk.masqueraded}`
}

function isOutcome(outcome: Outcome, walk: Walk, { from, client }: { from: string; client: string }): boolean {
  if (outcome.kind === 'untouched') return walk.verdict === 'accept' && !walk.translated
  if (outcome.kind !== 'to') return walk.verdict === outcome.kind
  if (walk.verdict !== 'accept' || !walk.translated) return false
  // What the node itself sends is seen as one of the node's addresses in any case.
  const asNode = walk.masqueraded || (from === 'node' && nodeAddresses.includes(client))
  const seenRight = outcome.seenAs === 'node' ? asNode : !walk.masqueraded
  return seenRight && outcome.backends.some(({ host, port }) => `${host}:${port}` === reached(walk))
}

function reached(walk: Walk): string {
  const address = formatIp(walk.destination)
  return `${hostAt(address) ?? address}:${walk.destinationPort}`
}

function way(walk: Walk): string {
  return walk.steps.map(({ chain, rule }) => `  ${chain}: ${rule.text}`).join('\n')
}

function range(length: number): number[] {
  return Array.from({ length }, (_, i) => i)
}

describe('the plan of the nftables mode', () => {
  test.for(packetFlowCases)('$name', async (row, { skip }) => {
    if (row.modes?.includes('nftables') === false) skip('nftables does not promise it')
    const planned = { 4: new PlannedNode(4, row), 6: new PlannedNode(6, row) }
    const both = [planned[4], planned[6]]
    const nodeFor = (flow: Flow) => planned[flow.to.address.includes(':') ? 6 : 4]
    const expectFlows = (flows: readonly Flow[], when: string) => {
      for (const flow of flows) {
        const about = `${when}: ${flow.from} to ${flow.to.address} port ${flow.to.port}/${flow.to.protocol}`
        expect(complaintAbout(nodeFor(flow), flow), about).toBeUndefined()
      }
    }
    for (const node of both) node.change(row.objects, [])
    expectFlows(row.flows, 'at first')
    for (const step of row.steps) {
      for (const node of both) node.change(step.put ?? [], step.remove ?? [])
      for (const node of both) await node.clock.advance((step.idleSeconds ?? 0) * 1000)
      expectFlows(step.flows, step.when)
    }
  })
})
