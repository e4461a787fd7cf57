// The userspace mode under load and with backends that misbehave: nothing is lost that a client would not have lost
// directly, and nothing of it stays behind in the process.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { node, pods, type PodName } from '../support/addresses.ts'
import { aService, aSlice, type ApiService } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { openUdp, tcpProbe, type Target } from '../support/netns/probe.ts'
import {
  dialFrom,
  mirror,
  readAll,
  serveStreams,
  sha256,
  type StreamServer,
  writeAll,
} from '../support/netns/streams.ts'
import { startProxy, type ProxyProcess } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import type { Netns } from '../support/netns/netns.ts'
import type { Socket } from 'node:net'

const MIRROR_PORT = 9100
const UDP_TIMEOUT_MS = 600
const MOST_PIPES_KEPT = 64
const backends = ['localB', 'localC', 'remoteA'] as const satisfies readonly PodName[]

let rig: Rig
let proxy: ProxyProcess
let clients: readonly Netns[]
let firstFds: ReturnType<typeof countFds>
const mirrors: StreamServer[] = []
const mirrored = aService({ families: [4, 6], ports: [{ targetPort: MIRROR_PORT }] })

beforeAll(async () => {
  rig = await openRig()
  const { sources, pods: inPods } = rig.network
  clients = [sources.localPod, sources.external, sources.node, sources.remotePod]
  for (const name of backends) mirrors.push(await serveStreams(inPods[name], MIRROR_PORT, mirror))
  mirrors.push(await serveStreams(rig.network.node, MIRROR_PORT, mirror))
  putMirrors(backends)
  proxy = await startProxy({
    netns: rig.network.node,
    mode: 'userspace',
    kubeconfig: rig.cluster.kubeconfig,
    args: [`--udp-timeout=${UDP_TIMEOUT_MS}ms`],
  })
  await rig.settled()
  firstFds = countFds()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  for (const server of mirrors) await server[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

describe('load', () => {
  test('a thousand connections at once, each with its own words', async () => {
    const before = await metrics(mirrored)
    const talks = Array.from({ length: 1000 }, async (_, i) => {
      const address = mirrored.spec.clusterIPs[i % 2]!
      const socket = dialFrom(clients[i % clients.length]!, { address, port: 80 })
      const words = [randomBytes(1000 + i), randomBytes(30_000)] as const
      const heard = readAll(socket)
      socket.write(words[0])
      await once(socket, 'data')
      return { socket, words, heard }
    })
    const all = await Promise.all(talks)
    expect((await metrics(mirrored)).active_connections).toBe(1000)
    for (const { socket, words } of all) socket.end(words[1])
    for (const { words, heard } of all) expect(await heard).toMatchObject({ sha256: sha256(...words), code: '' })
    const after = await metrics(mirrored)
    expect(after.connections_total - before.connections_total).toBe(1000)
    expect(after).toMatchObject({ backend_failures_total: 0, unserved_total: 0 })
  })

  test('a service that had no client has no series of metrics', async () => {
    const { service, done } = await serve(['localA'], MIRROR_PORT)
    const page = (await proxy.ask('/metrics'))!.body
    expect(page).toContain('kubeproxyts_change_duration_seconds_count')
    expect(page).not.toContain(`/${service.metadata.name}/`)
    done()
  })

  test('transfers of 100 MB both ways at once arrive whole, while backends come and go', async () => {
    const bytes = randomBytes(1 << 20)
    const changing = new AbortController()
    const changes = comeAndGo(changing.signal)
    const before = threadTimes()
    await Promise.all(
      clients.slice(0, 3).map(async (netns, i) => {
        const socket = dialFrom(netns, { address: mirrored.spec.clusterIPs[i % 2]!, port: 80 })
        const [sent, heard] = await Promise.all([writeAll(socket, bytes, 100_000_000 + i), readAll(socket)])
        expect(heard).toEqual({ length: 100_000_000 + i, sha256: sent, code: '' })
        socket.destroy()
      }),
    )
    changing.abort()
    expect(await changes).toBeGreaterThan(5)
    // One thread keeps the listeners; streams like these are shared.
    const busy = [...threadTimes()].filter(([thread, ticks]) => ticks - (before.get(thread) ?? 0) >= 3)
    expect(busy.length).toBeGreaterThanOrEqual(2)
  })
})

describe('backends that misbehave', () => {
  test('refusing and hanging ones are passed over for all clients, and left alone', async () => {
    const service = aService({ ports: [{ targetPort: MIRROR_PORT }] })
    const hang = block(rig.network.pods.localC, MIRROR_PORT)
    // No server listens in this pod.
    const slice = aSlice(service, ['localA', 'localC', 'remoteA'])
    rig.cluster.put(service, slice)
    await rig.settled()
    const words = randomBytes(5000)
    const answers = Array.from({ length: 60 }, async (_, i) => {
      const socket = dialFrom(clients[i % clients.length]!, { address: service.spec.clusterIP, port: 80 })
      socket.end(words)
      expect(await readAll(socket)).toEqual({ length: words.length, sha256: sha256(words), code: '' })
    })
    await Promise.all(answers)
    const { retries_total, backend_failures_total, unserved_total, resting_backends } = await metrics(service)
    expect(retries_total).toBeGreaterThanOrEqual(2)
    expect(backend_failures_total).toBe(retries_total)
    expect(unserved_total).toBe(0)
    expect(resting_backends).toBe(2)
    const status = await proxy.ask('/statusz')
    expect(status?.body).toMatch(new RegExp(`${pods.localC.ip[4]}:${MIRROR_PORT}: failures=\\d+, left alone for`))
    // A rest ends, and a backend that has recovered is used again.
    hang[Symbol.dispose]()
    await eventually(
      'the backend that hung is used again',
      async () => {
        const before = mirrors[1]!.seen
        const socket = dialFrom(clients[0]!, { address: service.spec.clusterIP, port: 80 })
        socket.end('x')
        await readAll(socket)
        return mirrors[1]!.seen > before ? undefined : `resting: ${(await metrics(service)).resting_backends}`
      },
      { withinMs: 5000 },
    )
    rig.cluster.remove(service, slice)
  })

  test.for<[string, (socket: Socket) => void]>([
    [
      'resets half way',
      (socket) => socket.write(Buffer.alloc(300_000, 'r'), () => void setTimeout(() => socket.resetAndDestroy(), 100)),
    ],
    ['closes half way', (socket) => socket.end(Buffer.alloc(300_000, 'c'))],
    ['resets at once', (socket) => socket.resetAndDestroy()],
    ['closes without a word', (socket) => socket.end()],
    ['closes with words unread', (socket) => void setTimeout(() => socket.destroy(), 50)],
  ])('a client of one that %s sees what it would see directly', async ([, behave], { task }) => {
    const port = 9200
    await using server = await serveStreams(rig.network.pods.localB, port, (socket) => {
      socket.pause()
      behave(socket)
    })
    const { service, done } = await serve(['localB'], port)
    const see = async (to: Target) => {
      const socket = dialFrom(clients[0]!, to)
      const heard = readAll(socket)
      socket.write('hello')
      const { length, code } = await heard
      // A client that is still there notices what became of the other direction when it goes on.
      await sleep(20)
      socket.destroy()
      return { length, code }
    }
    const directly = await see({ address: pods.localB.ip[4], port })
    const proxied = await see({ address: service.spec.clusterIP, port: 80 })
    expect(proxied, task.name).toEqual(directly)
    // A client that is cut off before a word was said may be tried again.
    expect(server.seen).toBeGreaterThanOrEqual(2)
    done()
  })

  test('a slow one slows its client down, and gets everything', async () => {
    const port = 9201
    let heardByBackend = ''
    let goOn = () => {}
    await using server = await serveStreams(rig.network.pods.localB, port, (socket) => {
      socket.pause()
      goOn = () => {
        socket.resume()
        void readAll(socket).then(({ sha256: sum }) => {
          heardByBackend = sum
          socket.end('thanks')
        })
      }
    })
    const { service, done } = await serve(['localB'], port)
    const socket = dialFrom(clients[0]!, { address: service.spec.clusterIP, port: 80 })
    const writing = writeAll(socket, randomBytes(1 << 20), 64_000_000)
    let taken = 0
    await eventually(
      'the client waits',
      () => {
        const before = taken
        taken = socket.bytesWritten - socket.writableLength
        return taken > 0 && taken === before ? undefined : `${taken} bytes are taken`
      },
      { everyMs: 200 },
    )
    expect(taken).toBeLessThan(32_000_000)
    goOn()
    const heard = readAll(socket)
    const sum = await writing
    expect((await heard).length).toBe('thanks'.length)
    expect(heardByBackend).toBe(sum)
    expect(server.seen).toBe(1)
    socket.destroy()
    done()
  })

  test('one direction ends, the other goes on', async () => {
    const port = 9202
    // Ends its own direction at once, tells on a second connection what it heard on the first.
    const heardByBackend: string[] = []
    await using server = await serveStreams(rig.network.pods.localB, port, (socket) => {
      socket.write('first')
      socket.end()
      void readAll(socket).then(({ sha256: sum }) => heardByBackend.push(sum))
    })
    const { service, done } = await serve(['localB'], port)
    const socket = dialFrom(clients[1]!, { address: service.spec.clusterIP, port: 80 })
    expect((await readAll(socket)).length).toBe('first'.length)
    const sum = await writeAll(socket, randomBytes(100_000), 2_000_000)
    await eventually('the backend has heard the rest', () => (heardByBackend[0] === sum ? undefined : 'not yet'))
    expect(server.seen).toBe(1)
    done()
  })

  test('one that flaps loses no client, and open connections live on', async () => {
    const flapping = rig.network.pods[backends[0]]
    const address = mirrored.spec.clusterIPs[0]!
    const open = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const socket = dialFrom(clients[0]!, { address, port: 80 })
        socket.write('x')
        await once(socket, 'data')
        return socket
      }),
    )
    const ending = new AbortController()
    const losses: string[] = []
    const done = { connections: 0 }
    const load = clients.map(async (netns) => {
      while (!ending.signal.aborted) {
        const words = randomBytes(2000)
        const socket = dialFrom(netns, { address, port: 80 })
        socket.end(words)
        const heard = await readAll(socket)
        socket.destroy()
        done.connections++
        if (heard.sha256 !== sha256(words)) losses.push(JSON.stringify(heard))
      }
    })
    for (let i = 0; i < 10 || done.connections <= 50; i++) {
      // A client that has been let in stays; a server that closes its port would cut off those in its queue, directly as well.
      const away = block(flapping, MIRROR_PORT, i % 2 === 0 ? 'reject with tcp reset' : 'drop')
      await sleep(100)
      away[Symbol.dispose]()
      await sleep(100)
    }
    ending.abort()
    await Promise.all(load)
    expect(losses).toEqual([])
    for (const socket of open) {
      socket.end('still here')
      expect((await readAll(socket)).length).toBe('still here'.length)
    }
  })
})

