// docs/guides/leaving-ipvs.md, step by step, on a node that has what kube-proxy in ipvs mode wrote: virtual servers with schedulers, the
// link with its addresses, sets, chains. Clients connect all the time. The guide has what `check` prints here; UPDATE=1 writes it anew.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BALANCE_ANNOTATION } from '../../src/model/balance.ts'
import { WEIGHTS_ANNOTATION } from '../../src/model/weights.ts'
import { crowdIp, node as hostNode, pods, ranges } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { isWritten } from '../support/is-written.ts'
import { pingProbe } from '../support/netns/ping.ts'
import { tcpProbe, type ProbeOptions, type Target } from '../support/netns/probe.ts'
import { ProxyProcess } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { startKubeProxy } from '../support/swap/kube-proxy.ts'
import { swapObjects, swapTargets } from '../support/swap/objects.ts'

const guide = join(import.meta.dirname, '../../docs/guides/leaving-ipvs.md')
const CONFIG = '/var/lib/kube-proxy/config.conf'
const folder = mkdtempSync(join(tmpdir(), 'leaving-ipvs-'))
const config = join(folder, 'config.conf')
const web = swapTargets.ipv4.tcp
/** Of scheduler sh, which the recording of kube-proxy does not have. */
const pinned = aService({ name: 'pinned', clusterIPs: ['10.2.255.9'] })
const pinnedAt = { address: '10.2.255.9', port: 80 }
let rig: Rig

