// The proxy without a cluster, as docs/guides/standalone.md tells it: a machine with clients on one side, servers on the
// other, and files in place of an API server. The files are those of examples/standalone.

import { spawn, type ChildProcess } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Rtnetlink } from '../../src/links/rtnetlink.ts'
import { parseCidr, ipBytes } from '../../src/lib/ip.ts'
import { openNetworkNamespace, type NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import { WhoamiServer } from '../../packages/sandbox/src/whoami/whoami-server.ts'
import { eventually } from '../support/eventually.ts'
import { ask } from './support/ask.ts'
import { enterMachine } from './support/machine.ts'
import { program } from './support/sandbox-process.ts'

enterMachine()
const folder = mkdtempSync(join(tmpdir(), 'kps-standalone-'))
const manifests = join(folder, 'manifests')
const file = join(manifests, 'web.yaml')
const address = '192.0.2.10'
const anywhere = parseCidr('0.0.0.0/0')!

let client: NetworkNamespace
let box: NetworkNamespace
let proxy: ChildProcess
let log = ''
const servers: WhoamiServer[] = []

beforeAll(async () => {
  client = openNetworkNamespace('client')
  box = openNetworkNamespace('box')
  box.setSysctls({ 'ipv4/ip_forward': 1 })
  connect(client, '192.0.2.100', { name: 'clients', address })
  const lan = openNetworkNamespace('lan')
  connect(lan, '198.51.100.1', { name: 'servers', address: '198.51.100.254' })
  // Both servers are on one host, at two addresses.
  using links = lan.enter(() => new Rtnetlink())
  for (const ip of ['198.51.100.11', '198.51.100.12', '198.51.100.13']) {
    links.addAddress(links.setUp('eth0'), ipBytes(ip), 32)
  }
  const identity = { hostname: 'server', namespace: '', node: 'lan', podIPs: [], env: {}, message: 'hello' }
  const server = new WhoamiServer({ netns: lan, identity, ports: [8080] })
  server.setBehaviour('serve')
  servers.push(server)

  cpSync(join(import.meta.dirname, '../../examples/standalone'), manifests, { recursive: true })
  const args = [
    '--proxy-mode=nftables',
    '--masquerade-all',
    `--manifests=${manifests}`,
    '--conntrack-max-per-core=0',
    '--oom-score-adj=0',
  ]
  proxy = box.enter(() => spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] }))
  for (const stream of [proxy.stdout, proxy.stderr]) stream?.on('data', (text: Buffer) => (log += text.toString()))
  await eventually('the service answers', answers, { withinMs: 20_000 })
})

afterAll(async () => {
  for (const server of servers) server.close()
  const ended = new Promise((resolve) => proxy.once('exit', resolve))
  proxy.kill('SIGTERM')
  await ended
  rmSync(folder, { recursive: true, force: true })
})

test('clients reach the servers of the example, which see the machine', async () => {
  const reply = await ask(client, address, 80)
  expect(reply).toMatchObject({ body: 'hello from server\n', client: '198.51.100.254' })
})

test('both servers of the example get their share', async () => {
  await eventually('both answer', async () => {
    const used = new Set<string>()
    for (let i = 0; i < 20; i++) used.add(await serverOf())
    return used.size === 2 ? undefined : [...used].join()
  })
})

test('processes of the machine reach the servers, too, by either address', async () => {
  expect(await ask(box, address, 80)).toMatchObject({ body: 'hello from server\n' })
  expect(await ask(box, '10.0.0.80', 80)).toMatchObject({ body: 'hello from server\n' })
})

test('an edit of the file takes effect', async () => {
  edit((text) =>
    text.replace(
      '  - addresses: [198.51.100.11]\n  - addresses: [198.51.100.12]\n',
      '  - addresses: [198.51.100.13]\n',
    ),
  )
  await eventually('the new server answers', async () => {
    const server = await serverOf()
    return server === '198.51.100.13' ? undefined : server
  })
})

test('a file that is replaced by another one takes effect', async () => {
  writeFileSync(join(folder, 'new.yaml'), readFileSync(file, 'utf8').replace('.13]', '.12]'))
  renameSync(join(folder, 'new.yaml'), file)
  await eventually('the new server answers', async () => {
    const server = await serverOf()
    return server === '198.51.100.12' ? undefined : server
  })
})

test('a mistake is reported with file, line and reason, and what was loaded stays', async () => {
  edit((text) => text.replace('[198.51.100.12]', '[198.51.100.512]'))
  const line =
    readFileSync(file, 'utf8')
      .split('\n')
      .findIndex((each) => each.includes('.512')) + 1
  const told = `${file}:${line}: endpoints[0].addresses[0]: must be an IPv4 address, not \\"198.51.100.512\\"`
  await eventually('the mistake is told', () => (log.includes(told) ? undefined : log.slice(-500)))
  expect(await serverOf()).toBe('198.51.100.12')
  edit((text) => text.replace('.512]', '.12]'))
})

test('a file that is deleted takes its services with it, and a new one brings others', async () => {
  const text = readFileSync(file, 'utf8')
  rmSync(file)
  await eventually('no backend answers', async () => ((await answers()) === undefined ? 'one does' : undefined))
  writeFileSync(join(manifests, 'other.yaml'), text.replace('- port: 80\n', '- port: 81\n'))
  await eventually('the other service answers', async () => {
    const reply = await ask(client, address, 81)
    return typeof reply === 'string' ? reply : undefined
  })
})

/** Connects a host to the box. The host's routes lead there. */
function connect(host: NetworkNamespace, ip: string, onBox: { name: string; address: string }): void {
  using links = box.enter(() => new Rtnetlink())
  using hostLinks = host.enter(() => new Rtnetlink())
  links.setUp('lo')
  hostLinks.setUp('lo')
  const index = links.addLink({ name: onBox.name, kind: { type: 'veth', peer: 'eth0', netns: host.fd } })
  links.addAddress(index, ipBytes(onBox.address), 24)
  const eth0 = hostLinks.setUp('eth0')
  hostLinks.addAddress(eth0, ipBytes(ip), 24)
  if (host !== client) return
  // The Internet is behind the clients; the servers' host has no way out.
  hostLinks.setRoute(anywhere, eth0, ipBytes(onBox.address))
  links.setRoute(anywhere, index, ipBytes(ip))
}

function edit(change: (text: string) => string): void {
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}

async function answers(): Promise<string | undefined> {
  const reply = await ask(client, address, 80)
  return typeof reply === 'string' ? `${reply}\n${log.slice(-2000)}` : undefined
}

/** The address of the server that answers. */
async function serverOf(): Promise<string> {
  const reply = await ask(client, address, 80, '/json')
  return typeof reply === 'string' ? reply : (JSON.parse(reply.body) as { serverIP: string }).serverIP
}