test('affinity moves with a retry, and stays where it moved', async () => {
  const service = aService({
    spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } },
  })
  const slice = aSlice(service, ['localB', 'localC'])
  rig.cluster.put(service, slice)
  await rig.settled()
  const host = async () => {
    const answer = await tcpProbe(clients[1]!, { address: service.spec.clusterIP, port: 80 })
    return answer.kind === 'answered' ? (answer.greeting.host as PodName) : expect.fail(answer.kind)
  }
  const first = await host()
  for (let i = 0; i < 3; i++) expect(await host()).toBe(first)
  const hang = block(rig.network.pods[first], 8080)
  const second = await host()
  expect(second).not.toBe(first)
  hang[Symbol.dispose]()
  for (let i = 0; i < 4; i++) expect(await host()).toBe(second)
  rig.cluster.remove(service, slice)
})

test('backends on the host network are reached from pods, from outside and from the node', async () => {
  const service = aService({ families: [4, 6], ports: [{ targetPort: MIRROR_PORT }] })
  const slices = ([4, 6] as const).map((family) =>
    aSlice(service, [{ address: node.ip[family], nodeName: node.name }], { family }),
  )
  rig.cluster.put(service, ...slices)
  await rig.settled()
  for (const netns of clients) {
    for (const address of service.spec.clusterIPs) {
      const socket = dialFrom(netns, { address, port: 80 })
      socket.end('hello')
      expect(await readAll(socket), `${netns.name} to ${address}`).toMatchObject({ length: 5, code: '' })
    }
  }
  rig.cluster.remove(service, ...slices)
})

