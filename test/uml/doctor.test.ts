// What `kube-proxy doctor` finds where a whole kernel is needed: how many connections are tracked at most is the kernel's
// to say, and not a network namespace's.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import { dialFrom, mirror, serveStreams, type StreamServer } from '../support/netns/streams.ts'
import { proxyCommand, startProxy, type ProxyProcess } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const MIRROR_PORT = 9100
const CONNECTIONS = 60
const SETTING = 'net.netfilter.nf_conntrack_max'
const web = aService({ ports: [{ targetPort: MIRROR_PORT }] })
const name = `${web.metadata.namespace}/${web.metadata.name}`
const target = { address: web.spec.clusterIP, port: 80 }
const open: Socket[] = []
let rig: Rig
let server: StreamServer
let proxy: ProxyProcess
let before: string

/** In the first network namespace of the kernel, which is ours alone here. */
function setMost(most: string): void {
  execFileSync('nsenter', ['--target=1', '--net', 'sysctl', '-qw', `${SETTING}=${most}`])
}

beforeAll(async () => {
  rig = await openRig()
  server = await serveStreams(rig.network.pods.localB, MIRROR_PORT, mirror)
  rig.cluster.put(web, aSlice(web, ['localB']))
  const { kubeconfig } = rig.cluster
  proxy = await startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig })
  await rig.settled()
  before = readFileSync('/proc/sys/net/netfilter/nf_conntrack_max', 'utf8').trim()
})
afterAll(async () => {
  setMost(before)
  for (const socket of open) socket.destroy()
  await proxy[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

/** The code of what it finds, and what it says; undefined: nothing. */
function doctor(...args: string[]): { readonly code: string; readonly what: string } | undefined {
  const [program = '', ...rest] = proxyCommand()
  const command = [program, ...rest, 'doctor', ...args, '-o', 'json'].map((word) => `'${word}'`).join(' ')
  // Its exit status says that it found something.
  const printed = rig.network.node.run('sh', ['-c', `${command}; [ $? -ne 1 ]`])
  return (JSON.parse(printed) as { finding: { code: string; what: string } | null }).finding ?? undefined
}

test('conntrack-full: new connections are dropped, and those that are open go on', async () => {
  for (let i = 0; i < CONNECTIONS; i++) {
    const socket = dialFrom(rig.network.sources.localPod, target)
    open.push(socket)
    socket.write('x')
    await new Promise((resolve) => socket.once('data', resolve))
  }
  setMost(String(CONNECTIONS))
  await eventually('the connection tracker is full', async () => {
    const { kind } = await tcpProbe(rig.network.sources.localPod, target, aShortWhile())
    return kind === 'answered' ? 'a new connection is answered' : undefined
  })
  const finding = doctor(name)
  expect(finding?.code).toBe('conntrack-full')
  expect(finding?.what).toMatch(/^the connection table is full: \d+ of 60; new connections are dropped$/)
  const [first] = open
  first!.write('y')
  await new Promise((resolve) => first!.once('data', resolve))
  setMost(before)
  await eventually('it has room again', () => doctor(name)?.what)
})
