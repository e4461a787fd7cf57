// Node ports on 127.0.0.1 and ::1 in the nftables mode: what becomes of listeners, connections and counters while ports are taken,
// services go, the proxy ends, and its configuration changes. Who reaches what is in test/conformance/cases/localhost.ts.

import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ProxySettings } from '../conformance/packet-flow.ts'
import { node, ranges } from '../support/addresses.ts'
import { aService, aSlice, type ApiService } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { openTcp, openUdp, tcpProbe, udpProbe } from '../support/netns/probe.ts'
import { mirror, serveStreams } from '../support/netns/streams.ts'
import { ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const open = { localhostNodePorts: true, nodePortAddresses: ['primary', 'localhost'] } as const
const refused = { localhostNodePorts: true } as const

let folder: string
let rig: Rig
let proxy: ProxyProcess

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'localhost-'))
  rig = await openRig()
})
afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

test('a port that another program has is served as soon as that lets go of it', async () => {
  const [taken, other] = [aNodePort(), aNodePort()]
  const program = await serveStreams(rig.network.node, portOf(taken), mirror)
  await start(open)
  expect(await dial(other)).toBe('localB')
  const before = await metrics()
  expect(before).toMatchObject({ 'listeners{ip_family="IPv4"}': 1 })
  expect(before['listener_creation_failures_total{ip_family="IPv4"}']).toBeGreaterThan(0)
  expect(proxy.log().match(/Cannot listen for a node port on localhost/g)).toHaveLength(1)
  await eventually('an Event says so', () => {
    const posted = rig.cluster.server.requests.filter(
      ({ path, body }) => path.includes('/events') && body.includes('another program has'),
    )
    return posted.length === 1 ? undefined : `${posted.length} Events`
  })
  await program[Symbol.asyncDispose]()
  await eventually('it is served', async () => complainUnless(await dial(taken), 'localB'), { withinMs: 20_000 })
  expect(await metrics()).toMatchObject({ 'listeners{ip_family="IPv4"}': 2 })
})

test('what was refused is served after a start that says so, and the other way round, and nothing is left without the gate', async () => {
  const [tcp, udp, sctp] = [aNodePort(), aNodePort('UDP'), aNodePort('SCTP')]
  await start(refused)
  expect([await dial(tcp), await dial(udp)]).toEqual(['refused', 'refused'])
  expect(await metrics()).toEqual({
    'listener_creation_failures_total{ip_family="IPv4"}': 0,
    'listener_creation_failures_total{ip_family="IPv6"}': 0,
    'listeners{ip_family="IPv4"}': 0,
    'listeners{ip_family="IPv6"}': 0,
    // The client of TCP tries once, and hears it at once.
    'rejected_packets_total{ip_family="IPv4",protocol="TCP"}': 1,
    'rejected_packets_total{ip_family="IPv4",protocol="UDP"}': 1,
    'rejected_packets_total{ip_family="IPv4",protocol="SCTP"}': 0,
    'rejected_packets_total{ip_family="IPv6",protocol="TCP"}': 0,
    'rejected_packets_total{ip_family="IPv6",protocol="UDP"}': 0,
    'rejected_packets_total{ip_family="IPv6",protocol="SCTP"}': 0,
  })
  await startAgain(open)
  expect([await dial(tcp), await dial(udp)]).toEqual(['localB', 'localB'])
  // The kernel has kept on counting.
  expect(await metrics()).toMatchObject({ 'rejected_packets_total{ip_family="IPv4",protocol="TCP"}': 1 })
  await startAgain(refused)
  expect([await dial(tcp), await dial(udp)]).toEqual(['refused', 'refused'])
  await startAgain({ nodePortAddresses: ['primary', 'localhost'] })
  expect(await metrics()).toEqual({})
  expect(tables()).not.toContain('localhost')
  expect([await dial(tcp), await dial(udp)]).toEqual(['refused', 'refused'])
  expect(portOf(sctp)).toBeGreaterThan(0)
})

test('connections and flows outlive their service port, and a port goes from one service to another', async () => {
  const [tcp, udp] = [aNodePort(), aNodePort('UDP')]
  await start(open)
  const { answer, conversation } = await openTcp(rig.network.node, { address: '127.0.0.1', port: portOf(tcp) })
  expect(answer.kind).toBe('answered')
  const heir = aService({ type: 'NodePort', families: [4] })
  heir.spec.ports[0]!.nodePort = portOf(tcp)
  rig.cluster.remove(tcp)
  rig.cluster.put(heir, aSlice(heir, ['localC']))
  await eventually('the other service has it', async () => complainUnless(await dial(heir), 'localC'))
  expect(await conversation.say('still there?')).toMatchObject({ kind: 'answered' })
  conversation.close()
  rig.cluster.remove(udp)
  await eventually('nobody listens', async () => complainUnless(await dial(udp), 'refused'))
})