test(`UDP: a client keeps its socket to the backend until it has been silent for --udp-timeout`, async () => {
  const service = aService({ families: [4, 6], ports: [{ protocol: 'UDP' }] })
  const slices = ([4, 6] as const).map((family) => aSlice(service, ['localB', 'localC'], { family }))
  rig.cluster.put(service, ...slices)
  await rig.settled()
  for (const address of service.spec.clusterIPs) {
    // The node's own clients are seen as the node, and at the port of their socket to the backend.
    const flow = await openUdp(rig.network.node, { address, port: 80 })
    const ask = async () => {
      const answer = await flow.say('hello')
      return answer.kind === 'answered' ? `${answer.greeting.host} ${answer.greeting.seenPort}` : answer.kind
    }
    let askedAt = performance.now()
    let first = await ask()
    for (let kept = 0; kept < 5;) {
      await sleep(UDP_TIMEOUT_MS / 3)
      const lastAskedAt = askedAt
      askedAt = performance.now()
      const answer = await ask()
      // On a busy machine this process may have been silent for longer than it meant to.
      const isInTime = performance.now() - lastAskedAt < UDP_TIMEOUT_MS
      if (isInTime) expect(answer).toBe(first)
      if (isInTime) kept++
      first = answer
    }
    await sleep(UDP_TIMEOUT_MS * 1.5)
    expect(await ask()).not.toBe(first)
    flow.close()
  }
  rig.cluster.remove(service, ...slices)
})

