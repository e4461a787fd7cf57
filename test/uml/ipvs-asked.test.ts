// What IPVS itself knows, and those who ask are told: traffic by virtual server and destination, and whom persistence remembers.

import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FlowRecord } from '../../src/flows/flow-record.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { listTables } from '../support/nft-tables.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { proxyCommand, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { external, pods } from '../support/addresses.ts'

const web = aService({ spec: { sessionAffinity: 'ClientIP' } })
const empty = aService({})
let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  rig = await openRig()
  rig.cluster.put(web, aSlice(web, ['localB', 'remoteA']), empty)
  const { kubeconfig } = rig.cluster
  proxy = await startProxy({ netns: rig.network.node, mode: 'ipvs', kubeconfig, args: ['--traffic-metrics=10'] })
  await rig.settled()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

function run(...args: string[]): string {
  const [program = '', ...rest] = proxyCommand()
  return rig.network.node.run(program, [...rest, ...args])
}

interface Rates {
  readonly rates: readonly { readonly name: string; readonly connections: number; readonly bytes: number }[]
}

test('top tells what goes through a virtual server, by backend', async () => {
  const until = new AbortController()
  const traffic = (async () => {
    while (!until.signal.aborted)
      await tcpProbe(rig.network.sources.localPod, { address: web.spec.clusterIP, port: 80 })
  })()
  const top = new ProxyProcess(rig.network.node, ['top', '-o', 'json', '--view=backends', '--count=3'])
  const ended = await top.exited
  const lines = top.log().trim().split('\n')
  await top[Symbol.asyncDispose]()
  until.abort()
  await traffic
  expect(ended, lines.join('\n')).toBe('0')
  const rates = lines.flatMap((line) => (JSON.parse(line) as Rates).rates)
  const own = rates.filter(({ name }) => name.includes(web.metadata.name))
  expect(
    own.some(({ connections, bytes }) => connections > 0 && bytes > 100),
    lines.join('\n'),
  ).toBe(true)
  expect(own[0]!.name).toMatch(/-> 10\.1\.[01]\.1[12]:8080$/)
})

test('and so do the metrics, with what is refused', async () => {
  const name = `${empty.metadata.namespace}/${empty.metadata.name}`
  await eventually('a refusal is shown', async () => {
    await tcpProbe(rig.network.sources.localPod, { address: empty.spec.clusterIP, port: 80 })
    const page = (await proxy.ask('/metrics'))?.body ?? ''
    const lines = page.match(/^kubeproxyts_traffic.*$/gm) ?? []
    return lines.some((line) => line.includes('refused') && line.includes(name) && !line.endsWith(' 0')) &&
      lines.some((line) => line.includes('connections') && line.includes(web.metadata.name) && !line.endsWith(' 0'))
      ? undefined
      : `${lines.join('\n')}\n${proxy.logTail(5)}`
  })
})

test('flows tells of connections, with the backend that IPVS chose', async () => {
  const flows = new ProxyProcess(rig.network.node, ['flows', `default/${web.metadata.name}`, '-o', 'json', '--count=2'])
  await eventually('it looks', () => (flows.log().includes('ipvs mode') ? undefined : flows.log()))
  await tcpProbe(rig.network.sources.localPod, { address: web.spec.clusterIP, port: 80 })
  expect(await flows.exited, flows.log()).toBe('0')
  const lines = flows.log().split('\n')
  await flows[Symbol.asyncDispose]()
  const records = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as FlowRecord)
  expect(records.map(({ event }) => event)).toEqual(['begun', 'ended'])
  expect(records[1]).toMatchObject({
    client: { ip: pods.localA.ip[4] },
    frontend: { ip: web.spec.clusterIP, port: 80 },
    backend: { ip: expect.stringMatching(/^10\.1\.[01]\.1[12]$/), port: 8080 },
  })
})

test('explain tells whom persistence remembers, where, and for how long', () => {
  const to = `default/${web.metadata.name}`
  const told = JSON.parse(run('explain', pods.localA.ip[4], to, '-o', 'json')) as {
    agreement: string
    affinity: { remembered: boolean; backend: string; secondsLeft: number }
  }
  expect(told.affinity).toMatchObject({ remembered: true, backend: expect.stringMatching(/^10\.1\.[01]\.1[12]:8080$/) })
  expect(told.affinity.secondsLeft).toBeGreaterThan(10_000)
  expect(told.agreement).toBe('agrees')
  const stranger = JSON.parse(run('explain', external.secondIp[4], to, '-o', 'json')) as typeof told
  expect(stranger.affinity).toMatchObject({ remembered: false })
})

test('nothing is left that counts when the proxy has ended', async () => {
  await proxy.stop('SIGTERM')
  expect(JSON.stringify(listTables(rig.network.node))).not.toContain('kube-proxy-counters')
})
