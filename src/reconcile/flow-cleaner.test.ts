import { beforeEach, describe, expect, test } from 'vitest'
import { aNodeView } from '../../test/support/arbitrary-views.ts'
import { ERRNOS } from '../../test/support/errnos.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError } from '../lib/errors.ts'
import { silentLogger } from '../lib/log.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { BackendList } from '../model/backend-list.ts'
import type { UdpFlow } from '../model/stale-flows.ts'
import type { Frontend, FrontendAddress, ServicePortChange, ServicePortView } from '../model/types.ts'
import { FlowCleaner, type FlowCleanerOptions } from './flow-cleaner.ts'
import type { SyncStats } from './programmer.ts'
import { createMetrics } from '../metrics/metrics.ts'

const node = aNodeView()
const clusterIp = '10.96.0.10'

/** A tracker that answers when it is told to, with the flows that it has by then. */
class Tracker {
  flows: UdpFlow[] = []
  readonly asked: (string | undefined)[] = []
  readonly deleted: UdpFlow[] = []
  readonly #waiting: (() => void)[] = []
  failsWith: string | undefined
  refusesToDelete = false

  async findUdp(_family: 4 | 6, isWanted: (flow: UdpFlow) => boolean, answerer?: string): Promise<UdpFlow[]> {
    this.asked.push(answerer)
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
    if (this.failsWith !== undefined) throw new KernelError('list connections', this.failsWith)
    const isAsked = ({ reply }: UdpFlow) => answerer === undefined || answerer === `${reply.src}:${reply.sport}`
    return this.flows.filter((each) => isAsked(each) && isWanted(each))
  }

  delete(flows: readonly UdpFlow[]): number {
    if (this.refusesToDelete) throw new KernelError('delete connections', 'EPERM')
    this.deleted.push(...flows)
    return flows.length
  }

  answer(): void {
    this.#waiting.shift()?.()
  }
}

function flow(backend: number): UdpFlow {
  return {
    original: { src: '10.64.0.99', dst: clusterIp, dport: 53 },
    reply: { src: `10.64.0.${backend}`, sport: 5353 },
    isAnswered: true,
  }
}

function dns(...backends: readonly number[]): ServicePortView {
  const route = { verdict: { kind: 'reject', reason: 'has no endpoints' }, masquerade: false } as const
  const frontend: Frontend = {
    kind: 'clusterIP',
    address: clusterIp,
    protocol: 'UDP',
    port: 53,
    fromPods: route,
    fromNode: route,
    fromOthers: route,
    isSplit: false,
    allowedSources: undefined,
    affinitySeconds: undefined,
  }
  return {
    name: 'ns/dns',
    namespace: 'ns',
    service: 'dns',
    portName: '',
    protocol: 'UDP',
    frontends: [frontend],
    lists: {},
    backends: BackendList.none,
    serving: backends.map((backend) => `10.64.0.${backend}:5353`),
  }
}

