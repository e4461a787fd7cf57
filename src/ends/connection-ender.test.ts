import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { nodeView } from '../../test/support/kube-objects.ts'
import type { Flow } from '../conntrack/driver.ts'
import type { EndpointEnds } from '../model/ends.ts'
import type { Frontend, ServicePortView } from '../model/types.ts'
import { ConnectionEnder, type EndsKernel, MISSING_MS } from './connection-ender.ts'
import { ENDED_MS } from './plan-table.ts'

const route = { verdict: { kind: 'reject', reason: 'has no endpoints' }, masquerade: false } as const
const frontend = (address: string | undefined, port: number): Frontend => ({
  kind: address === undefined ? 'nodePort' : 'clusterIP',
  address,
  protocol: 'TCP',
  port,
  fromPods: route,
  fromNode: route,
  fromOthers: route,
  isSplit: false,
  allowedSources: undefined,
  affinitySeconds: undefined,
})

function view(ends: Partial<EndpointEnds> | undefined): ServicePortView {
  return {
    name: 'default/web',
    frontends: [frontend('10.0.0.1', 80), frontend(undefined, 30000)],
    ends: ends && { afterSeconds: undefined, present: [], ending: [], ...ends },
  } as unknown as ServicePortView
}

function flow(dst: string, dport: number, backend: string, sport = 1): Flow {
  const [src = '', port = ''] = backend.split(':')
  return {
    family: 4,
    protocol: 6,
    original: { src: '10.1.0.9', sport, dst, dport },
    reply: { src, sport: Number(port), dst: '10.1.0.9', dport: sport },
    isAnswered: true,
    zone: 0,
    id: sport,
  }
}

function setUp(flows: Flow[]) {
  const clock = new ManualClock()
  const seen: string[] = []
  const failures: unknown[] = []
  const say = (what: string) => (of: readonly Flow[]) => void seen.push(`${what} ${of.map(({ id }) => id).join(' ')}`)
  const kernel: EndsKernel = {
    find: (_, isWanted) => Promise.resolve(flows.filter(isWanted)),
    forget: say('forget'),
    open: () => Promise.resolve({ refuse: say('refuse'), wake: say('wake'), close: () => void seen.push('close') }),
  }
  const ender = new ConnectionEnder({
    kernel,
    machineAddresses: () => [],
    onEnded: () => {},
    failures: { onFailed: (error) => failures.push(error), onMended: () => {} },
    clock,
  })
  const node = nodeView({ nodePortAddresses: { kind: 'only', addresses: ['192.168.0.1'] } })
  const show = (ends: Partial<EndpointEnds> | undefined) =>
    ender.follow(node, [{ name: 'default/web', before: undefined, after: view(ends) }])
  return { clock, seen, failures, kernel, ender, show }
}

const A = '10.1.0.1:8080'
const B = '10.1.0.2:8080'

test('ends the connections to an endpoint that is missing for a while, through any address of the service port', async () => {
  const { clock, seen, show } = setUp([
    flow('10.0.0.1', 80, A, 1),
    flow('192.168.0.1', 30000, A, 2),
    flow('10.0.0.1', 80, B, 3),
    flow('10.0.0.2', 80, A, 4),
    flow('192.168.0.2', 30000, A, 5),
  ])
  show({ present: [A, B] })
  await clock.advance(MISSING_MS)
  expect(seen).toEqual([])
  show({ present: [B] })
  await clock.advance(MISSING_MS - 1)
  expect(seen).toEqual([])
  await clock.advance(1)
  expect(seen).toEqual(['refuse 1 2', 'wake 1 2'])
  await clock.advance(ENDED_MS)
  expect(seen.slice(2)).toEqual(['wake 1 2', 'forget 1 2', 'close'])
})

test('leaves them where the endpoint comes back, the service port goes, or its annotation', async () => {
  for (const after of [{ present: [A] }, undefined]) {
    const { clock, seen, show } = setUp([flow('10.0.0.1', 80, A)])
    show({ present: [A] })
    await clock.advance(MISSING_MS)
    show({ present: [] })
    await clock.advance(MISSING_MS - 1)
    show(after)
    await clock.advance(60_000)
    expect(seen).toEqual([])
  }
})

