import { describe, expect, test } from 'vitest'
import { aNodeView } from '../../test/support/arbitrary-views.ts'
import { aClusterIpView } from '../../test/support/cluster-ip-view.ts'
import { ERRNOS } from '../../test/support/errnos.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError } from '../lib/errors.ts'
import { createLogger } from '../lib/log.ts'
import { textFormat } from '../lib/log-text.ts'
import type { ServicePortView } from '../model/types.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { subscriberFailures } from './subscriber-failures.ts'
import type { Applied } from './applied.ts'
import { Subscribers } from './subscribers.ts'

const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }
const node = aNodeView()

/** Of one service port that changes from one view to another. */
function applied(name: string, before: ServicePortView | undefined, after: ServicePortView | undefined): Applied {
  return {
    node,
    cause: 'change',
    isComparison: false,
    mayDiffer: true,
    changes: [{ name, before, after }],
    beganMs: 0,
    waitingSinceMs: undefined,
    triggerTimes: [],
    operations: { transactions: 1, operations: 1, bytes: 1 },
    tookMs: 0,
  }
}

const [v1, v2, v3] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((host) => aClusterIpView('10.96.0.1', [host]))
const FIRST = applied('a', v1, v2)
const SECOND = applied('a', v2, v3)

/** Three of them, of which the second may fail. */
function open() {
  const clock = new ManualClock()
  const metrics = createMetrics({ shown: [], build })
  const lines: string[] = []
  const log = createLogger({
    format: textFormat({ pid: 1 }),
    sink: (_, line) => void lines.push(line),
    verbosity: 0,
    now: () => clock.now(),
  })
  const got: Record<string, Applied[]> = { health_ports: [], udp_flows: [], connect_retry: [] }
  const state = { errno: undefined as string | undefined }
  const follow = (name: string) => (sync: Applied) => void got[name]!.push(sync)
  const fallible = (sync: Applied) => {
    got['udp_flows']!.push(sync)
    if (state.errno !== undefined) throw new KernelError('list connections', state.errno)
  }
  const subscribers = new Subscribers({
    subscribers: [
      { name: 'health_ports', follow: follow('health_ports') },
      { name: 'udp_flows', follow: fallible },
      { name: 'connect_retry', follow: follow('connect_retry') },
    ],
    failures: (name) => subscriberFailures({ metrics, clock, log }, name, 'IPv4'),
    clock,
  })
  const counted = () => ({
    failures: metrics.subscriberFailures.with('IPv4', 'udp_flows').value,
    behind: metrics.subscriberBehind.with('IPv4', 'udp_flows').value,
  })
  return { clock, subscribers, got, state, counted, lines }
}

describe('a subscriber that fails', () => {
  test.each(ERRNOS)('with %s does so alone, and gets all that it has missed as one', async (errno) => {
    const { clock, subscribers, got, state, counted, lines } = open()
    state.errno = errno
    subscribers.follow(FIRST)
    expect(got).toEqual({ health_ports: [FIRST], udp_flows: [FIRST], connect_retry: [FIRST] })
    expect(counted()).toEqual({ failures: 1, behind: 1 })
    // The others follow the next sync, it waits for its time.
    subscribers.follow(SECOND)
    expect(got['udp_flows']).toEqual([FIRST])
    expect(got['connect_retry']).toEqual([FIRST, SECOND])
    await clock.advance(100)
    expect(got['udp_flows']!.at(-1)!.changes).toEqual([{ name: 'a', before: v1, after: v3 }])
    state.errno = undefined
    await clock.advance(1000)
    expect(got['udp_flows']).toHaveLength(3)
    expect(got['udp_flows']!.at(-1)!.changes).toEqual([{ name: 'a', before: v1, after: v3 }])
    expect(counted()).toEqual({ failures: 2, behind: 0 })
    subscribers.follow(FIRST)
    expect(got['udp_flows']?.at(-1)).toBe(FIRST)
    expect(got['connect_retry']).toEqual([FIRST, SECOND, FIRST])
    const said = lines.join('')
    expect(said).toContain('udp_flows')
    expect(said).toContain(errno)
  })

  test('does not hear of what came and went meanwhile', async () => {
    const { clock, subscribers, got, state } = open()
    state.errno = 'EPERM'
    subscribers.follow(applied('a', undefined, v1))
    subscribers.follow(applied('b', v1, v2))
    subscribers.follow(applied('a', v1, undefined))
    state.errno = undefined
    await clock.advance(1000)
    expect(got['udp_flows']!.at(-1)!.changes).toEqual([{ name: 'b', before: v1, after: v2 }])
  })

  test('is asked less and less often, and fills no log', async () => {
    const { clock, subscribers, state, got, counted, lines } = open()
    state.errno = 'EPERM'
    for (let second = 0; second < 3600; second++) {
      subscribers.follow(FIRST)
      await clock.advance(1000)
    }
    // Every 30 s at last.
    expect(got['udp_flows']!.length).toBeLessThan(3600 / 30 + 12)
    expect(got['udp_flows']!.length).toBeGreaterThan(100)
    expect(counted().failures).toBe(got['udp_flows']!.length)
    expect(got['connect_retry']).toHaveLength(3600)
    expect(lines.length).toBeLessThanOrEqual(61)
    subscribers.stop()
    const before = got['udp_flows']!.length
    await clock.advance(600_000)
    expect(got['udp_flows']).toHaveLength(before)
  })
})