describe('FlowCleaner', () => {
  let tracker: Tracker
  let cleaner: FlowCleaner
  let clock: ManualClock
  let failures: unknown[]
  let views: readonly ServicePortView[]
  /** Of a change, or of a comparison after which there are these service ports. */
  const follow = (
    changes: readonly ServicePortChange[],
    all?: readonly ServicePortView[],
    operations: Partial<SyncStats> = {},
  ) => {
    views = all ?? []
    const nothing = { transactions: 0, operations: 0, bytes: 0 }
    cleaner.follow({ node, changes, isComparison: all !== undefined, operations: { ...nothing, ...operations } })
  }
  const change = (before: ServicePortView | undefined, after: ServicePortView | undefined) =>
    follow([{ name: 'ns/dns', before, after }])
  const finish = async () => {
    const end = cleaner.idle().then(() => 'idle')
    const turn = () => new Promise<string>((resolve) => void setImmediate(() => resolve('busy')))
    do tracker.answer()
    while ((await Promise.race([end, turn()])) === 'busy')
  }

  const openCleaner = (targets?: FlowCleanerOptions['targets']) =>
    new FlowCleaner({
      table: tracker,
      metrics: createMetrics({
        shown: [],
        build: { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' },
      }),
      clock,
      failures: { onFailed: (error) => void failures.push(error), onMended: () => void failures.push('mended') },
      log: silentLogger,
      machineAddresses: () => [],
      views: () => views,
      targets,
    })

  beforeEach(() => {
    tracker = new Tracker()
    clock = new ManualClock()
    failures = []
    cleaner = openCleaner()
  })

  test('deletes the flows of an endpoint that went, and asks for no others', async () => {
    tracker.flows = [flow(1), flow(2)]
    change(dns(1, 2), dns(2))
    await finish()
    expect(tracker.asked).toEqual(['10.64.0.1:5353'])
    expect(tracker.deleted).toEqual([flow(1)])
  })

  test('deletes as many flows as a busy machine has, of as many frontends as a Service can have', async () => {
    // Four times as many as fit into the arguments of a call in the program: a thread of this test has a larger stack.
    const many = 600_000
    const all: UdpFlow[] = Array(many).fill(flow(1))
    tracker.findUdp = () => Promise.resolve(all)
    let deleted = 0
    tracker.delete = ({ length }) => (deleted += length)
    const frontend: FrontendAddress = { address: '10.96.0.11', protocol: 'UDP', port: 53 }
    const gone = Array.from({ length: many }, () => frontend)
    follow([{ name: 'ns/dns', before: dns(1, 2), after: dns(2) }], undefined, { gone })
    await finish()
    expect(failures).toEqual([])
    expect(deleted).toBe(many)
  })

  test('does not look when endpoints only come', async () => {
    change(dns(1), dns(1, 2))
    await finish()
    expect(tracker.asked).toEqual([])
  })

  test('does not look at all, not even at the start, where nothing is served over UDP', async () => {
    const web: ServicePortView = { ...dns(1), name: 'ns/web', protocol: 'TCP' }
    follow([{ name: web.name, before: undefined, after: web }], [web])
    await finish()
    await clock.advance(60_000)
    await finish()
    expect(tracker.asked).toEqual([])
  })

  test('looks, at the start, where something is', async () => {
    tracker.flows = [flow(1), flow(2)]
    follow([{ name: 'ns/dns', before: undefined, after: dns(1) }], [dns(1)])
    await finish()
    expect(tracker.deleted).toEqual([flow(2)])
  })

  test('spares a flow to an endpoint that came while it looked', async () => {
    tracker.flows = [flow(1), flow(2)]
    change(undefined, dns(1))
    change(dns(1), dns(1, 2))
    await finish()
    expect(tracker.deleted).toEqual([])
  })

  test('looks once more for all that changed while it looked', async () => {
    tracker.flows = [flow(1), flow(2), flow(3)]
    change(undefined, dns(1, 2, 3))
    change(dns(1, 2, 3), dns(2, 3))
    change(dns(2, 3), dns(3))
    change(dns(3), undefined)
    await finish()
    expect(tracker.asked).toEqual([undefined, undefined])
    expect(tracker.deleted).toEqual([flow(1), flow(2), flow(3)])
  })

  test('deletes the flows of a listener that the sync has closed', async () => {
    const listener = (number: number) => `10.64.0.${number}:5353`
    let open = [listener(1), listener(2)]
    cleaner = openCleaner(() => open)
    tracker.flows = [flow(1), flow(2)]
    const changes = [{ name: 'ns/dns', before: dns(7), after: dns(7) }]
    const answerers = new Map([['ns/dns', open]])
    open = [listener(2)]
    follow(changes, undefined, { answerers })
    await finish()
    expect(tracker.asked).toEqual([listener(1)])
    expect(tracker.deleted).toEqual([flow(1)])
  })

  describe.each(ERRNOS)('a look that fails with %s', (errno) => {
    const again = async () => {
      await clock.advance(60_000)
      await finish()
    }

    beforeEach(() => {
      tracker.failsWith = errno
    })

    test('is had again by itself, and the pauses grow', async () => {
      tracker.flows = [flow(1)]
      change(dns(1), dns())
      await finish()
      for (let i = 0; i < 4; i++) {
        await clock.advance(60_000)
        await finish()
      }
      expect(failures).toHaveLength(5)
      expect(tracker.asked).toHaveLength(5)
      tracker.failsWith = undefined
      await again()
      expect(tracker.deleted).toEqual([flow(1)])
      expect(failures.at(-1)).toBe('mended')
      await again()
      await again()
      // The second look of one that succeeded, and no third.
      expect(tracker.asked).toHaveLength(7)
    })

    test('is had again for what changed meanwhile, too, which spares what is right by then', async () => {
      tracker.flows = [flow(1), flow(2), flow(3)]
      change(dns(1, 2, 3), dns(2, 3))
      // While it looks, and while it waits: the first endpoint is back, the second goes.
      change(dns(2, 3), dns(1, 2, 3))
      await finish()
      change(dns(1, 2, 3), dns(1, 3))
      expect(tracker.asked).toHaveLength(1)
      tracker.failsWith = undefined
      await again()
      expect(tracker.deleted).toEqual([flow(2)])
    })

    test('knows the services that went since', async () => {
      tracker.flows = [flow(1), flow(2)]
      change(dns(1, 2), dns(2))
      change(dns(2), undefined)
      await finish()
      tracker.failsWith = undefined
      await again()
      expect(tracker.deleted).toEqual([flow(1), flow(2)])
    })

    test('is not had again when another process has taken over', async () => {
      tracker.flows = [flow(1)]
      change(dns(1), dns())
      await finish()
      follow([], undefined, { isSucceeded: true })
      tracker.failsWith = undefined
      await again()
      expect(tracker.asked).toHaveLength(1)
    })
  })

  test('looks a second time, for a packet that had chosen its endpoint before the change', async () => {
    change(dns(1, 2), dns(2))
    await finish()
    tracker.flows = [flow(1), flow(2)]
    await clock.advance(2000)
    await finish()
    expect(tracker.deleted).toEqual([flow(1)])
    await clock.advance(60_000)
    await finish()
    expect(tracker.asked).toHaveLength(2)
  })

  test('looks a third time where affinity led a client to an endpoint that is gone after the second', async () => {
    change(dns(1, 2), dns(2))
    await finish()
    cleaner.staleEntriesDeleted()
    await clock.advance(1500)
    await finish()
    expect(tracker.asked).toHaveLength(2)
    tracker.flows = [flow(1), flow(2)]
    await clock.advance(1500)
    await finish()
    expect(tracker.deleted).toEqual([flow(1)])
    tracker.flows = [flow(1)]
    views = [dns(2)]
    await clock.advance(60_000)
    cleaner.staleEntriesDeleted()
    await clock.advance(1500)
    await finish()
    expect(tracker.deleted).toEqual([flow(1), flow(1)])
    await clock.advance(60_000)
    await finish()
    expect(tracker.asked).toHaveLength(4)
  })

  test('spares in its second look what has become right since', async () => {
    change(dns(1, 2, 3), dns(3))
    await finish()
    change(dns(3), dns(2, 3))
    tracker.flows = [flow(1), flow(2)]
    await clock.advance(2000)
    await finish()
    expect(tracker.deleted).toEqual([flow(1)])
  })

  test('lets others have their turn while it deletes very many, and spares what becomes right meanwhile', async () => {
    tracker.flows = Array.from({ length: 10_000 }, () => flow(1))
    change(dns(1), dns())
    tracker.answer()
    let turns = 0
    while (tracker.deleted.length < 4000) {
      await nextTurn()
      expect(++turns).toBeLessThan(100)
    }
    expect(tracker.deleted.length).toBe(4000)
    change(dns(), dns(1))
    await finish()
    expect(tracker.deleted.length).toBe(4000)
  })

  test('what fails to be deleted is deleted later', async () => {
    tracker.flows = [flow(1)]
    tracker.refusesToDelete = true
    change(dns(1), dns())
    await finish()
    tracker.refusesToDelete = false
    await clock.advance(1000)
    await finish()
    expect(tracker.deleted).toEqual([flow(1)])
  })
})
