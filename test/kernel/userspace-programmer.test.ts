// The userspace mode in a real kernel: listeners, the rules that lead to them, and what becomes of both.

import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { nextTurn } from '../../src/lib/next-turn.ts'
import { formatIp, joinHostPort, asBytes } from '../../src/lib/ip.ts'
import { BackendList } from '../../src/model/backend-list.ts'
import type { PortRange } from '../../src/data-path/port-range.ts'
import type { Backend, Frontend, Policy, Route, ServicePortView } from '../../src/model/types.ts'
import { USERSPACE_TABLE } from '../../src/modes/userspace/plan/planner.ts'
import type { MissingNow } from '../../src/modes/userspace/missing-listeners.ts'
import { UserspaceProgrammer } from '../../src/modes/userspace/programmer.ts'
import { Listeners } from '../../src/data-path/listeners.ts'
import { openListener } from '../../src/data-path/sockets.ts'
import { aNodeView } from '../support/arbitrary-views.ts'
import { anEchoBackend, aUdpBackend, type TestBackend } from '../support/backends.ts'
import { FinishingProgrammer } from '../support/finishing-programmer.ts'
import { eventually } from '../support/eventually.ts'
import { InlineDataPath } from '../support/inline-data-path.ts'
import { isRoot, nft } from '../support/nft.ts'
import { patience } from '../support/patience.ts'

const node = aNodeView()
const otherAddress = '10.200.1.11'
const ephemeral = { first: 45_000, last: 46_000 }

function ip(...args: string[]): void {
  execFileSync('ip', args)
}

/** A service port with a cluster IP and, of the same backends, an external IP. */
function aView(index: number, list: readonly Backend[], protocol: 'TCP' | 'UDP' = 'TCP'): ServicePortView {
  const backends = BackendList.of(list)
  const verdict: Route['verdict'] =
    backends.length === 0 ? { kind: 'reject', reason: 'has no endpoints' } : { kind: 'to', policy: 'Cluster', backends }
  const route = (masquerade: boolean): Route => ({ verdict, masquerade: masquerade && backends.length > 0 })
  const frontend = (kind: Frontend['kind'], address: string): Frontend => ({
    kind,
    address,
    protocol,
    port: 80,
    fromPods: route(kind !== 'clusterIP'),
    fromNode: route(true),
    fromOthers: route(true),
    isSplit: false,
    allowedSources: undefined,
    affinitySeconds: undefined,
  })
  return {
    name: `ns/svc-${index}:p`,
    namespace: 'ns',
    service: `svc-${index}`,
    portName: 'p',
    protocol,
    frontends: [frontend('clusterIP', `10.96.0.${index}`), frontend('externalIP', `10.97.0.${index}`)],
    lists: backends.length === 0 ? {} : { Cluster: backends },
    backends,
    serving: [],
  }
}

/** The same by UDP, with all clients led to the list of one policy. */
function aUdpView(policy: Policy, list: readonly Backend[], serving = list): ServicePortView {
  const view = aView(1, list, 'UDP')
  const { backends } = view
  const verdict: Route['verdict'] = { kind: 'to', policy, backends }
  const route: Route = { verdict, masquerade: true }
  return {
    ...view,
    frontends: view.frontends.map((frontend) => ({ ...frontend, fromPods: route, fromNode: route, fromOthers: route })),
    lists: { [policy]: backends },
    serving: serving.map(({ ip: address, port }) => joinHostPort(address, port)),
  }
}

/** A client with one port. */
async function aUdpClient(address: string, port = 80) {
  const socket = createSocket('udp4')
  socket.connect(port, address)
  await once(socket, 'connect')
  return {
    async ask(text: string): Promise<string> {
      const signal = AbortSignal.timeout(Math.ceil(500 * patience()))
      const answered = once(socket, 'message', { signal }).then(
        ([data]) => String(data),
        // What an earlier datagram met.
        (error: NodeJS.ErrnoException) => (error.name === 'AbortError' ? 'silent' : (error.code ?? error.message)),
      )
      socket.send(text)
      return answered
    },
    [Symbol.dispose]: () => void socket.close(),
  }
}

