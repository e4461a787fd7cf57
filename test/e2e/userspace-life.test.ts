// How the userspace mode starts, ends, starts again, and what it does with few rights.

import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually, staysQuiet } from '../support/eventually.ts'
import { listTables } from '../support/nft-tables.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import { dialFrom, mirror, readAll, serveStreams, sha256, type StreamServer } from '../support/netns/streams.ts'
import { patience } from '../support/patience.ts'
import { proxyCommand, proxyFlags, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const MIRROR_PORT = 9100
const TABLE = 'kube-proxy-userspace'

let rig: Rig
let server: StreamServer
let proxy: ProxyProcess
const web = aService({ type: 'NodePort', families: [4, 6], ports: [{ targetPort: MIRROR_PORT }] })
const others = Array.from({ length: 10 }, () => aService({ families: [4, 6] }))
const target = { address: web.spec.clusterIP, port: 80 }

beforeAll(async () => {
  rig = await openRig()
  server = await serveStreams(rig.network.pods.localB, MIRROR_PORT, mirror)
  for (const service of [web, ...others]) {
    rig.cluster.put(service, ...([4, 6] as const).map((family) => aSlice(service, ['localB'], { family })))
  }
})
afterEach(() => proxy[Symbol.asyncDispose]())
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

test.for(['SIGKILL', 'SIGTERM'] as const)('after %s a start opens the same listeners', async (signal) => {
  proxy = await start()
  const before = listeners()
  expect(before.length).toBeGreaterThanOrEqual(2 * (1 + others.length))
  const heard = await talk('hello')
  expect(heard).toBe('hello')
  await proxy.stop(signal)
  // The listeners of one that was killed are still in the rules; who ended well has taken these away.
  expect(listTables(rig.network.node).some((table) => table.endsWith(TABLE))).toBe(signal === 'SIGKILL')
  await proxy[Symbol.asyncDispose]()
  proxy = await start()
  expect(listeners()).toEqual(before)
  expect(await talk('hello again')).toBe('hello again')
})

test('SIGTERM leads no client here any more, lets a transfer come to its end, and then ends with the rules', async () => {
  proxy = await start()
  const words = randomBytes(200_000)
  const socket = dialFrom(rig.network.sources.localPod, target)
  const heard = readAll(socket)
  socket.write(words)
  await once(socket, 'data')
  proxy.signal('SIGTERM')
  await eventually('no client is led here', () => listeners().join('\n') || undefined)
  for (let i = 0; i < 10; i++) {
    socket.write(words)
    await sleep(50)
  }
  expect(proxy.ended).toBeUndefined()
  expect(proxy.log()).toContain('Waiting for connections to end')
  socket.end()
  expect(await heard).toMatchObject({ sha256: sha256(...Array.from({ length: 11 }, () => words)), code: '' })
  const asked = performance.now()
  expect(await proxy.exited).toBe('0')
  expect(performance.now() - asked).toBeLessThan(1000 * patience())
  expect(listTables(rig.network.node).filter((table) => table.endsWith(TABLE))).toEqual([])
})

test('SIGTERM waits for clients that have come and have no backend yet', async () => {
  proxy = await start()
  const node = rig.network.pods.localB
  node.run(
    'nft',
    ['-f', '-'],
    `table inet hang { chain in { type filter hook input priority 0; tcp dport ${MIRROR_PORT} drop; }; }`,
  )
  try {
    const socket = dialFrom(rig.network.sources.localPod, target)
    const heard = readAll(socket)
    socket.end('hello')
    await eventually('it has come', async () => {
      const metrics = await proxy.ask('/metrics')
      return /connections_total\{[^}]*\} 1$/m.test(metrics?.body ?? '') ? undefined : 'not yet'
    })
    proxy.signal('SIGTERM')
    await staysQuiet('it waits', () => proxy.ended)
    node.run('nft', ['delete', 'table', 'inet', 'hang'])
    expect(await heard).toMatchObject({ sha256: sha256(Buffer.from('hello')), code: '' })
    expect(await proxy.exited).toBe('0')
  } finally {
    node.run('nft', ['-f', '-'], 'table inet hang; delete table inet hang')
  }
})