test('a UDP flow stays with its backend when endpoints are added, also after a pause, and leaves it when it goes', async () => {
  const service = aService({ ports: [{ protocol: 'UDP' }] })
  const slice = (names: readonly PodName[]) => aSlice(service, names, { name: `${service.metadata.name}-only` })
  const put = (names: readonly PodName[]) => rig.cluster.put(service, slice(names))
  put(['localB'])
  await rig.settled()
  for (const netns of [rig.network.node, rig.network.sources.localPod]) {
    put(['localB'])
    await rig.settled()
    const flow = await openUdp(netns, { address: service.spec.clusterIP, port: 80 })
    const ask = async () => {
      const answer = await flow.say('hello')
      return answer.kind === 'answered' ? answer.greeting.host : answer.kind
    }
    const first = await ask()
    put(['localC', 'localB', 'remoteA'])
    await rig.settled()
    for (let i = 0; i < 3; i++) {
      expect(await ask()).toBe(first)
      await sleep(UDP_TIMEOUT_MS * 1.5)
    }
    put(['localC', 'remoteA'])
    await rig.settled()
    const moved = await ask()
    expect(['silent', first]).not.toContain(moved)
    flow.close()
  }
  rig.cluster.remove(service, slice([]))
})

test('a UDP flow stays with its backend when the traffic policy changes, and is led elsewhere when that goes', async () => {
  const service = aService({ ports: [{ protocol: 'UDP' }] })
  const slice = (names: readonly PodName[]) => aSlice(service, names, { name: `${service.metadata.name}-only` })
  const put = async (internalTrafficPolicy: 'Cluster' | 'Local', ...names: readonly PodName[]) => {
    rig.cluster.put({ ...service, spec: { ...service.spec, internalTrafficPolicy } }, slice(names))
    await rig.settled()
  }
  const open = async () => {
    const flow = await openUdp(rig.network.sources.localPod, { address: service.spec.clusterIP, port: 80 })
    const ask = async () => {
      const answer = await flow.say('hello')
      return answer.kind === 'answered' ? answer.greeting.host : answer.kind
    }
    return { ask, [Symbol.dispose]: () => flow.close() }
  }
  await put('Cluster', 'remoteA')
  using old = await open()
  const first = await old.ask()
  await put('Local', 'remoteA', 'localB')
  for (let i = 0; i < 3; i++) expect(await old.ask()).toBe(first)
  using fresh = await open()
  const second = await fresh.ask()
  expect(['silent', 'refused', first]).not.toContain(second)
  await put('Local', 'localB')
  await eventually('the flow has moved', async () => ((await old.ask()) === second ? undefined : 'not yet'))
  await put('Cluster', 'localB', 'remoteA')
  for (let i = 0; i < 3; i++) expect([await old.ask(), await fresh.ask()]).toEqual([second, second])
  rig.cluster.remove(service, slice([]))
})

