// The userspace mode, asked: which backends it carries to, and whom affinity remembers. The kernel knows neither.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, ControlClient } from '../../src/serve/control/client.ts'
import type { AffinityAnswer } from '../../src/serve/control/affinity.ts'
import type { CarriedRow, TrafficAnswer } from '../../src/serve/control/traffic.ts'
import type { Explanation } from '../../src/diagnose/explain/explanation.ts'
import { joinHostPort } from '../../src/lib/ip.ts'
import { node, pods, type PodName } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { openUdp, tcpProbe } from '../support/netns/probe.ts'
import { dialFrom, mirror, readAll, serveStreams, type StreamServer } from '../support/netns/streams.ts'
import { proxyCommand, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const MIRROR_PORT = 9100
const backends = ['localB', 'localC'] as const satisfies readonly PodName[]
const folder = mkdtempSync(join(tmpdir(), 'asked-'))
const socket = join(folder, 'proxy.sock')
const web = aService({ ports: [{ targetPort: MIRROR_PORT }] })
const dns = aService({ ports: [{ protocol: 'UDP' }] })
const sticky = aService({
  families: [4, 6],
  spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } },
})
const servers: StreamServer[] = []
let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  rig = await openRig()
  for (const name of backends) servers.push(await serveStreams(rig.network.pods[name], MIRROR_PORT, mirror))
  rig.cluster.put(web, aSlice(web, [...backends]), dns, aSlice(dns, ['localB']), sticky)
  for (const family of [4, 6] as const) rig.cluster.put(aSlice(sticky, [...backends], { family }))
  const { kubeconfig } = rig.cluster
  proxy = await startProxy({
    netns: rig.network.node,
    mode: 'userspace',
    kubeconfig,
    args: [`--control-socket=${socket}`],
  })
  await rig.settled()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  for (const server of servers) await server[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const nameOf = ({ metadata }: typeof web) => `${metadata.namespace}/${metadata.name}`

/** `-o json` of a command of the program, on the node. */
function run(...args: string[]): unknown {
  const [program = '', ...rest] = proxyCommand()
  const all = [...rest, ...args, '-o', 'json', `--control-socket=${socket}`]
  return JSON.parse(rig.network.node.run(program, all))
}

test('what goes to each backend is counted while it is asked for, open connections included', async () => {
  const { localPod, external } = rig.network.sources
  const target = { address: web.spec.clusterIP, port: 80 }
  const open = dialFrom(localPod, target)
  open.write('before')
  await new Promise((resolve) => open.once('data', resolve))
  const client = new ControlClient(socket)
  const count = () => client.ask<TrafficAnswer>('traffic')
  const ofWeb = async () => ((await count()).carried ?? []).filter(({ service }) => service === nameOf(web))
  expect(await ofWeb()).toEqual([])
  // Four in turn, and one that was there before.
  for (let i = 0; i < 4; i++) {
    const each = dialFrom(i % 2 === 0 ? localPod : external, target)
    each.end('x'.repeat(100_000))
    expect((await readAll(each)).length).toBe(100_000)
  }
  open.end('y'.repeat(1000))
  await readAll(open)
  let carried: readonly CarriedRow[] = []
  await eventually('all of it is counted', async () => {
    carried = await ofWeb()
    const bytes = carried.reduce((sum, { receivedBytes }) => sum + receivedBytes, 0)
    return bytes === 401_000 ? undefined : JSON.stringify(carried)
  })
  expect(carried.map(({ backend }) => backend).sort()).toEqual(
    backends.map((name) => joinHostPort(pods[name].ip[4], MIRROR_PORT)).sort(),
  )
  expect(carried.map(({ begun, sentPackets }) => [begun, sentPackets])).toEqual([
    [2, 0],
    [2, 0],
  ])
  expect(carried.reduce((sum, { sentBytes }) => sum + sentBytes, 0)).toBe(401_000)
  const { rows } = await count()
  // Frontends are the kernel's to count; its "backends" are listeners of the proxy, and are not told.
  const [frontend, ...others] = rows.filter(({ service }) => service === nameOf(web))
  expect(others).toEqual([])
  expect(frontend).toMatchObject({ frontend: `tcp ${web.spec.clusterIP}:80` })
  // One whose first packet is sent again counts again.
  expect(frontend!.begun).toBeGreaterThanOrEqual(4)
  expect(rows.filter(({ backend }) => backend !== undefined)).toEqual([])
  client.close()
})

test('UDP has packets, too, and top shows the backends', async () => {
  const flow = await openUdp(rig.network.sources.localPod, { address: dns.spec.clusterIP, port: 80 })
  const top = new ProxyProcess(rig.network.node, [
    'top',
    '--view=backends',
    '-o',
    'json',
    '--count=3',
    `--control-socket=${socket}`,
  ])
  const ended = new AbortController()
  void top.exited.then(() => ended.abort())
  while (!ended.signal.aborted) await flow.say('hello')
  const rates = top
    .log()
    .trim()
    .split('\n')
    .flatMap((line) => (JSON.parse(line) as { rates: { name: string; packets: number; bytes: number }[] }).rates)
  const name = `${nameOf(dns)} udp -> ${joinHostPort(pods.localB.ip[4], 8080)}`
  const found = rates.filter((rate) => rate.name === name && rate.packets > 0 && rate.bytes > 0)
  expect(found.length, top.log()).toBeGreaterThan(0)
  flow.close()
  await top[Symbol.asyncDispose]()
})

test.each([4, 6] as const)('explain tells whom affinity remembers, and until when, IPv%d', async (family) => {
  const address = sticky.spec.clusterIPs[family === 4 ? 0 : 1]!
  const source = node.ip[family]
  const explain = () => run('explain', nameOf(sticky), `--family=${family}`) as Explanation
  expect(explain().affinity).toEqual({ seconds: 600, remembered: false, backend: null, secondsLeft: null })
  const answer = await tcpProbe(rig.network.node, { address, port: 80 })
  if (answer.kind !== 'answered') expect.fail(answer.kind)
  const backend = joinHostPort(pods[answer.greeting.host as PodName].ip[family], 8080)
  const query = { port: nameOf(sticky), client: source }
  const { remembered } = await ask<AffinityAnswer>('affinity', { socket, query })
  expect(remembered).toMatchObject([{ backend }])
  const { affinity, agreement } = explain()
  expect(affinity).toMatchObject({ seconds: 600, remembered: true, backend })
  expect(affinity!.secondsLeft).toBeGreaterThan(400)
  expect(affinity!.secondsLeft).toBeLessThanOrEqual(600)
  expect(agreement).toBe('agrees')
  // Asking is not coming: another client is not remembered for it.
  const other = await ask<AffinityAnswer>('affinity', { socket, query: { ...query, client: pods.remoteA.ip[family] } })
  expect(other.remembered).toEqual([])
})

test('a question that makes no sense says what is allowed', async () => {
  const refused = (query: Record<string, string>) => expect(ask('affinity', { socket, query })).rejects
  await refused({ port: nameOf(sticky), client: 'me' }).toThrow(/client "me": must be an IP address/)
  await refused({ port: nameOf(sticky), client: '10.0.0.1', list: 'All' }).toThrow(/must be Cluster or Local/)
  await refused({ port: 'a/b', client: '10.0.0.1' }).toThrow(/Cannot find service port "a\/b" in IPv4/)
})