test('SIGTERM with many services drains and takes the rules away, too', async () => {
  const many = Array.from({ length: 400 }, () => aService({ families: [4, 6] }))
  const objects = many.flatMap((service) => [
    service,
    ...([4, 6] as const).map((family) => aSlice(service, ['localB'], { family })),
  ])
  rig.cluster.put(...objects)
  try {
    proxy = await start()
    expect(listeners().length).toBeGreaterThan(2 * many.length)
    const socket = dialFrom(rig.network.sources.localPod, target)
    const heard = readAll(socket)
    socket.write('before')
    await once(socket, 'data')
    proxy.signal('SIGTERM')
    await eventually('it drains', () => (proxy.log().includes('Waiting for connections') ? undefined : proxy.log()))
    await eventually('no client is led here', () => listeners().join('\n') || undefined)
    socket.end(' and after')
    expect(await heard).toMatchObject({ sha256: sha256(Buffer.from('before and after')), code: '' })
    expect(await proxy.exited).toBe('0')
    expect(listTables(rig.network.node).filter((table) => table.endsWith(TABLE))).toEqual([])
  } finally {
    rig.cluster.remove(...objects)
  }
})

test('a second SIGTERM does not wait', async () => {
  proxy = await start()
  const socket = dialFrom(rig.network.sources.localPod, target)
  socket.write('x')
  await once(socket, 'data')
  proxy.signal('SIGTERM')
  await eventually('it has begun to end', () =>
    proxy.log().includes('Waiting for connections to end') ? undefined : proxy.log(),
  )
  await staysQuiet('it waits', () => proxy.ended)
  const asked = performance.now()
  proxy.signal('SIGTERM')
  expect(await proxy.exited).toBe('0')
  expect(performance.now() - asked).toBeLessThan(1000 * patience())
  expect(proxy.log()).toContain('Ending with open connections')
  expect(listTables(rig.network.node).filter((table) => table.endsWith(TABLE))).toEqual([])
  socket.destroy()
})

test('the limit of open files is raised where that is allowed', async () => {
  proxy = await start('prlimit', '--nofile=256:4096')
  expect(openFiles(proxy)).toBeGreaterThanOrEqual(4096)
})

test('where it is not, that is said; clients beyond it wait until others are done, and the process stays well', async () => {
  proxy = await start('prlimit', '--nofile=256:256', 'setpriv', '--bounding-set', '-sys_resource')
  expect(openFiles(proxy)).toBe(256)
  expect(proxy.log()).toContain('Few connections can be proxied')
  const clients = Array.from({ length: 250 }, (_, i) => {
    const socket = dialFrom(rig.network.sources.localPod, target)
    const heard = readAll(socket)
    socket.write(`client ${i}`)
    let isServed = false
    socket.once('data', () => (isServed = true))
    return { socket, heard, isServed: () => isServed, words: `client ${i}` }
  })
  const served = () => clients.filter(({ isServed }) => isServed()).length
  await eventually('it is full', () => (/Cannot accept connections/.test(proxy.log()) ? undefined : `${served()}`))
  await eventually('many are served', () => (served() > 40 ? undefined : `${served()}`))
  await staysQuiet('the others wait', () => (served() < 128 ? undefined : `${served()} are served`))
  expect((await proxy.health())?.status).toBe(200)
  expect((await proxy.ask('/metrics'))?.body).not.toMatch(/unserved_total\{[^}]*\} [1-9]/)
  // Changes are followed all the same: a service without endpoints is refused, which takes no file descriptor.
  const empty = aService()
  rig.cluster.put(empty)
  await eventually('a new service is known', async () => {
    const { kind } = await tcpProbe(
      rig.network.sources.localPod,
      { address: empty.spec.clusterIP, port: 80 },
      aShortWhile(),
    )
    return kind === 'refused' ? undefined : kind
  })
  for (const { socket, heard, words } of clients) {
    socket.end()
    expect(await heard).toMatchObject({ sha256: sha256(Buffer.from(words)), code: '' })
  }
  expect(served()).toBe(clients.length)
  expect(await talk('afterwards')).toBe('afterwards')
})

