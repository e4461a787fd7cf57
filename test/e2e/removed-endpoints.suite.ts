// Connections to an endpoint that is removed, with real ones in every direction: whom a reset reaches, and whom it does not.

import { createServer, type Server, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBoundSocket } from '../../packages/sandbox/src/netns/sockets.ts'
import { ENDS_ANNOTATION } from '../../src/model/ends.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { Source } from '../conformance/packet-flow.ts'
import { node } from '../support/addresses.ts'
import { aName, aService, aSlice, type ApiService, type EndpointWish } from '../support/builders.ts'
import { eventually, staysQuiet } from '../support/eventually.ts'
import { openClient } from '../support/netns/sockets.ts'
import { type ProxyProcess, startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const PORT = 7070

/** One side of a connection, and what became of it: an error code, `closed`, or nothing yet. */
class Side {
  readonly socket: Socket
  end: string | undefined

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', ({ code }: NodeJS.ErrnoException) => (this.end ??= code ?? 'an error'))
    socket.on('close', () => (this.end ??= 'closed'))
    socket.resume()
  }
}

interface Pair {
  readonly client: Side
  readonly server: Side
}

export function testRemovedEndpoints(mode: ModeName): void {
  const reason = whyNotRun(mode)
  if (reason !== undefined) {
    test(`connections to removed endpoints in ${mode} mode`, ({ skip }) => skip(reason))
    return
  }
  let rig: Rig
  let proxy: ProxyProcess
  const servers: Server[] = []
  const accepted: Side[] = []

  beforeAll(async () => {
    rig = await openRig()
    for (const name of ['localB', 'remoteA'] as const) {
      const server = createServer((socket) => accepted.push(new Side(socket)))
      servers.push(server)
      const fd = openBoundSocket(rig.network.pods[name], 'tcp', PORT)
      await new Promise<void>((resolve) => server.listen({ fd }, resolve))
    }
    proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig })
    await rig.settled()
  })
  afterAll(async () => {
    for (const { socket } of accepted) socket.destroy()
    for (const server of servers) server.close()
    await proxy[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  async function connect(from: Source, to: { address: string; port: number }, fromPort?: number): Promise<Pair> {
    const count = accepted.length
    const fd = openClient(rig.network.sources[from], 'tcp', to, { port: fromPort })
    const client = new Side(new Socket({ fd, readable: true, writable: true }))
    client.socket.connect(to.port, to.address)
    await eventually('the connection is accepted', () =>
      accepted.length > count ? undefined : `not yet: ${client.end ?? 'silent'}`,
    )
    return { client, server: accepted[count]! }
  }

  function aResettingService(family: 4 | 6, words: string | undefined) {
    const service = aService({
      families: [family],
      type: 'NodePort',
      ports: [{ targetPort: PORT }],
      ...(words === undefined ? {} : { annotations: { [ENDS_ANNOTATION]: words } }),
    })
    const slice = aName('slice')
    return {
      service,
      clusterIp: { address: service.spec.clusterIP, port: 80 },
      nodePort: { address: node.ip[family], port: service.spec.ports[0]!.nodePort! },
      put: (...endpoints: readonly EndpointWish[]) => put(service, slice, endpoints),
      /** Without waiting for what comes of it. */
      remove: () => rig.cluster.put(aSlice(service, [], { name: slice })),
    }
  }

  async function put(service: ApiService, name: string, endpoints: readonly EndpointWish[]): Promise<void> {
    rig.cluster.put(service, aSlice(service, endpoints, { name }))
    await rig.settled()
  }

  const bothReset = ({ client, server }: Pair) =>
    eventually(
      'both sides are reset',
      () => (client.end !== undefined && server.end !== undefined ? undefined : `${client.end} and ${server.end}`),
      { withinMs: 20_000 },
    ).then(() => expect([client.end, server.end]).toEqual(['ECONNRESET', 'ECONNRESET']))

  describe.each([4, 6] as const)('over IPv%d', (family) => {
    test.each([
      ['localPod', 'clusterIp', 'localB'],
      ['localPod', 'clusterIp', 'remoteA'],
      ['remotePod', 'clusterIp', 'localB'],
      ['node', 'clusterIp', 'localB'],
      ['node', 'clusterIp', 'remoteA'],
      ['external', 'nodePort', 'localB'],
      ['external', 'nodePort', 'remoteA'],
    ] as const)('an idle connection from %s to the %s ends with %s, on both sides', async (from, at, pod) => {
      const annotated = aResettingService(family, 'reset')
      const plain = aResettingService(family, undefined)
      await annotated.put(pod)
      await plain.put(pod)
      const [pair, other] = [await connect(from, annotated[at]), await connect(from, plain[at])]
      await annotated.put()
      await plain.put()
      await bothReset(pair)
      expect([other.client.end, other.server.end]).toEqual([undefined, undefined])
      other.client.socket.destroy()
    })

    test.each(['client', 'server'] as const)('a connection on which the %s is busy ends, too', async (who) => {
      const { put: putEndpoints, clusterIp } = aResettingService(family, 'reset')
      await putEndpoints('localB')
      const pair = await connect('localPod', clusterIp)
      const timer = setInterval(() => pair[who].socket.write('x'.repeat(1000)), 2)
      try {
        await putEndpoints()
        await bothReset(pair)
      } finally {
        clearInterval(timer)
      }
    })

    test('it stays while the endpoint serves, and for so long as it may be terminating', async () => {
      const { put: putEndpoints, clusterIp } = aResettingService(family, 'reset after 4s')
      await putEndpoints('localB')
      const pair = await connect('localPod', clusterIp)
      await putEndpoints({ pod: 'localB', ready: false, serving: true, terminating: true })
      await sleep(5000)
      expect([pair.client.end, pair.server.end]).toEqual([undefined, undefined])
      await putEndpoints({ pod: 'localB', ready: false, serving: false, terminating: true })
      await sleep(2000)
      expect([pair.client.end, pair.server.end]).toEqual([undefined, undefined])
      await bothReset(pair)
    })

    test('an endpoint that is missing for a moment keeps its connections', async () => {
      const { put: putEndpoints, remove, clusterIp } = aResettingService(family, 'reset')
      await putEndpoints('localB')
      const pair = await connect('localPod', clusterIp)
      remove()
      await sleep(500)
      await putEndpoints('localB')
      await staysQuiet('nothing is reset', () => pair.client.end ?? pair.server.end, { forMs: 4000 })
      pair.client.socket.destroy()
    })

    test('a client that takes the same port again has a new connection', async () => {
      const { put: putEndpoints, clusterIp } = aResettingService(family, 'reset')
      await putEndpoints('localB')
      const pair = await connect('localPod', clusterIp, 9123)
      await putEndpoints('remoteA')
      await bothReset(pair)
      // By then the connection tracker has forgotten the first one.
      await sleep(1500)
      const again = await connect('localPod', clusterIp, 9123)
      again.client.socket.write('hello')
      await eventually('it is read', () => (again.server.socket.bytesRead === 5 ? undefined : `${again.client.end}`))
      await sleep(2000)
      expect([again.client.end, again.server.end]).toEqual([undefined, undefined])
      again.client.socket.destroy()
    })
  })

  test('nothing of it is left afterwards', async () => {
    await eventually(
      'the table is gone',
      () => (/kube-proxy-ends/.test(rig.network.node.run('nft', ['list', 'tables'])) ? 'not yet' : undefined),
      { withinMs: 45_000 },
    )
  })
}
