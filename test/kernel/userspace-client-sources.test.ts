// Backends see the client: what the connection tracker is told, and what becomes of a connection when it refuses.

import { execFileSync, spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { tryCall } from '../../src/system/libc.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { ClientSources } from '../../src/data-path/client-sources.ts'
import { openListener, openSocket, type PoolProtocol } from '../../src/data-path/sockets.ts'
import { SourcePorts } from '../../src/data-path/source-ports.ts'
import { encodeAddress } from '../../src/system/socket-address.ts'
import { eventually } from '../support/eventually.ts'
import { isRoot, loadWithNft } from '../support/nft.ts'

const node = '10.9.0.1'
const built = new URL('../../dist/src', import.meta.url).pathname

/** Two ports, for as many connections to one backend. */
function open(reserved: readonly number[] = []): { sources: ClientSources; warnings: string[] } {
  const warnings: string[] = []
  const ports = new SourcePorts(SourcePorts.createMemory(reserved), { first: 41_000, last: 41_001 })
  return { warnings, sources: new ClientSources(ports, (message) => warnings.push(message)) }
}

/** In place of a port: the socket must not connect. */
const SPENT = -1

/** Opens a socket that is to be seen as the client by the backend. Returns where it begins; 0: it is seen as the node. */
function connectAs(client: string, backend: string, sources: ClientSources, protocol: PoolProtocol = 'TCP') {
  const fd = openSocket(4, protocol)
  const addresses = {
    node: encodeAddress(node, 0),
    backend: encodeAddress(backend, 80),
    client: encodeAddress(client, 1),
  }
  const shown = sources.disguise(fd, { family: 4, protocol, ...addresses })
  return shown === 'spent' ? { fd, shown: undefined, port: SPENT } : { fd, shown, port: shown?.port ?? 0 }
}

function conntrackOf(port: number): string {
  return execFileSync('conntrack', ['-L', '-p', 'tcp', '--orig-port-src', `${port}`], {
    stdio: ['ignore', 'pipe', 'ignore'],
  }).toString()
}

/** Flows from this port: `to backend, answers to client`. */
function flows(port: number): string[] {
  return conntrackOf(port)
    .split('\n')
    .flatMap((line) => {
      const [, to, seenAs] = /dst=(\S+).* dst=(\S+)/.exec(line) ?? []
      return to === undefined ? [] : [`${to} sees ${seenAs}`]
    })
    .toSorted()
}

describe.skipIf(!isRoot)('ClientSources (needs root)', () => {
  beforeAll(() => {
    unshareNetwork()
    execFileSync('ip', ['link', 'set', 'lo', 'up'])
    loadWithNft(`table ip tracked {
      chain o { type nat hook output priority -100; }
      chain p { type nat hook postrouting priority 100; }
      chain f { type filter hook output priority 0; ct state invalid drop; }
    }`)
    for (const address of [node, '10.9.1.1', '10.9.1.2', '10.9.9.1', '10.9.9.7'])
      execFileSync('ip', ['address', 'add', address, 'dev', 'lo'])
  })

  it('gives each connection a port of its own, and shares ports when there are none left', async () => {
    const { sources, warnings } = open()
    const first = [connectAs('10.9.9.1', '10.9.1.1', sources), connectAs('10.9.9.2', '10.9.1.1', sources)]
    expect(new Set(first.map(({ port }) => port))).toEqual(new Set([41_000, 41_001]))
    // The same ports can serve another backend, but not the same one.
    const second = [connectAs('10.9.9.3', '10.9.1.2', sources), connectAs('10.9.9.4', '10.9.1.2', sources)]
    expect(new Set(second.map(({ port }) => port))).toEqual(new Set([41_000, 41_001]))
    expect([...flows(41_000), ...flows(41_001)].toSorted()).toEqual([
      '10.9.1.1 sees 10.9.9.1',
      '10.9.1.1 sees 10.9.9.2',
      '10.9.1.2 sees 10.9.9.3',
      '10.9.1.2 sees 10.9.9.4',
    ])
    const third = connectAs('10.9.9.5', '10.9.1.1', sources)
    expect(third.port).toBe(0)
    expect(warnings).toEqual(['Cannot show clients to backends, they see this node: no source port was found free'])
    // No other flow was touched for it.
    expect([...flows(41_000), ...flows(41_001)]).toHaveLength(4)
    // Connections that have ended make room.
    const backend = encodeAddress('10.9.1.1', 80)
    tryCall('connect', first[0]!.fd, backend, backend.length)
    await eventually('it was refused', () => (flows(first[0]!.port).length === 1 ? undefined : 'the tracker knows it'))
    for (const { fd, shown } of [first[0]!, ...second]) {
      tryCall('close', fd)
      sources.lingers(shown)
    }
    const fourth = connectAs('10.9.9.6', '10.9.1.1', sources)
    expect(fourth.port).toBe(first[0]!.port)
    expect(flows(fourth.port)).toContain('10.9.1.1 sees 10.9.9.6')
    expect(flows(fourth.port)).not.toContain('10.9.1.1 sees 10.9.9.1')
    expect(warnings).toHaveLength(1)
    for (const { fd } of [first[1]!, third, fourth]) tryCall('close', fd)
    sources.dispose()
    execFileSync('conntrack', ['-F'], { stdio: 'ignore' })
  })

  it('leaves a connection alone that another process has, and takes its port when it has ended', async () => {
    const warnings: string[] = []
    const process = (last: number) => {
      const ports = new SourcePorts(SourcePorts.createMemory(), { first: 41_500, last })
      return new ClientSources(ports, (message) => warnings.push(message))
    }
    const server = createServer((socket) => socket.on('data', () => socket.end('bye')))
    await new Promise<void>((resolve) => void server.listen(80, '10.9.1.1', resolve))
    const old = connectAs('10.9.9.7', '10.9.1.1', process(41_500))
    const backend = encodeAddress('10.9.1.1', 80)
    tryCall('connect', old.fd, backend, backend.length)
    const stateOf = () => /(\S+) src=/.exec(conntrackOf(41_500))?.[1]
    await eventually('it is open', () => (stateOf() === 'ESTABLISHED' ? undefined : conntrackOf(41_500)))
    const next = process(41_500)
    // Connected, it would be taken for the other client. The next socket may have more luck.
    expect(connectAs('10.9.9.8', '10.9.1.1', next).port).toBe(SPENT)
    const either = process(41_501)
    await eventually('a socket has luck', () => {
      const { port } = connectAs('10.9.9.8', '10.9.1.1', either)
      return port === 41_501 ? undefined : `it began at ${port}`
    })
    expect(flows(41_500)).toEqual(['10.9.1.1 sees 10.9.9.7'])
    // It still works.
    tryCall('send', old.fd, Buffer.from('well?'), 5, 0)
    const SHUT_WR = 1
    tryCall('shutdown', old.fd, SHUT_WR)
    await eventually('it has ended', () => (stateOf() === 'TIME_WAIT' ? undefined : conntrackOf(41_500)))
    tryCall('close', old.fd)
    const own = connectAs('10.9.9.8', '10.9.1.1', next)
    expect(own.port).toBe(41_500)
    expect(flows(41_500)).toEqual(['10.9.1.1 sees 10.9.9.8'])
    // What it has begun itself it replaces without a look, whether the tracker still knows it or not.
    tryCall('close', own.fd)
    next.lingers(own.shown)
    const second = connectAs('10.9.9.9', '10.9.1.1', next)
    expect(flows(41_500)).toEqual(['10.9.1.1 sees 10.9.9.9'])
    tryCall('close', second.fd)
    next.over(second.shown)
    expect(connectAs('10.9.9.8', '10.9.1.1', next).port).toBe(41_500)
    expect(flows(41_500)).toEqual(['10.9.1.1 sees 10.9.9.8'])
    expect(warnings).toEqual([])
    server.close()
  })

  it('takes no UDP client for one of a process that was killed', () => {
    const process = () => {
      const ports = new SourcePorts(SourcePorts.createMemory(), { first: 41_600, last: 41_600 })
      return new ClientSources(ports, () => {})
    }
    const killed = connectAs('10.9.9.1', '10.9.1.1', process(), 'UDP')
    tryCall('close', killed.fd)
    const next = process()
    expect(connectAs('10.9.9.2', '10.9.1.1', next, 'UDP').port).toBe(SPENT)
    expect(connectAs('10.9.9.2', '10.9.1.2', next, 'UDP').port).toBe(41_600)
    next.dispose()
    execFileSync('conntrack', ['-F'], { stdio: 'ignore' })
  })

  it('passes over ports that are reserved, or that another socket listens on', () => {
    const listener = openListener({ family: 4, protocol: 'TCP', address: node, port: 41_001 })!
    const { sources } = open()
    const one = connectAs('10.9.9.1', '10.9.1.1', sources)
    expect(one.port).toBe(41_000)
    const reserving = open([41_000])
    const other = connectAs('10.9.9.2', '10.9.1.1', reserving.sources, 'UDP')
    expect(other.port).toBe(41_001)
    for (const fd of [listener.fd, one.fd, other.fd]) tryCall('close', fd)
    for (const each of [sources, reserving.sources]) each.dispose()
    execFileSync('conntrack', ['-F'], { stdio: 'ignore' })
  })

  it('lets the backend see this node, and says so, when the connection tracker refuses', () => {
    const script = `
      const { ClientSources } = await import('${built}/data-path/client-sources.js')
      const { SourcePorts } = await import('${built}/data-path/source-ports.js')
      const { openSocket } = await import('${built}/data-path/sockets.js')
      const { encodeAddress } = await import('${built}/system/socket-address.js')
      const ports = new SourcePorts(SourcePorts.createMemory(), { first: 41_000, last: 41_001 })
      const sources = new ClientSources(ports, (message) => console.log(message))
      const [node, backend, client] = ['${node}', '10.9.1.1', '10.9.9.1'].map((ip) => encodeAddress(ip, 80))
      console.log('' + sources.disguise(openSocket(4, 'TCP'), { family: 4, protocol: 'TCP', node, backend, client }))`
    const command = ['--bounding-set', '-net_admin', process.execPath, '--input-type=module', '-e', script]
    const { stdout, stderr } = spawnSync('setpriv', command, { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(stdout.split('\n')).toEqual([
      'Cannot show clients to backends, they see this node: the connection tracker says EPERM',
      'undefined',
      '',
    ])
  })
})