test('listeners beyond the limit are reported together, with what to do, and when it is over', async () => {
  const services = Array.from({ length: 150 }, () => aService())
  const slices = services.map((service) => aSlice(service, ['localB']))
  proxy = await start('prlimit', '--nofile=4096:4096', 'setpriv', '--bounding-set', '-sys_resource')
  const lines = (text: string) =>
    proxy
      .log()
      .split('\n')
      .filter((line) => line.includes(text))
  const closedListeners = async () => {
    const page = (await proxy.ask('/metrics'))?.body ?? ''
    return Number(/^kubeproxyts_userspace_closed_listeners\{ip_family="IPv4"\} (\d+)$/m.exec(page)?.[1])
  }
  try {
    setOpenFiles(proxy, '256:4096')
    rig.cluster.put(...services, ...slices)
    await eventually('listeners are missing, and that is logged', async () => {
      const closed = await closedListeners()
      return closed > 100 && lines('Cannot open listeners').length > 0 ? undefined : `${closed} are`
    })
    const said = lines('Cannot open listeners')
    // On a slow machine services come for longer than a moment.
    expect(said.length).toBeLessThanOrEqual(3)
    expect(said.at(-1)).toMatch(/listeners=\d+ first="\S+\/\S+" limit=256/)
    expect(lines('Cannot serve a service port')).toEqual([])
    expect((await proxy.ask('/statusz'))?.body).toMatch(
      /IPv4: \d+ listeners are missing, because too many files are open/,
    )
    setOpenFiles(proxy, '4096:4096')
    const isOver = () => (lines('All listeners are open').length === 1 ? undefined : proxy.logTail(5))
    await eventually('all are open', isOver, { withinMs: 10_000 })
    expect(await closedListeners()).toBe(0)
    const last = { address: services.at(-1)!.spec.clusterIP, port: 80 }
    expect((await tcpProbe(rig.network.sources.localPod, last)).kind).toBe('answered')
  } finally {
    rig.cluster.remove(...services, ...slices)
  }
  await rig.settled()
})

test('streams that stall at the limit leave file descriptors to the rest of the process', async () => {
  proxy = await start('prlimit', '--nofile=256:256', 'setpriv', '--bounding-set', '-sys_resource')
  const inherited = pipesOf(proxy)
  const words = Buffer.alloc(16 << 20)
  // They send, and do not read what comes back.
  const clients = Array.from({ length: 40 }, () => {
    const socket = dialFrom(rig.network.sources.localPod, target)
    socket.on('error', () => {})
    socket.pause()
    socket.write(words)
    return socket
  })
  let bytes = ''
  await eventually(
    'all have come to a halt',
    async () => {
      const before = bytes
      await sleep(500)
      bytes = (await proxy.ask('/metrics'))?.body.match(/userspace_sent_bytes_total\{.*/g)?.join() ?? 'no metrics'
      return bytes === before && bytes !== 'no metrics' ? undefined : bytes
    },
    { withinMs: 20_000 },
  )
  // Of the 192 that connections may take, pipes leave the last quarter to them.
  const pipes = pipesOf(proxy).filter((fd) => !inherited.includes(fd))
  expect(pipes.filter((fd) => Number(fd) >= 144)).toEqual([])
  for (let i = 0; i < 5; i++) expect((await proxy.health())?.status).toBe(200)
  expect(await talk('a newcomer')).toBe('a newcomer')
  for (const socket of clients) socket.destroy()
})

test('the death of a thread ends the process, says why, and the next start opens the same listeners', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'userspace-'))
  const killed = join(folder, 'killed')
  const fault = join(folder, 'fault.cjs')
  writeFileSync(
    fault,
    `const threads = require('node:worker_threads')
     const { receiveMessageOnPort } = threads
     if (!threads.isMainThread) threads.receiveMessageOnPort = (port) => {
       if (require('node:fs').existsSync('${killed}')) throw new Error('killed by a test')
       return receiveMessageOnPort(port)
     }
     require('node:module').syncBuiltinESMExports()`,
  )
  process.env['KUBE_PROXY_NODE_OPTIONS'] = `--require=${fault}`
  try {
    proxy = await start()
  } finally {
    delete process.env['KUBE_PROXY_NODE_OPTIONS']
  }
  try {
    const before = listeners()
    expect(await talk('hello')).toBe('hello')
    writeFileSync(killed, '')
    // Threads are told of this.
    const service = aService()
    const slice = aSlice(service, ['localB'])
    rig.cluster.put(service, slice)
    expect(await proxy.exited).toBe('1')
    expect(proxy.log()).toContain('a thread that carries connections failed: killed by a test')
    rig.cluster.remove(service, slice)
    await proxy[Symbol.asyncDispose]()
    proxy = await start()
    expect(listeners()).toEqual(before)
    expect(await talk('hello again')).toBe('hello again')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('when no port is left from which to reach a backend, that is not held against it, and it passes', async () => {
  const ports = 'net.ipv4.ip_local_port_range'
  const before = rig.network.node.run('sysctl', ['-n', ports]).trim()
  rig.network.node.run('sysctl', ['-w', `${ports}=41000 41099`])
  try {
    proxy = await start()
    const clients = Array.from({ length: 150 }, () => {
      const socket = dialFrom(rig.network.sources.localPod, target)
      const heard = readAll(socket)
      const served = new Promise<string>((resolve) => socket.once('data', () => resolve('served')))
      socket.write('x')
      return { socket, heard, first: Promise.race([served, heard.then(({ code }) => code)]) }
    })
    const firsts = await Promise.all(clients.map(({ first }) => first))
    const served = firsts.filter((first) => first === 'served').length
    // Some may be listeners.
    expect(served).toBeGreaterThan(40)
    expect(served).toBeLessThanOrEqual(100)
    expect(new Set(firsts)).toEqual(new Set(['served', 'ECONNRESET']))
    const metrics = (await proxy.ask('/metrics'))?.body
    expect(metrics).not.toMatch(/backend_failures_total\{[^}]*\} [1-9]/)
    expect(metrics).toMatch(new RegExp(`unserved_total\\{[^}]*${web.metadata.name}[^}]*\\} ${150 - served}$`, 'm'))
    expect(proxy.log()).toContain('EADDRNOTAVAIL')
    for (const { socket } of clients) socket.end()
    await Promise.all(clients.map(({ heard }) => heard))
    for (let i = 0; i < 100; i++) expect(await talk(`again ${i}`)).toBe(`again ${i}`)
  } finally {
    rig.network.node.run('sysctl', ['-w', `${ports}=${before}`])
  }
})

