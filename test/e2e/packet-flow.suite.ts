// The packet-flow table with real packets, for one mode: the program under test runs on the node of the test network and
// watches an API server; every flow opens sockets in the namespace that it comes from.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decideAll } from '../../src/diagnose/explain/known.ts'
import type { Family } from '../../src/lib/ip.ts'
import { modeNamed } from '../../src/modes/all.ts'
import { isPromisedBy } from '../conformance/modes.ts'
import { packetFlowCases } from '../conformance/packet-flow.cases.ts'
import { echoPorts, hostAt, nodeAddresses } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { Cgroup, whyNoCgroup } from '../support/cgroup.ts'
import { askProxy } from '../support/ask-proxy.ts'
import { explainFlow, type FlowContext } from '../support/explain-flow.ts'
import { probeOnce, tryFlow } from '../support/flows.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Flow, PacketFlowCase } from '../conformance/packet-flow.ts'
import type { ModeName } from '../conformance/modes.ts'
import { restIn, type Netns } from '../support/netns/netns.ts'
import type { FlowStage } from '../support/flows.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import type { Rig } from '../support/rig.ts'

// For another program (PROXY_COMMAND): rows that it is known to fail, or to die of.
const left = new RegExp(process.env['PROXY_SKIP'] ?? '^$')
const rowsToRun = packetFlowCases.filter((row) => !left.test(row.name))

/** One that cannot be asked. */
const isAnotherProgram = process.env['PROXY_COMMAND'] !== undefined

let rig: Rig
let clients: Cgroup | undefined

export interface Circumstances {
  /** Sets up the node. */
  readonly prepare?: (node: Netns) => void
  /** `--socket-balancing` for the pods of the node, and for the node itself; with the rows that it may concern. */
  readonly balancesSockets?: true
}

/** Declares the tests of a mode, or a single one that is skipped when the mode cannot run here. */
export function testPacketFlow(mode: ModeName, { prepare, balancesSockets }: Circumstances = {}): void {
  const reason = whyNotRun(mode) ?? (balancesSockets === true ? whyNoCgroup() : undefined)
  if (reason !== undefined) {
    test(`the packet-flow table in ${mode} mode`, ({ skip }) => skip(reason))
    return
  }
  beforeAll(async () => {
    rig = await openRig()
    prepare?.(rig.network.node)
    if (balancesSockets === true) clients = new Cgroup(`kube-proxy-ts-test-${process.pid}`)
    const { localPod, otherLocalPod, node } = rig.network.sources
    for (const source of [localPod, otherLocalPod, node]) source.clients = clients
  })
  afterAll(async () => {
    await rig[Symbol.asyncDispose]()
    clients?.[Symbol.dispose]()
  })
  const promised = rowsToRun.filter((row) => isPromisedBy(mode, row) && (balancesSockets !== true || mayChoose(row)))
  for (const [settings, rows] of bySettings(promised)) {
    describe(`${mode} with the settings ${settings}`, () => testRows(mode, rows))
  }
}

/** Whether a pod or the node sends something in it that a socket may choose for. */
function mayChoose({ flows, steps }: PacketFlowCase): boolean {
  return [...flows, ...steps.flatMap((step) => step.flows)].some(
    ({ from, to }) => ['TCP', 'UDP'].includes(to.protocol) && ['localPod', 'otherLocalPod', 'node'].includes(from),
  )
}

/** One start of the program for all rows of the same settings, and all of them in the cluster at once. */
function testRows(mode: ModeName, rows: readonly PacketFlowCase[]): void {
  let proxy: ProxyProcess | undefined
  beforeAll(async () => {
    rig.cluster.put(...rows.flatMap((row) => row.objects))
    const settings = rows[0]?.settings ?? {}
    const { kubeconfig } = rig.cluster
    const args = clients === undefined ? [] : [`--socket-balancing=${clients.folder}`]
    proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig, settings, args })
    if (clients !== undefined) rig.cluster.put(guide, ...guideSlices)
    await rig.settled()
    if (clients !== undefined) await showAddresses()
  })
  afterAll(async () => {
    const ended = proxy?.ended
    await proxy?.[Symbol.asyncDispose]()
    rig.cluster.remove(...rows.flatMap((row) => [...row.objects, ...row.steps.flatMap((step) => step.put ?? [])]))
    expect(ended, 'the program ran until the end').toBeUndefined()
  })
  // The flows that the rows then send: what `kube-proxy explain` says of each is what the kernel holds.
  test.skipIf(isAnotherProgram)('explain says what this kernel does', () => expectExplained(mode, rows))
  for (const row of rows) test.concurrent(row.name, () => runRow(row))
}