/** One run of the proxy: what it opens goes with it, rules stay. */
class Run implements Disposable {
  readonly refused: string[] = []
  missing: MissingNow | undefined
  /** Where file descriptors end that listeners may take. */
  endFd = Infinity
  /** Whether the kernel refuses what is written: another process has changed the table meanwhile. */
  isRefused = false
  /** How often it did not know what is in the kernel, and asked for a comparison. */
  readonly successors: (number | undefined)[] = []
  readonly clock = new ManualClock()
  readonly path = new InlineDataPath()
  readonly driver = new NftablesDriver({ family: 'ip', table: USERSPACE_TABLE })
  readonly listeners: Listeners
  readonly programmer: FinishingProgrammer
  readonly mode: UserspaceProgrammer
  address: string = node.nodeIp

  constructor(range?: PortRange) {
    this.listeners = new Listeners({ family: 4, plane: this.path.plane, range, ephemeral, endFd: () => this.endFd })
    const { driver } = this
    const programmer = new UserspaceProgrammer({
      listeners: this.listeners,
      driver: {
        apply: (ops) => {
          if (this.isRefused) throw new Error('ENOENT')
          return driver.apply(ops)
        },
        read: () => driver.read(),
        readElements: (set) => driver.readElements(set),
        close: () => driver.close(),
      },
      clock: this.clock,
      onRefused: (name, reason) => this.refused.push(`${name}: ${reason}`),
      onMissing: (missing) => void (this.missing = missing),
      listenAddress: () => this.address,
      onSuccessor: (listener) => this.successors.push(listener?.port),
    })
    this.mode = programmer
    this.programmer = new FinishingProgrammer(programmer, this.clock)
  }

  /** Where each frontend is led to, by the kernel's own account. */
  ports(from: 'pods' | 'others' = 'others'): Record<string, number> {
    const elements = this.driver.read()?.elements.get(`service-listeners-${from}`) ?? new Map()
    return Object.fromEntries(
      Array.from(elements.values(), ({ key, data }: { key: string; data?: string }) => {
        return [formatIp(asBytes(key.slice(0, 4))), (data!.charCodeAt(4) << 8) | data!.charCodeAt(5)]
      }),
    )
  }

  [Symbol.dispose](): void {
    this.path[Symbol.dispose]()
    this.driver.close()
  }
}

async function ask(address: string, port = 80): Promise<string> {
  // A reject that arrives while the socket is locked counts only when the client sends again.
  const socket = connect({ host: address, port, timeout: 4000 })
  socket.on('timeout', () => socket.destroy(new Error('silent')))
  try {
    const [data] = (await once(socket, 'data')) as [Buffer]
    return data.toString().trim()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  } finally {
    socket.destroy()
  }
}