test('ends those to an endpoint that has been terminating for so long, and at once when that is gone', async () => {
  const { clock, seen, show } = setUp([flow('10.0.0.1', 80, A, 1), flow('10.0.0.1', 80, B, 2)])
  show({ present: [A, B], afterSeconds: 10 })
  await clock.advance(MISSING_MS)
  show({ ending: [A, B], afterSeconds: 10 })
  await clock.advance(5000)
  show({ ending: [A], afterSeconds: 10 })
  await clock.advance(MISSING_MS)
  expect(seen).toContain('refuse 2')
  expect(seen).not.toContain('refuse 1')
  await clock.advance(3000)
  expect(seen).toContain('refuse 1')
})

test('at first, those to endpoints that are not there any more; those that go meanwhile have their own time', async () => {
  const { clock, seen, show } = setUp([flow('10.0.0.1', 80, A, 1), flow('10.0.0.1', 80, B, 2)])
  show({ present: [B] })
  await clock.advance(MISSING_MS - 500)
  show({ present: [] })
  await clock.advance(500)
  expect(seen).toEqual(['refuse 1', 'wake 1'])
  await clock.advance(MISSING_MS)
  expect(seen).toContain('refuse 2')
})

test('reads the connections once where many endpoints are gone, and each connection only once', async () => {
  const endpoints = Array.from({ length: 1000 }, (_, i) => `10.2.${i >> 8}.${i & 255}:8080`)
  const { clock, seen, kernel, show } = setUp([...endpoints, B].map((each, i) => flow('10.0.0.1', 80, each, i)))
  const asked: (string | undefined)[] = []
  const find = kernel.find.bind(kernel)
  kernel.find = (family, isWanted, answerer) => {
    asked.push(answerer)
    return find(family, isWanted)
  }
  show({ present: [B, ...endpoints] })
  await clock.advance(MISSING_MS)
  show({ present: [B] })
  await clock.advance(MISSING_MS)
  expect(asked).toEqual([undefined, undefined])
  expect(seen[0]?.split(' ')).toHaveLength(1 + endpoints.length)
  show({ present: [] })
  await clock.advance(MISSING_MS)
  expect(asked.slice(2)).toEqual([B])
})

test('rests for three times as long as it worked', async () => {
  const { clock, seen, kernel, show } = setUp([flow('10.0.0.1', 80, A, 1), flow('10.0.0.1', 80, B, 2)])
  show({ present: [A, B] })
  await clock.advance(MISSING_MS)
  const find = kernel.find.bind(kernel)
  let answer = () => {}
  kernel.find = async (...query) => {
    await new Promise<void>((resolve) => (answer = resolve))
    return find(...query)
  }
  show({ present: [B] })
  await clock.advance(MISSING_MS)
  show({ present: [] })
  await clock.advance(MISSING_MS)
  kernel.find = find
  answer()
  await clock.advance(3 * MISSING_MS - 1)
  expect(seen).toContain('refuse 1')
  expect(seen).not.toContain('refuse 2')
  await clock.advance(1)
  expect(seen).toContain('refuse 2')
})

test('what failed is tried again', async () => {
  const { clock, seen, failures, kernel, show } = setUp([flow('10.0.0.1', 80, A)])
  let isRefused = true
  const open = kernel.open.bind(kernel)
  kernel.open = (family) => (isRefused ? Promise.reject(new Error('no table')) : open(family))
  show({ present: [A] })
  await clock.advance(MISSING_MS)
  show({ present: [] })
  await clock.advance(MISSING_MS)
  expect(failures).toHaveLength(1)
  isRefused = false
  await clock.advance(1000)
  expect(seen).toEqual(['refuse 1', 'wake 1'])
})

test('stop() leaves nothing behind', async () => {
  const { clock, seen, ender, show } = setUp([flow('10.0.0.1', 80, A)])
  show({ present: [] })
  await clock.advance(MISSING_MS)
  await ender.stop()
  expect(seen).toEqual(['refuse 1', 'wake 1', 'close'])
  expect(clock.waiting).toBe(0)
})