beforeAll(async () => {
  rig = await openRig()
  rig.cluster.put(...swapObjects, pinned, aSlice(pinned, ['localB', 'remoteA'], { name: 'pinned-4' }))
  await startKubeProxy(rig, 'ipvs')
  const { node } = rig.network
  // As kube-proxy has it with ipvs.scheduler: lc.
  for (const line of node.run('ipvsadm', ['-Sn']).split('\n')) {
    const [, server] = /^-A (-[tu] \S+) -s rr$/.exec(line) ?? []
    if (server !== undefined) node.run('ipvsadm', ['-E', ...server.split(' '), '-s', 'lc'])
  }
  node.run('ip', ['address', 'add', `${pinnedAt.address}/32`, 'dev', 'kube-ipvs0'])
  node.run('ipset', ['add', 'KUBE-CLUSTER-IP', `${pinnedAt.address},tcp:80`])
  node.run('ipset', ['add', 'KUBE-IPVS-IPS', pinnedAt.address])
  node.run('ipvsadm', ['-A', '-t', `${pinnedAt.address}:80`, '-s', 'sh'])
  for (const name of ['localB', 'remoteA'] as const)
    node.run('ipvsadm', ['-a', '-t', `${pinnedAt.address}:80`, '-r', `${pods[name].ip[4]}:8080`, '-m', '-w', '1'])
})
afterAll(async () => {
  await rig[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

function configure(mode: 'ipvs' | 'nftables', more = ''): void {
  writeFileSync(
    config,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ${mode}
ipvs: {scheduler: lc}
clusterCIDR: ${ranges.pods[4]},${ranges.pods[6]}
hostnameOverride: ${hostNode.name}
clientConnection: {kubeconfig: ${rig.cluster.kubeconfig}}
nodePortAddresses: [all]
${more}`,
  )
}

/** What the command prints, as it is in the guide. */
async function check(): Promise<{ text: string; status: string }> {
  await using program = new ProxyProcess(rig.network.node, ['check', '--from=ipvs', `--config=${config}`])
  const status = await program.exited
  const text = program.log().replaceAll(/https?:\/\/[\d.]+:\d+/g, 'https://10.0.0.1:6443')
  return { status, text: `$ kube-proxy check --from=ipvs --config=${CONFIG}\n${text.trimEnd()}` }
}

function compare(name: string, text: string): void {
  const place = new RegExp(`(<!-- ${name}: [^\\n]*-->\\n)([\\s\\S]*?)(<!-- /${name} -->)`)
  const made = `\n${text
    .split('\n')
    .map((line) => (line === '' ? '' : `    ${line}`))
    .join('\n')}\n\n`
  const before = readFileSync(guide, 'utf8')
  if (isWritten)
    writeFileSync(
      guide,
      before.replace(place, (_, start: string, __, end: string) => start + made + end),
    )
  expect(place.exec(readFileSync(guide, 'utf8'))?.[2]).toBe(made)
}

async function hosts(to: Target, times: number, options: ProbeOptions = {}): Promise<string[]> {
  const found: string[] = []
  for (let i = 0; i < times; i++) {
    const answer = await tcpProbe(rig.network.sources.external, to, options)
    found.push(answer.kind === 'answered' ? answer.greeting.host : answer.kind)
  }
  return found
}

/** Connects to the cluster IP from a pod, and to the node port from outside, until it is stopped. */
function startClients() {
  const ended = new AbortController()
  const answers: string[] = []
  const loop = async (source: 'localPod' | 'external', to: Target) => {
    while (!ended.signal.aborted) {
      const { kind } = await tcpProbe(rig.network.sources[source], to)
      answers.push(kind)
      await sleep(20)
    }
  }
  const loops = [loop('localPod', web), loop('external', swapTargets.nodePort.tcp)]
  return {
    answers,
    async stop() {
      ended.abort()
      await Promise.all(loops)
      return answers
    },
  }
}

test('check says what is lost, and how it is kept', async () => {
  configure('ipvs')
  const { text, status } = await check()
  expect(status).toBe('1')
  expect(text).toMatch(/least-connections/)
  compare('what changes', text)
})

test('with balance and pings set, check has less to say', async () => {
  annotate()
  rig.cluster.put(...annotated)
  configure('nftables', 'balance: least-connections\nanswerPing: true\n')
  const { text } = await check()
  expect(text).not.toMatch(/^ {2}(ping|node-port-addresses)$/m)
  expect(text).not.toMatch(/default\/web.*default\/web/)
  compare('what is left', text)
})

test('the node becomes nftables while clients connect, and keeps lc, sh, pings and weights', async () => {
  const { network } = rig
  const clients = startClients()
  await sleep(1000)
  await using proxy = new ProxyProcess(network.node, [`--config=${config}`])
  await proxy.ready()
  await rig.settled()
  await eventually(
    'nothing of ipvs is left',
    () => {
      const servers = network.node.run('ipvsadm', ['-Sn']).trim()
      const links = network.node.run('ip', ['-o', 'link']).match(/kube-ipvs0/)
      const sets = network.node.run('ipset', ['list', '-name']).match(/KUBE-\S+/)
      const chains = network.node.run('iptables-save', []).match(/^-A KUBE-\S+/m)
      const left = [servers, links?.[0], sets?.[0], chains?.[0]].filter(Boolean)
      return left.length === 0 ? undefined : left.join('; ')
    },
    { withinMs: 30_000 },
  )
  const sure = clients.answers.length
  await sleep(2000)
  const answers = await clients.stop()
  // A connection in the middle of its handshake when its virtual server goes may be lost; none before or after.
  expect(answers.slice(sure).filter((kind) => kind !== 'answered')).toEqual([])
  expect(answers.filter((kind) => kind !== 'answered').length).toBeLessThanOrEqual(2)
  expect(answers.length).toBeGreaterThan(30)
  // Pings, which rules of kube-proxy 1.37 refuse, and those of older ones do not.
  expect((await pingProbe(network.sources.localPod, web.address)).kind).toBe('answered')
  // sh: each client has an endpoint of its own.
  const chosen = new Set<string>()
  for (let client = 1; client <= 16; client++) {
    const found = await hosts(pinnedAt, 3, { from: crowdIp(4, client) })
    expect(new Set(found).size, found.join()).toBe(1)
    chosen.add(found[0]!)
  }
  expect(chosen).toEqual(new Set(['localB', 'remoteA']))
  // Weights, and least connections at work: three of four go to the endpoint that weighs three times as much.
  const light = (await hosts(web, 200)).filter((host) => host === 'remoteA').length
  expect(light).toBeGreaterThan(20)
  expect(light).toBeLessThan(85)
  const status = await proxy.ask('/statusz')
  expect(status?.body).toContain('Least connections: for')
  expect(proxy.ended, proxy.logTail()).toBeUndefined()
})

type Stored = (typeof swapObjects)[number]
const annotated: Stored[] = []

/** What an operator does by `kubectl annotate`. */
function annotate(): void {
  const found = swapObjects.find((each) => each.kind === 'Service' && each.metadata.name === 'web')!
  const weights = { [WEIGHTS_ANNOTATION]: `${pods.localB.ip[4]}=3` }
  annotated.push(
    { ...found, metadata: { ...found.metadata, annotations: weights } },
    { ...pinned, metadata: { ...pinned.metadata, annotations: { [BALANCE_ANNOTATION]: 'hash-client' } } },
  )
}