describe.skipIf(!isRoot)('the userspace mode in the kernel (needs root)', () => {
  let a: TestBackend
  let b: TestBackend

  beforeAll(() => {
    unshareNetwork()
    ip('link', 'set', 'lo', 'up')
    for (const address of [node.nodeIp, otherAddress]) ip('address', 'add', `${address}/32`, 'dev', 'lo')
    // Service addresses need a way, which the rules then change.
    ip('link', 'add', 'out', 'type', 'veth', 'peer', 'name', 'nowhere')
    for (const link of ['out', 'nowhere']) ip('link', 'set', link, 'up')
    ip('route', 'add', 'default', 'dev', 'out', 'src', node.nodeIp)
  })

  beforeEach(async () => {
    a = await anEchoBackend('a')
    b = await anEchoBackend('b')
  })

  afterEach(async () => {
    nft('flush', 'ruleset')
    await a[Symbol.asyncDispose]()
    await b[Symbol.asyncDispose]()
  })

  const to = (...backends: readonly TestBackend[]): Backend[] =>
    backends.map(({ ip: address, port }) => ({ ip: address, port, isLocal: true }))

  it('serves all frontends of a service port, and refuses those without endpoints', async () => {
    using run = new Run()
    await run.programmer.syncAll(node, [aView(1, to(a)), aView(2, [])])
    expect(await ask('10.96.0.1')).toBe('a')
    expect(await ask('10.97.0.1')).toBe('a')
    expect(await ask('10.96.0.2')).toBe('ECONNREFUSED')
    expect(await ask('10.96.0.1', 81)).toBe('ECONNREFUSED')
  })

  it('leaves the rules to the process that was started last, with open connections', async () => {
    using elder = new Run()
    const views = [aView(1, to(a)), aView(2, to(a))]
    await elder.programmer.syncAll(node, views)
    const before = elder.ports()
    const socket = connect({ host: '10.96.0.1', port: 80 })
    expect(String(((await once(socket, 'data')) as [Buffer])[0]).trim()).toBe('a')
    {
      using younger = new Run()
      await younger.programmer.syncAll(node, [aView(1, to(b)), aView(2, to(b))])
      const ports = younger.ports()
      expect(Object.values(ports)).not.toContain(before['10.96.0.1'])
      // As when it is told that another program changed the rules, and when a service changes.
      expect(await elder.programmer.syncAll(node, views)).toMatchObject({ transactions: 0, isSucceeded: true })
      expect(
        await elder.programmer.sync(node, [{ name: views[0]!.name, before: views[0], after: aView(1, []) }]),
      ).toMatchObject({
        isSucceeded: true,
      })
      expect(elder.successors).toEqual([expect.any(Number)])
      expect(younger.ports()).toEqual(ports)
      expect(await ask('10.96.0.1')).toBe('b')
      // One element of the other is no reason to give way: the elder made it before it noticed.
      expect((await younger.programmer.syncAll(node, views)).isSucceeded).toBeUndefined()
      await elder.mode.withdraw()
      expect(elder.mode.isSucceeded()).toBe(true)
      expect(younger.ports()).toEqual(ports)
      expect(socket.destroyed).toBe(false)
    }
    socket.destroy()
  })

  it('takes the rules over when the kernel has refused its first try', async () => {
    using elder = new Run()
    await elder.programmer.syncAll(node, [aView(1, to(a))])
    using younger = new Run()
    younger.isRefused = true
    await expect(younger.programmer.syncAll(node, [aView(1, to(b))])).rejects.toThrow('ENOENT')
    younger.isRefused = false
    expect((await younger.programmer.syncAll(node, [aView(1, to(b))])).isSucceeded).toBeUndefined()
    expect(younger.successors).toEqual([])
    expect(await ask('10.96.0.1')).toBe('b')
    expect((await elder.programmer.syncAll(node, [aView(1, to(a))])).isSucceeded).toBe(true)
  })

  it('leaves the rules of another process alone when it ends before it had any', async () => {
    using elder = new Run()
    await elder.programmer.syncAll(node, [aView(1, to(a))])
    const ports = elder.ports()
    using younger = new Run()
    younger.isRefused = true
    await expect(younger.programmer.syncAll(node, [aView(1, to(b))])).rejects.toThrow('ENOENT')
    younger.isRefused = false
    await younger.mode.withdraw()
    expect(elder.ports()).toEqual(ports)
    expect(await ask('10.96.0.1')).toBe('a')
  })

  it('serves again when the process that had taken over is gone', async () => {
    using elder = new Run()
    const views = [aView(1, to(a))]
    await elder.programmer.syncAll(node, views)
    {
      using younger = new Run()
      await younger.programmer.syncAll(node, [aView(1, to(b))])
      expect((await elder.programmer.syncAll(node, views)).isSucceeded).toBe(true)
      await elder.clock.advance(5000)
      expect(elder.successors).toEqual([expect.any(Number)])
    }
    await elder.clock.advance(5000)
    expect(elder.successors).toEqual([expect.any(Number), undefined])
    await elder.programmer.syncAll(node, views)
    expect(await ask('10.96.0.1')).toBe('a')
    expect(elder.mode.isSucceeded()).toBe(false)
  })

  it('refuses who dials a listener directly', async () => {
    using run = new Run()
    await run.programmer.syncAll(node, [aView(1, to(a))])
    expect(await ask(node.nodeIp, run.ports()['10.96.0.1'])).toBe('ECONNREFUSED')
  })

  it('follows endpoints without touching the kernel', async () => {
    using run = new Run()
    const [before, after] = [aView(1, to(a)), aView(1, to(b))]
    await run.programmer.syncAll(node, [before])
    expect(await ask('10.96.0.1')).toBe('a')
    const stats = await run.programmer.sync(node, [{ name: before.name, before, after }])
    expect(stats.transactions).toBe(0)
    expect(await ask('10.96.0.1')).toBe('b')
  })

  it('takes the listeners away with the last endpoint and with the service', async () => {
    using run = new Run()
    const [served, empty] = [aView(1, to(a)), aView(1, [])]
    await run.programmer.syncAll(node, [])
    const change = (before?: ServicePortView, after?: ServicePortView) =>
      run.programmer.sync(node, [{ name: served.name, before, after }])
    await change(undefined, served)
    const port = run.ports()['10.96.0.1']!
    await change(served, empty)
    expect(await ask('10.96.0.1')).toBe('ECONNREFUSED')
    expect(openListener({ family: 4, protocol: 'TCP', address: node.nodeIp, port })).toBeDefined()
    await change(empty, served)
    expect(await ask('10.96.0.1')).toBe('a')
    await change(served, undefined)
    expect(run.ports()).toEqual({})
    expect([...run.listeners.entries()]).toEqual([])
  })

  it('is read back as it was planned, and healed when the operator removes it', async () => {
    using run = new Run()
    const views = [aView(1, to(a)), aView(2, to(b)), aView(3, [])]
    await run.programmer.syncAll(node, views)
    expect((await run.programmer.syncAll(node, views)).transactions).toBe(0)
    nft('flush', 'ruleset')
    expect(await ask('10.96.0.1')).not.toBe('a')
    await run.programmer.syncAll(node, views)
    expect(await ask('10.96.0.1')).toBe('a')
    expect(nft('list', 'ruleset')).toContain('table ip kube-proxy-userspace')
  })

  it('opens the same listeners again after a restart, wherever they were', async () => {
    const views = [aView(1, to(a)), aView(2, to(b))]
    // A range that is full but for two ports at a time puts listeners where they would not be by themselves.
    const first = new Run({ first: 47_000, last: 47_003 })
    await first.programmer.syncAll(node, views)
    const ports = [first.ports('pods'), first.ports('others')]
    first[Symbol.dispose]()
    using second = new Run()
    expect((await second.programmer.syncAll(node, views)).transactions).toBe(0)
    expect([second.ports('pods'), second.ports('others')]).toEqual(ports)
  })

  it('passes over ports that others have', async () => {
    const range = { first: 48_000, last: 48_003 }
    const taken = [48_000, 48_001].map((port) =>
      openListener({ family: 4, protocol: 'TCP', address: node.nodeIp, port }),
    )
    expect(taken.every((listener) => listener !== undefined)).toBe(true)
    using run = new Run(range)
    await run.programmer.syncAll(node, [aView(1, to(a))])
    expect(run.refused).toEqual([])
    expect(run.ports()['10.96.0.1']).toBeGreaterThanOrEqual(48_002)
    expect(await ask('10.96.0.1')).toBe('a')
  })

  it('counts the listeners for which no file descriptor is left, refuses their services, and opens them when there are some', async () => {
    using run = new Run()
    await run.programmer.syncAll(node, [aView(1, to(a))])
    expect(run.missing).toEqual({ listeners: 0, first: undefined })
    run.endFd = 3
    const more = [2, 3, 4].map((i) => aView(i, to(b)))
    await run.programmer.sync(
      node,
      more.map((view) => ({ name: view.name, before: undefined, after: view })),
    )
    // Each service has two listeners. None of it is told service by service.
    expect([run.missing, run.refused]).toEqual([{ listeners: 6, first: 'ns/svc-2:p' }, []])
    expect(await ask('10.96.0.1')).toBe('a')
    expect(await ask('10.96.0.3')).toBe('ECONNREFUSED')
    await run.programmer.sync(node, [{ name: more[0]!.name, before: more[0]!, after: undefined }])
    expect(run.missing).toEqual({ listeners: 4, first: 'ns/svc-3:p' })
    run.endFd = Infinity
    // With the next change of any service: where many change, it never is quiet for as long as the timer takes.
    const next = aView(5, to(b))
    await run.programmer.sync(node, [{ name: next.name, before: undefined, after: next }])
    expect(run.missing).toEqual({ listeners: 0, first: undefined })
    expect(await ask('10.96.0.3')).toBe('b')
    run.endFd = 3
    const last = aView(6, to(b))
    await run.programmer.sync(node, [{ name: last.name, before: undefined, after: last }])
    expect(run.missing).toEqual({ listeners: 2, first: 'ns/svc-6:p' })
    // And without any.
    run.endFd = Infinity
    await run.clock.advance(5000)
    expect(run.missing).toEqual({ listeners: 0, first: undefined })
    expect(await ask('10.96.0.6')).toBe('b')
  })

  it('gives a service with very many ports its share of the listeners, says so once, and serves the others', async () => {
    using run = new Run({ first: 46_000, last: 46_399 })
    const giant = Array.from({ length: 150 }, (_, i): ServicePortView => {
      const view = aView(1, to(a))
      const frontends = view.frontends.map((frontend) => ({ ...frontend, port: 80 + i }))
      return { ...view, name: `ns/svc-1:p${i}`, portName: `p${i}`, frontends }
    })
    const added = (view: ServicePortView) => ({ name: view.name, before: undefined, after: view })
    await run.programmer.syncAll(node, [])
    await run.programmer.sync(node, giant.map(added))
    expect(run.refused).toEqual([
      'ns/svc-1:p100: its Service has 200 listeners already, as many as are left for others',
    ])
    await run.programmer.sync(node, [added(aView(2, to(b)))])
    const answers = () => Promise.all([ask('10.96.0.1'), ask('10.96.0.1', 180), ask('10.96.0.2')])
    expect(await answers()).toEqual(['a', 'ECONNREFUSED', 'b'])
    // With fewer ports of its own, it has room for the others.
    const removed = giant.slice(10, 80).map((view) => ({ name: view.name, before: view, after: undefined }))
    await run.programmer.sync(node, removed)
    await run.clock.advance(5000)
    expect(await answers()).toEqual(['a', 'a', 'b'])
    expect(run.refused).toHaveLength(1)
  })

  it('lets others have their turn while it gives very many backends to a few service ports', async () => {
    using run = new Run()
    await run.programmer.syncAll(node, [])
    const list = Array.from({ length: 6000 }, (_, i) => {
      return { ip: `10.9.${i >> 8}.${i & 255}`, port: 8080, isLocal: false }
    })
    const come = Array.from({ length: 6 }, (_, i) => {
      const view = aView(i, list)
      return { name: view.name, before: undefined, after: view }
    })
    const isDone = run.programmer.sync(node, come)
    await nextTurn()
    expect([...run.listeners.entries()].length).toBeLessThan(come.length)
    await isDone
    expect([...run.listeners.entries()]).toHaveLength(come.length)
  })

  it('lets others have their turn while it opens and closes the listeners of very many service ports', async () => {
    using run = new Run()
    await run.programmer.syncAll(node, [])
    const views = Array.from({ length: 250 }, (_, i) => aView(i, to(a)))
    const turnsDuring = async (work: Promise<unknown>) => {
      let turns = 0
      let isOver = false
      const count = () => {
        if (isOver) return
        turns++
        setImmediate(count)
      }
      setImmediate(count)
      await work
      isOver = true
      return turns
    }
    const come = views.map((view) => ({ name: view.name, before: undefined, after: view }))
    expect(await turnsDuring(run.programmer.sync(node, come))).toBeGreaterThanOrEqual(2)
    expect([...run.listeners.entries()]).toHaveLength(views.length)
    const go = views.map((view) => ({ name: view.name, before: view, after: undefined }))
    expect(await turnsDuring(run.programmer.sync(node, go))).toBeGreaterThanOrEqual(2)
    expect([...run.listeners.entries()]).toEqual([])
  })

  it('retries very many services one part after the other', async () => {
    using run = new Run()
    run.endFd = 3
    const views = Array.from({ length: 250 }, (_, i) => aView(i, to(a)))
    await run.programmer.syncAll(node, views)
    expect(run.missing?.listeners).toBe(500)
    run.endFd = Infinity
    await run.programmer.sync(node, [])
    expect(run.missing?.listeners).toBe(300)
    await run.clock.advance(20)
    expect(run.missing?.listeners).toBe(0)
    expect(await ask('10.96.0.249')).toBe('a')
  })

  it('says when no port is left, refuses that service, serves the others, and serves it when there is one', async () => {
    // Each service has two listeners: for those whose address backends see, and for the others.
    using run = new Run({ first: 49_000, last: 49_001 })
    const [one, two] = [aView(1, to(a)), aView(2, to(b))]
    await run.programmer.syncAll(node, [one, two])
    expect(run.refused).toEqual([
      'ns/svc-2:p: no port of the range 49000-49001 is free',
      'ns/svc-2:p: no port of the range 49000-49001 is free',
    ])
    expect(await ask('10.96.0.1')).toBe('a')
    expect(await ask('10.96.0.2')).toBe('ECONNREFUSED')
    // Nothing new to say.
    await run.programmer.sync(node, [])
    expect(run.refused).toHaveLength(2)
    await run.programmer.sync(node, [{ name: one.name, before: one, after: undefined }])
    // It tries again by itself, and when the kernel refuses that, a comparison has to show what is there.
    run.isRefused = true
    await run.clock.advance(5000)
    expect(run.programmer.unsure).toBe(1)
    run.isRefused = false
    await expect(run.programmer.sync(node, [])).rejects.toThrow('as a whole')
    await run.programmer.syncAll(node, [two])
    await eventually('the other has its port', async () => {
      await run.clock.advance(5000)
      const answer = await ask('10.96.0.2')
      return answer === 'b' ? undefined : answer
    })
    expect((await run.programmer.syncAll(node, [two])).transactions).toBe(0)
  })

  it('moves with the address of the node, and open connections live on', async () => {
    using run = new Run()
    const views = [aView(1, to(a))]
    await run.programmer.syncAll(node, views)
    const open = connect({ host: '10.96.0.1', port: 80 })
    await once(open, 'data')
    run.address = otherAddress
    await run.programmer.syncAll({ ...node, nodeIp: otherAddress }, views)
    expect(await ask('10.96.0.1')).toBe('a')
    expect(nft('list', 'map', 'ip', 'kube-proxy-userspace', 'service-listeners-others')).toContain(otherAddress)
    open.write('ping')
    const [pong] = (await once(open, 'data')) as [Buffer]
    expect(pong.toString()).toBe('ping')
    open.destroy()
  })

  it('leaves a program on another address alone that has the port of one of its listeners', async () => {
    await using backend = await aUdpBackend('backend')
    using run = new Run()
    await run.programmer.syncAll(node, [aView(1, to(a)), aView(2, to(backend), 'UDP')])
    const { '10.96.0.1': tcp, '10.96.0.2': udp } = run.ports()
    for (const address of ['127.0.0.1', otherAddress]) {
      await using stream = await anEchoBackend('stream', address, tcp)
      expect(await ask(stream.ip, stream.port)).toBe('stream')
      await using datagrams = await aUdpBackend('datagrams', address, udp)
      using client = await aUdpClient(datagrams.ip, datagrams.port)
      expect(await client.ask('1')).toBe('datagrams 1')
    }
    using client = await aUdpClient(node.nodeIp, udp)
    expect([await ask(node.nodeIp, tcp), await client.ask('1')]).toEqual(['ECONNREFUSED', 'ECONNREFUSED'])
  })

  it('withdraw() leads no client to the proxy any more, and open connections live on', async () => {
    using run = new Run()
    await run.programmer.syncAll(node, [aView(1, to(a))])
    const open = connect({ host: '10.96.0.1', port: 80 })
    await once(open, 'data')
    await run.mode.withdraw()
    expect(run.ports()).toEqual({})
    open.write('ping')
    const [pong] = (await once(open, 'data')) as [Buffer]
    expect(pong.toString()).toBe('ping')
    open.destroy()
    expect((await run.programmer.sync(node, [])).transactions).toBe(0)
  })

  describe('when the policy of a UDP service port changes', () => {
    const listeners = () =>
      nft('list', 'set', 'ip', 'kube-proxy-userspace', 'listeners').match(/[\d.]+ \. udp \. \d+/g) ?? []
    const change = (run: Run, before: ServicePortView, after?: ServicePortView) =>
      run.programmer.sync(node, [{ name: before.name, before, after }])

    it('flows stay with their backend, new ones go by the new policy', async () => {
      await using one = await aUdpBackend('one')
      await using two = await aUdpBackend('two')
      using run = new Run()
      const both = to(one, two)
      const [wide, local] = [aUdpView('Cluster', to(one), both), aUdpView('Local', to(two), both)]
      await run.programmer.syncAll(node, [wide])
      using old = await aUdpClient('10.96.0.1')
      expect(await old.ask('1')).toBe('one 1')
      const [listener] = run.mode.flowTargets(wide)
      await change(run, wide, local)
      expect(await old.ask('2')).toBe('one 2')
      using fresh = await aUdpClient('10.96.0.1')
      expect(await fresh.ask('1')).toBe('two 1')
      // Their listener is none of a stranger's, and flows that go there are no stale ones.
      expect(run.mode.flowTargets(local)).toContain(listener)
      using stranger = await aUdpClient(node.nodeIp, Number(listener!.split(':')[1]))
      expect(await stranger.ask('1')).toBe('ECONNREFUSED')
      expect((await run.programmer.syncAll(node, [local])).transactions).toBe(0)
      expect(await old.ask('3')).toBe('one 3')
      // Back again through the same listener.
      await change(run, local, wide)
      expect(run.mode.flowTargets(wide)).toContain(listener)
      expect(await fresh.ask('2')).toBe('two 2')
      using third = await aUdpClient('10.96.0.1')
      expect(await third.ask('1')).toBe('one 1')
      await change(run, wide, undefined)
      expect(listeners()).toEqual([])
      expect([...run.listeners.entries()]).toEqual([])
    })

    it('the listener goes when none of its backends serves any more', async () => {
      await using one = await aUdpBackend('one')
      await using two = await aUdpBackend('two')
      using run = new Run()
      const both = to(one, two)
      const [wide, local] = [aUdpView('Cluster', to(one), both), aUdpView('Local', to(two), both)]
      await run.programmer.syncAll(node, [wide])
      const [listener] = run.mode.flowTargets(wide)
      await change(run, wide, local)
      expect(listeners()).toHaveLength(2)
      const alone = aUdpView('Local', to(two))
      await change(run, local, alone)
      expect(listeners()).toHaveLength(1)
      expect(run.mode.flowTargets(alone)).not.toContain(listener)
    })

    it('a listener that is needed elsewhere does not stay', async () => {
      await using one = await aUdpBackend('one')
      using run = new Run({ first: 49_100, last: 49_100 })
      const [wide, local] = [aUdpView('Cluster', to(one)), aUdpView('Local', to(one))]
      await run.programmer.syncAll(node, [wide])
      await change(run, wide, local)
      expect(run.refused).toHaveLength(1)
      await eventually('it has its port', async () => {
        await run.clock.advance(5000)
        using client = await aUdpClient('10.96.0.1')
        const answer = await client.ask('1')
        return answer === 'one 1' ? undefined : answer
      })
    })
  })

  it('says where flows of UDP go, for the search of stale ones', async () => {
    using run = new Run()
    const view = aView(1, to(a), 'UDP')
    await run.programmer.syncAll(node, [view])
    const ports = new Set([run.ports('pods')['10.96.0.1'], run.ports('others')['10.96.0.1']])
    expect(new Set(run.mode.flowTargets(view))).toEqual(new Set(Array.from(ports, (port) => `${node.nodeIp}:${port}`)))
  })
})