test('CAP_NET_ADMIN is all that it needs', async () => {
  proxy = await start('setpriv', '--inh-caps', '-all', '--bounding-set', '-all,+net_admin')
  expect(/CapEff:\s+(\w+)/.exec(readFileSync(`/proc/${proxy.pid}/status`, 'utf8'))?.[1]).toBe('0000000000001000')
  expect(await talk('hello')).toBe('hello')
})

test('without CAP_NET_ADMIN it does not start, and says what is missing', async () => {
  const restore = setCommand('setpriv', '--bounding-set', '-net_admin')
  const options = { netns: rig.network.node, mode: 'userspace', kubeconfig: rig.cluster.kubeconfig } as const
  proxy = new ProxyProcess(rig.network.node, proxyFlags(options))
  restore()
  expect(await proxy.exited).toBe('1')
  expect(proxy.log()).toMatch(/userspace.*CAP_NET_ADMIN/)
})

/** `soft:hard` */
function setOpenFiles({ pid }: ProxyProcess, limits: string): void {
  const { status, stderr } = spawnSync('prlimit', [`--pid=${pid}`, `--nofile=${limits}`], { encoding: 'utf8' })
  expect(status, stderr).toBe(0)
}

/** With a command that starts another: `prlimit ...`. */
async function start(...prefix: readonly string[]): Promise<ProxyProcess> {
  const restore = setCommand(...prefix)
  try {
    // Ports that the kernel gives to no connection: one of them could have the port of a listener when it is opened again.
    const args = ['--proxy-port-range=10000-29999']
    const options = { netns: rig.network.node, mode: 'userspace', kubeconfig: rig.cluster.kubeconfig, args } as const
    const started = await startProxy(options)
    await rig.settled()
    return started
  } finally {
    restore()
  }
}

function setCommand(...prefix: readonly string[]): () => void {
  const before = process.env['PROXY_COMMAND']
  process.env['PROXY_COMMAND'] = [...prefix, ...proxyCommand()].join(' ')
  return () => {
    if (before === undefined) delete process.env['PROXY_COMMAND']
    else process.env['PROXY_COMMAND'] = before
  }
}

async function talk(words: string): Promise<string> {
  const socket: Socket = dialFrom(rig.network.sources.localPod, target)
  let heard = ''
  socket.on('data', (data: Buffer) => (heard += data.toString()))
  socket.end(words)
  await readAll(socket)
  return heard
}

/** Every port that rules lead to, with what leads there. */
function listeners(): string[] {
  return ['ip', 'ip6'].flatMap((family) => {
    const text = rig.network.node.run('nft', ['list', 'table', family, TABLE])
    return (text.match(/[0-9a-f.:]+ \. (?:tcp|udp) \. \d+ : [0-9a-f.:]+ \. \d+/g) ?? []).toSorted()
  })
}

function pipesOf(of: ProxyProcess): string[] {
  return readdirSync(`/proc/${of.pid}/fd`).filter((fd) => isPipe(of, fd))
}

function isPipe({ pid }: ProxyProcess, fd: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('pipe:')
  } catch {
    // Closed meanwhile.
    return false
  }
}

function openFiles({ pid }: ProxyProcess): number {
  return Number(/Max open files\s+(\d+)/.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1])
}
