// A running proxy that is asked: by its socket, by `plan` and by `top`.

import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask } from '../../src/serve/control/client.ts'
import { restorePort } from '../../src/serve/control/port-state.ts'
import type { StateAnswer } from '../../src/serve/control/state.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { listTables } from '../support/nft-tables.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { proxyCommand, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Rig } from '../support/rig.ts'

const folder = mkdtempSync(join(tmpdir(), 'control-'))
const socket = join(folder, 'proxy.sock')
const web = aService({ type: 'NodePort' })
let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  rig = await openRig()
  rig.cluster.put(web, aSlice(web, ['localB']))
  const { kubeconfig } = rig.cluster
  proxy = await startProxy({
    netns: rig.network.node,
    mode: 'nftables',
    kubeconfig,
    args: [`--control-socket=${socket}`],
  })
  await rig.settled()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** Runs a command of the program on the node. */
function run(...args: string[]): string {
  const [program = '', ...rest] = proxyCommand()
  return rig.network.node.run(program, [...rest, ...args, `--control-socket=${socket}`])
}

test('it tells what it knows and has decided', async () => {
  const key = `${web.metadata.namespace}/${web.metadata.name}`
  const state = await ask<StateAnswer>('state', { socket, query: { service: key } })
  expect(state).toMatchObject({ mode: { name: 'nftables' }, config: { mode: 'nftables' } })
  const [v4] = state.families
  expect(v4!.sync.hasBegun).toBe(true)
  expect(v4!.drift.holds).toBe(true)
  expect(v4!.services.map(({ name }) => name)).toEqual([web.metadata.name])
  expect(v4!.ports.map(restorePort)[0]!.backends).toHaveLength(1)
  const { families } = await ask<StateAnswer>('state', { socket, query: { service: key, only: 'objects' } })
  expect(families[0]).toMatchObject({ services: v4!.services, slices: v4!.slices, ports: [] })
  const status = await ask<StateAnswer>('state', { socket, query: { only: 'status' } })
  expect(status.families[0]).toMatchObject({ drift: { holds: true }, services: [], slices: [], ports: [] })
  const misspelt = ask('state', { socket, query: { only: 'object' } })
  await expect(misspelt).rejects.toThrow('Cannot answer with only "object": must be objects or status')
})

test('what another program changes is reported, and the plan has nothing left to do', async () => {
  rig.network.node.run('nft', ['delete table ip kube-proxy'])
  await eventually('the drift is told', async () => {
    const { families } = await ask<StateAnswer>('state', { socket })
    return families[0]!.drift.found.length > 0 ? undefined : JSON.stringify(families[0]!.drift)
  })
  expect((await proxy.ask('/statusz'))?.body).toMatch(/differed \d+ times?; .*\n +add table ip kube-proxy/)
  expect((await proxy.ask('/metrics'))?.body).toMatch(/kubeproxyts_kernel_in_sync\{ip_family="IPv4"\} 1/)
  // The other family may have rules that no service uses any more, which the proxy sweeps when they are many.
  const plan = run('plan', '--family=4')
  expect(plan).toMatch(/^\* nftables +IPv4 +nothing to do/m)
  expect(plan).toMatch(/^ {2}iptables +IPv4 +\d+ lines for iptables-restore/m)
})

test('the kernel counts while top looks, and no longer', async () => {
  const { clusterIP: address } = web.spec
  const until = new AbortController()
  const traffic = (async () => {
    while (!until.signal.aborted) await tcpProbe(rig.network.sources.localPod, { address, port: 80 })
  })()
  const top = new ProxyProcess(rig.network.node, ['top', '-o', 'json', '--count=5', `--control-socket=${socket}`])
  expect(await top.exited, top.log()).toBe('0')
  until.abort()
  await traffic
  const lines = top.log().trim().split('\n')
  const rates = lines.flatMap((line) => (JSON.parse(line) as { rates: { name: string; bytes: number }[] }).rates)
  expect(
    rates.some(({ name, bytes }) => name.includes(web.metadata.name) && bytes > 0),
    top.log(),
  ).toBe(true)
  await eventually('nothing counts any more', () => {
    const tables = JSON.stringify(listTables(rig.network.node))
    return tables.includes('kube-proxy-counters') ? tables : undefined
  })
  await top[Symbol.asyncDispose]()
})

test('traffic is shown as metrics where that is asked for, and nothing counts otherwise', async () => {
  const shows = async () => (await proxy.ask('/metrics'))?.body ?? ''
  expect(await shows()).not.toMatch(/^kubeproxyts_traffic/m)
  await proxy.stop('SIGTERM')
  const { kubeconfig } = rig.cluster
  const args = [`--control-socket=${socket}`, '--traffic-metrics=1']
  proxy = await startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig, args })
  await rig.settled()
  expect(JSON.stringify(listTables(rig.network.node))).toContain('kube-proxy-counters')
  const { clusterIP: address } = web.spec
  const name = `${web.metadata.namespace}/${web.metadata.name}`
  await eventually('the connections are shown', async () => {
    await tcpProbe(rig.network.sources.localPod, { address, port: 80 })
    const page = await shows()
    const [lines] = [page.match(/^kubeproxyts_traffic_connections_total.*$/gm) ?? []]
    // The one that had traffic first has the label: the sentinel of settled(), until that is gone, or the web.
    return lines.some((line) => line.includes(`service_port="${name}`)) &&
      /traffic_bytes_total\{direction="sent"/.test(page)
      ? undefined
      : lines.join('\n')
  })
})

test('the socket goes with the proxy', async () => {
  expect(await proxy.stop('SIGTERM')).toBe('0')
  expect(existsSync(socket)).toBe(false)
})