test('an IPv6 socket that dials an IPv4 address reaches it', async () => {
  const service = aNodePort()
  await start(open)
  const script = `require('net').connect(${portOf(service)}, '::ffff:127.0.0.1').pipe(process.stdout)`
  const child = rig.network.node.spawn([process.execPath, '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [greeting] = (await once(child.stdout!, 'data')) as [Buffer]
  expect(greeting.toString()).toContain('localB')
  child.kill()
})

test('nobody notices that the proxy starts again in its process, and listeners go with what asked for them', async () => {
  const [tcp, udp] = [aNodePort(), aNodePort('UDP')]
  const file = join(folder, 'config.yaml')
  const gate = 'featureGates: {KubeProxyNFTablesLocalhostNodePorts: true}'
  const localhost = 'nodePortAddresses: [primary, localhost]'
  const configure = (...lines: string[]) => writeFileSync(file, config(rig, lines))
  configure(gate, localhost)
  proxy = new ProxyProcess(rig.network.node, [`--config=${file}`])
  await proxy.ready()
  await rig.settled()
  const to = (service: ApiService) => ({ address: '127.0.0.1', port: portOf(service) })
  const { conversation: connection } = await openTcp(rig.network.node, to(tcp))
  const flow = await openUdp(rig.network.node, to(udp))
  expect(await flow.say('first')).toMatchObject({ kind: 'answered' })
  const { pid } = proxy
  const dialled: string[] = []
  const over = new AbortController()
  const dialling = (async () => {
    while (!over.signal.aborted) dialled.push(await dial(tcp), await dial(udp))
  })()

  configure(gate, localhost, 'clientConnection: {qps: 7}')
  const starts = () => proxy.log().split('Starting again').length - 1
  await eventually('it starts again', () => (starts() === 1 ? undefined : `${starts()} times`))
  await proxy.ready()
  await rig.settled()
  over.abort()
  await dialling
  expect(new Set(dialled)).toEqual(new Set(['localB']))
  expect(await connection.say('again')).toMatchObject({ kind: 'answered' })
  expect(await flow.say('again')).toMatchObject({ kind: 'answered' })

  configure(gate, 'clientConnection: {qps: 7}')
  await eventually('it is refused', async () => complainUnless(await dial(tcp), 'refused'))
  expect(await metrics()).toMatchObject({ 'listeners{ip_family="IPv4"}': 0 })
  configure(gate, localhost, 'clientConnection: {qps: 7}')
  await eventually('it is served', async () => complainUnless(await dial(tcp), 'localB'))
  configure(localhost)
  await eventually('it starts again', () => (starts() === 2 ? undefined : `${starts()} times`))
  await eventually('it is closed', async () => complainUnless(await dial(tcp), 'refused'))
  expect(await connection.say('once more')).toMatchObject({ kind: 'answered' })
  connection.close()
  flow.close()
  expect(proxy.pid).toBe(pid)
})

function aNodePort(protocol: 'TCP' | 'UDP' | 'SCTP' = 'TCP'): ApiService {
  const service = aService({ type: 'NodePort', families: [4], ports: [{ protocol }] })
  rig.cluster.put(service, aSlice(service, ['localB']))
  return service
}

function portOf({ spec }: ApiService): number {
  return spec.ports[0]!.nodePort!
}

async function start(settings: ProxySettings): Promise<void> {
  proxy = await startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig, settings })
  await rig.settled()
}

async function startAgain(settings: ProxySettings): Promise<void> {
  await proxy[Symbol.asyncDispose]()
  await start(settings)
}

/** Who answers on 127.0.0.1, or what happens instead. */
async function dial(service: ApiService): Promise<string> {
  const { protocol } = service.spec.ports[0]!
  const probe = protocol === 'UDP' ? udpProbe : tcpProbe
  const answer = await probe(rig.network.node, { address: '127.0.0.1', port: portOf(service) })
  return answer.kind === 'answered' ? answer.greeting.host : answer.kind === 'failed' ? answer.code : answer.kind
}

function complainUnless(got: string, wanted: string): string | undefined {
  return got === wanted ? undefined : `it is ${got}`
}

/** Those of node ports on localhost, by what stands behind their common name. */
async function metrics(): Promise<Record<string, number>> {
  const answer = await proxy.ask('/metrics')
  const lines = (answer?.body ?? '').matchAll(/^kubeproxy_nftables_localhost_nodeport_(\S+) (\d+)$/gm)
  return Object.fromEntries(Array.from(lines, ([, name, value]) => [name!, Number(value)]))
}

function tables(): string {
  return rig.network.node.run('nft', ['list', 'ruleset'])
}

function config({ cluster }: Rig, lines: readonly string[]): string {
  return [
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1',
    'kind: KubeProxyConfiguration',
    'mode: nftables',
    `hostnameOverride: ${node.name}`,
    `clusterCIDR: ${ranges.pods[4]},${ranges.pods[6]}`,
    'healthzBindAddress: 0.0.0.0:10256',
    'metricsBindAddress: 127.0.0.1:10249',
    'conntrack: {maxPerCore: 0}',
    'oomScoreAdj: 0',
    ...lines,
    ...(lines.some((line) => line.startsWith('clientConnection')) ? [] : ['clientConnection: {}']),
  ]
    .join('\n')
    .replace(/clientConnection: \{/, `clientConnection: {kubeconfig: ${cluster.kubeconfig}, `)
}