async function expectExplained(mode: ModeName, rows: readonly PacketFlowCase[]): Promise<void> {
  const { node } = rig.network
  const known = await askProxy(node)
  const machine = await modeNamed(mode).load()
  const contexts = new Map<Family, FlowContext>()
  // Walks look into long maps of the kernel as they go.
  using _ = restIn(node)
  for (const family of [4, 6] as const) {
    const walkable = await machine.readWalkable?.({ family, now: () => 0 })
    contexts.set(family, { known, decided: decideAll(known, family)!, walkable: walkable! })
  }
  const wrong = rows
    .flatMap(({ flows }) => flows)
    .map((flow) => ({ flow, ...explainFlow(flow, contexts.get(flow.to.address.includes(':') ? 6 : 4)!) }))
    .filter(({ flow, decision, differences }) => decision.outcome !== flow.outcome.kind || differences.length > 0)
  expect(wrong.map(({ flow, about, differences }) => [flow.outcome.kind, about, ...differences].join('\n'))).toEqual([])
}

async function runRow(row: PacketFlowCase): Promise<void> {
  await expectFlows(row.flows)
  for (const step of row.steps) {
    rig.cluster.remove(...(step.remove ?? []))
    rig.cluster.put(...(step.put ?? []))
    if (step.remove !== undefined || step.put !== undefined) await rig.settled()
    await sleep((step.idleSeconds ?? 0) * 1000)
    await expectFlows(step.flows, step.when)
  }
}

/** One after the other: flows of one row may depend on each other (affinity). */
async function expectFlows(flows: readonly Flow[], when = 'at first'): Promise<void> {
  const stage: FlowStage = {
    sources: rig.network.sources,
    isNode: (address) => nodeAddresses.includes(address),
    withoutProxy,
    balancesSockets: clients !== undefined,
  }
  if (clients !== undefined) await becomeSeen(flows)
  const complaints: string[] = []
  for (const flow of flows) complaints.push(...(await tryFlow(stage, flow)))
  expect(complaints, when).toEqual([])
}

/** A pod's sockets choose for an address after a connection to it was seen to arrive; for UDP, after one of TCP from there was seen. */
async function becomeSeen(flows: readonly Flow[]): Promise<void> {
  const mayChoose = ({ from, to, outcome }: Flow) =>
    (from !== 'node' || (outcome.kind === 'to' && outcome.sticky)) &&
    ['TCP', 'UDP'].includes(to.protocol) &&
    outcome.kind === 'to'
  const chosen = flows.filter(mayChoose)
  await Promise.all(
    chosen.map(({ from, to }) => probeOnce(rig.network.sources[from], to, { isUnconnected: to.protocol === 'UDP' })),
  )
  if (chosen.length > 0) await sleep(300)
}

/** A service of TCP, from which the proxy learns the addresses of the pods. */
const guide = aService({ families: [4, 6] })
const guideSlices = ([4, 6] as const).map((family) => aSlice(guide, ['localB'], { family }))

async function showAddresses(): Promise<void> {
  const { localPod, otherLocalPod, node } = rig.network.sources
  const all = guide.spec.clusterIPs.flatMap((address) =>
    [localPod, otherLocalPod, node].map((source) => tcpProbe(source, { address, port: 80 })),
  )
  expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(all.map(() => 'answered'))
  await sleep(300)
}

/** What the proxy leaves alone reaches a host, or ends in the hole. */
function withoutProxy({ to }: Flow): 'answered' | 'refused' | 'silent' {
  const isHost = hostAt(to.address) !== undefined
  const ports = { TCP: echoPorts.tcp, UDP: echoPorts.udp, SCTP: echoPorts.sctp, ICMP: [] }[to.protocol]
  if (isHost && ports.some((port) => port === to.port)) return 'answered'
  const isAnybody = isHost || nodeAddresses.includes(to.address) || ['127.0.0.1', '::1'].includes(to.address)
  return isAnybody ? 'refused' : 'silent'
}

function bySettings(rows: readonly PacketFlowCase[]): Map<string, PacketFlowCase[]> {
  const groups = new Map<string, PacketFlowCase[]>()
  for (const row of rows) {
    const settings = JSON.stringify(row.settings)
    groups.set(settings, [...(groups.get(settings) ?? []), row])
  }
  return groups
}
