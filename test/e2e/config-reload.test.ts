// The configuration file is followed while the program runs.

import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { node, ranges } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { ProxyProcess } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { startTraffic } from '../support/steady-traffic.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
let folder: string
let versions = 0
const web = aService({ type: 'NodePort', ports: [{ name: 'tcp' }, { name: 'udp', protocol: 'UDP' }] })
const targets = { tcp: { address: web.spec.clusterIP, port: 80 }, udp: { address: web.spec.clusterIP, port: 80 } }
const onSecondIp = { address: node.secondIp[4], port: web.spec.ports[0]?.nodePort ?? 0 }

beforeEach(async () => {
  rig = await openRig()
  rig.cluster.put(web, aSlice(web, ['localB', 'remoteA']))
  folder = mkdtempSync(join(tmpdir(), 'kube-proxy-config-'))
  swapConfig(config())
  proxy = new ProxyProcess(rig.network.node, [`--config=${join(folder, 'config.conf')}`])
  await proxy.ready()
  await rig.settled()
})
afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

test('a change arrives by the swap of a ConfigMap’s links, without a restart and without loss', async () => {
  const { localPod, external } = rig.network.sources
  const { pid } = proxy
  const traffic = await startTraffic([localPod, external], targets)
  expect(await tcpProbe(external, onSecondIp)).toEqual({ kind: 'refused' })
  expect(await seenBy()).toBe('client')

  swapConfig(config('nodePortAddresses: ["10.3.0.0/24"]'))
  await eventually('the node port opens on the second address', async () =>
    (await tcpProbe(external, onSecondIp, aShortWhile())).kind === 'answered' ? undefined : 'still closed',
  )
  swapConfig(config('nftables: {masqueradeAll: true}'))
  await eventually('local pods are masqueraded', async () => ((await seenBy()) === 'node' ? undefined : 'not yet'))
  expect(await tcpProbe(external, onSecondIp)).toEqual({ kind: 'refused' })

  expect((await traffic.stop()).losses).toEqual([])
  expect(proxy.ended).toBeUndefined()
  expect(proxy.pid).toBe(pid)
})

test('retries of connections are turned on and off', async () => {
  const { pid } = proxy
  const hasTable = () => rig.network.node.run('nft', ['list', 'tables']).includes('kube-proxy-retry')
  expect(hasTable()).toBe(false)
  swapConfig(config('connectRetry: true'))
  await eventually('the table is there', () => (hasTable() ? undefined : 'it is not'))
  swapConfig(config())
  await eventually('the table is gone', () => (hasTable() ? 'it is there' : undefined))
  swapConfig(config('connectRetry: annotated'))
  const { metadata, ...rest } = web
  rig.cluster.put({
    ...rest,
    metadata: { ...metadata, annotations: { 'service.kube-proxy-ts.io/connect-retry': 'on' } },
  })
  await eventually('the table is there, for a Service that asks', () => (hasTable() ? undefined : 'it is not'))
  rig.cluster.put(web)
  await eventually('it is gone', () => (hasTable() ? 'it is there' : undefined))
  expect(proxy.ended).toBeUndefined()
  expect(proxy.pid).toBe(pid)
})

test('an editor that replaces the file, or writes into it, is noticed as well', async () => {
  const plain = join(folder, 'plain.conf')
  writeFileSync(plain, config())
  await proxy[Symbol.asyncDispose]()
  proxy = new ProxyProcess(rig.network.node, [`--config=${plain}`])
  await proxy.ready()
  await rig.settled()
  writeFileSync(plain, config('nftables: {masqueradeAll: true}'))
  await eventually('the write is noticed', async () => ((await seenBy()) === 'node' ? undefined : 'not yet'))
  writeFileSync(`${plain}.new`, config())
  renameSync(`${plain}.new`, plain)
  await eventually('the replacement is noticed', async () => ((await seenBy()) === 'client' ? undefined : 'not yet'))
})

test('a mode that is left and comes back at once has all that it needs', async () => {
  const waitFor = (what: string, logged: number) =>
    eventually(`the log tells: ${what}`, () => (proxy.log().includes(what, logged) ? undefined : 'not yet'), {
      withinMs: 10_000,
      everyMs: 1,
    })
  swapConfig(config('mode: iptables'))
  await waitFor('Removed nftables table', 0)
  await rig.settled()
  const logged = proxy.log().length
  swapConfig(config())
  // The rules of IPv6 and the counters are still to be removed.
  await waitFor('Removed rules of iptables', logged)
  swapConfig(config('mode: iptables'))
  await waitFor('Starting" mode="iptables"', logged)
  await rig.settled()
  expect(proxy.log().slice(logged)).not.toMatch(/Sync failed|Cannot program/)
})

test.for([
  ['an invalid value', 'clusterCIDR: nonsense', /clusterCIDR/],
  ['a syntax error', 'clusterCIDR: [unclosed', /config/i],
  ['a mode that does not exist', 'mode: teleport', /teleport/],
] as const)('%s is reported, and the running configuration stays', async ([, text, inLog]) => {
  const traffic = await startTraffic([rig.network.sources.localPod], targets)
  const logged = proxy.log().length
  swapConfig(config(text))
  await eventually('the log tells', () =>
    inLog.test(proxy.log().slice(logged)) ? undefined : proxy.log().slice(logged),
  )
  await traffic.more()
  expect(proxy.ended).toBeUndefined()
  expect((await traffic.stop()).losses).toEqual([])
  await rig.settled()
  swapConfig(config('nftables: {masqueradeAll: true}'))
  await eventually('the next valid change is applied', async () =>
    (await seenBy()) === 'node' ? undefined : 'not yet',
  )
})

async function seenBy(): Promise<string> {
  const answer = await tcpProbe(rig.network.sources.localPod, targets.tcp)
  if (answer.kind !== 'answered') return answer.kind
  return answer.greeting.seenAs === answer.client ? 'client' : 'node'
}

/** A configuration; later lines win over earlier ones of the same field. */
function config(...lines: readonly string[]): string {
  const fields = new Map<string, string>()
  for (const line of [
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1',
    'kind: KubeProxyConfiguration',
    'mode: nftables',
    `clientConnection: {kubeconfig: ${rig.cluster.kubeconfig}}`,
    `hostnameOverride: ${node.name}`,
    `clusterCIDR: ${ranges.pods[4]},${ranges.pods[6]}`,
    'healthzBindAddress: 0.0.0.0:10256',
    'metricsBindAddress: 127.0.0.1:10249',
    'conntrack: {maxPerCore: 0}',
    'oomScoreAdj: 0',
    ...lines,
  ]) {
    fields.set(line.slice(0, line.indexOf(':')), line)
  }
  return `${[...fields.values()].join('\n')}\n`
}

/** As kubelet updates a mounted ConfigMap: a new folder, and a link to it that is replaced in one step. */
function swapConfig(text: string): void {
  const version = `..version-${++versions}`
  mkdirSync(join(folder, version))
  writeFileSync(join(folder, version, 'config.conf'), text)
  symlinkSync(version, join(folder, '..data-new'))
  renameSync(join(folder, '..data-new'), join(folder, '..data'))
  if (!existsSync(join(folder, 'config.conf'))) symlinkSync('..data/config.conf', join(folder, 'config.conf'))
}