// The last one: looks at what the others have left.
test('nothing is left of it all: no connection, no file descriptor', async () => {
  await eventually(
    'all connections have ended',
    async () => {
      const { active_connections } = await metrics(mirrored)
      return active_connections === 0 ? undefined : `${active_connections}`
    },
    { withinMs: 10_000 },
  )
  await rig.settled()
  // A thread may have a socket of each family ready for the next connection.
  const most = firstFds.sockets + 2 * firstFds.threads
  let before = countFds()
  await eventually('no socket of the other tests is left', () => {
    before = countFds()
    return before.sockets <= most ? undefined : `${before.sockets} instead of at most ${most}`
  })
  // The same again costs nothing more.
  await Promise.all(
    Array.from({ length: 300 }, async (_, i) => {
      const socket = dialFrom(clients[i % clients.length]!, { address: mirrored.spec.clusterIPs[i % 2]!, port: 80 })
      socket.end(randomBytes(200_000))
      await readAll(socket)
      if (i % 3 === 0) socket.resetAndDestroy()
    }),
  )
  let polls = 0
  await eventually(
    'file descriptors are no more than before',
    async () => {
      const { sockets } = countFds()
      // Fewer, when the last UDP flow of the other tests had just ended its time.
      if (sockets <= before.sockets) return undefined
      // Whether a socket is ready for the next connection of a family depends on how the last ones came.
      const socket = dialFrom(clients[0]!, { address: mirrored.spec.clusterIPs[polls++ % 2]!, port: 80 })
      socket.end('x')
      await readAll(socket)
      return `${sockets} instead of ${before.sockets}`
    },
    { withinMs: 10_000 },
  )
  expect(countFds().pipes).toBeLessThanOrEqual(firstFds.pipes + 2 * MOST_PIPES_KEPT * firstFds.threads)
  expect(proxy.ended).toBeUndefined()
  expect(proxy.log()).not.toMatch(/Cannot|panic|Unexpected/)
})

/** The mirrored service has these backends, in both families. */
function putMirrors(names: readonly PodName[]): void {
  for (const family of [4, 6] as const) {
    rig.cluster.put(mirrored, aSlice(mirrored, names, { family, name: `mirrors-${family}` }))
  }
}

/** Takes backends away and brings them back until it is aborted; one stays. Returns how often. */
async function comeAndGo(signal: AbortSignal): Promise<number> {
  let changes = 0
  for (; !signal.aborted; changes++) {
    putMirrors([backends[changes % backends.length]!])
    await sleep(40)
  }
  putMirrors(backends)
  await rig.settled()
  return changes
}

/** A service of its own for one test. */
async function serve(
  names: readonly PodName[],
  targetPort: number,
): Promise<{ service: ApiService; done: () => void }> {
  const service = aService({ ports: [{ targetPort }] })
  const slice = aSlice(service, names)
  rig.cluster.put(service, slice)
  await rig.settled()
  return { service, done: () => rig.cluster.remove(service, slice) }
}

/** New connections to this port are dropped, or rejected, in the namespace. */
function block(netns: Netns, port: number, verdict: 'drop' | 'reject with tcp reset' = 'drop'): Disposable {
  const rule = `tcp dport ${port} tcp flags & (syn | ack) == syn ${verdict}`
  netns.run('nft', ['-f', '-'], `table inet block { chain in { type filter hook input priority 0; ${rule}; }; }`)
  return { [Symbol.dispose]: () => void netns.run('nft', ['delete', 'table', 'inet', 'block']) }
}

const METRICS = [
  'connections_total',
  'active_connections',
  'retries_total',
  'backend_failures_total',
  'unserved_total',
  'resting_backends',
] as const

/** What the program says about a service, of both families. */
async function metrics({ metadata }: ApiService): Promise<Record<(typeof METRICS)[number], number>> {
  const answer = await proxy.ask('/metrics')
  const lines = (answer?.body ?? '').split('\n')
  const values = METRICS.map((name) => {
    const ours = lines.filter(
      (line) => line.startsWith(`kubeproxyts_userspace_${name}{`) && line.includes(`/${metadata.name}/`),
    )
    return [name, ours.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)] as const
  })
  return Object.fromEntries(values) as Record<(typeof METRICS)[number], number>
}

function countFds(): { sockets: number; pipes: number; threads: number } {
  const folder = `/proc/${proxy.pid}/fd`
  const links = readdirSync(folder).flatMap((fd) => {
    try {
      return [readlinkSync(`${folder}/${fd}`)]
    } catch {
      return []
    }
  })
  const of = (kind: string) => links.filter((link) => link.startsWith(kind)).length
  return { sockets: of('socket:'), pipes: of('pipe:'), threads: threadTimes().size }
}

/** The time on a processor of each thread of the process, in hundredths of a second. */
function threadTimes(): Map<string, number> {
  const folder = `/proc/${proxy.pid}/task`
  return new Map(
    readdirSync(folder).map((thread) => {
      const fields = readFileSync(`${folder}/${thread}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return [thread, Number(fields[11]) + Number(fields[12])] as const
    }),
  )
}
