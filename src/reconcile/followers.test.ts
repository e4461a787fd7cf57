import { describe, expect, test } from 'vitest'
import { aNodeView } from '../../test/support/arbitrary-views.ts'
import { ERRNOS } from '../../test/support/errnos.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError } from '../lib/errors.ts'
import { createLogger } from '../lib/log.ts'
import { textFormat } from '../lib/log-text.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { followerFailures } from './follower-failures.ts'
import { type AppliedSync, Followers } from './followers.ts'

const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }
const node = aNodeView()
const SYNC: AppliedSync = { node, changes: [], all: undefined }
const EVERYTHING: AppliedSync = { node, changes: [], all: [] }

/** Three of them, of which the second may fail. */
function open(kind: 'at once' | 'later') {
  const clock = new ManualClock()
  const metrics = createMetrics({ shown: [], build })
  const lines: string[] = []
  const log = createLogger({
    format: textFormat({ pid: 1 }),
    sink: (_, line) => void lines.push(line),
    verbosity: 0,
    now: () => clock.now(),
  })
  const got: Record<string, AppliedSync[]> = { health_ports: [], udp_flows: [], connect_retry: [] }
  const state = { errno: undefined as string | undefined }
  const follow = (name: string) => (sync: AppliedSync) => void got[name]!.push(sync)
  const fallible = (sync: AppliedSync) => {
    got['udp_flows']!.push(sync)
    if (state.errno !== undefined) throw new KernelError('list connections', state.errno)
  }
  const followers = new Followers({
    followers: [
      { name: 'health_ports', follow: follow('health_ports') },
      // eslint-disable-next-line @typescript-eslint/require-await
      { name: 'udp_flows', follow: kind === 'at once' ? fallible : async (sync) => fallible(sync) },
      { name: 'connect_retry', follow: follow('connect_retry') },
    ],
    everything: () => EVERYTHING,
    failures: (name) => followerFailures({ metrics, clock, log }, name, 'IPv4'),
    clock,
  })
  const counted = () => ({
    failures: metrics.followerFailures.with('IPv4', 'udp_flows').value,
    behind: metrics.followerBehind.with('IPv4', 'udp_flows').value,
  })
  return { clock, followers, got, state, counted, lines }
}

describe.each(['at once', 'later'] as const)('a follower that fails %s', (kind) => {
  test.each(ERRNOS)('with %s does so alone, and is asked again for everything', async (errno) => {
    const { clock, followers, got, state, counted, lines } = open(kind)
    state.errno = errno
    followers.follow(SYNC)
    await clock.advance(0)
    expect(got).toEqual({ health_ports: [SYNC], udp_flows: [SYNC], connect_retry: [SYNC] })
    expect(counted()).toEqual({ failures: 1, behind: 1 })
    // The others hear of the next sync, it waits for its time.
    followers.follow(SYNC)
    expect(got['udp_flows']).toEqual([SYNC])
    expect(got['connect_retry']).toEqual([SYNC, SYNC])
    await clock.advance(100)
    expect(got['udp_flows']).toEqual([SYNC, EVERYTHING])
    state.errno = undefined
    await clock.advance(1000)
    expect(got['udp_flows']).toEqual([SYNC, EVERYTHING, EVERYTHING])
    expect(counted()).toEqual({ failures: 2, behind: 0 })
    followers.follow(SYNC)
    expect(got['udp_flows']?.at(-1)).toBe(SYNC)
    expect(got['connect_retry']).toEqual([SYNC, SYNC, SYNC])
    const said = lines.join('')
    expect(said).toContain('udp_flows')
    expect(said).toContain(errno)
  })

  test('is asked less and less often, and fills no log', async () => {
    const { clock, followers, state, got, counted, lines } = open(kind)
    state.errno = 'EPERM'
    for (let second = 0; second < 3600; second++) {
      followers.follow(SYNC)
      await clock.advance(1000)
    }
    // Every 30 s at last.
    expect(got['udp_flows']!.length).toBeLessThan(3600 / 30 + 12)
    expect(got['udp_flows']!.length).toBeGreaterThan(100)
    expect(counted().failures).toBe(got['udp_flows']!.length)
    expect(got['connect_retry']).toHaveLength(3600)
    expect(lines.length).toBeLessThanOrEqual(61)
    await followers.stop()
    const before = got['udp_flows']!.length
    await clock.advance(600_000)
    expect(got['udp_flows']).toHaveLength(before)
  })
})

test('a follower that is still at work hears of what it missed as a whole, once', async () => {
  const clock = new ManualClock()
  const got: AppliedSync[] = []
  const ends: (() => void)[] = []
  const followers = new Followers({
    followers: [
      {
        name: 'cleanup',
        follow: (sync) => {
          got.push(sync)
          return new Promise<void>((resolve) => ends.push(resolve))
        },
      },
    ],
    everything: () => EVERYTHING,
    failures: () => ({ onFailed() {}, onMended() {} }),
    clock,
  })
  for (let i = 0; i < 3; i++) followers.follow(SYNC)
  ends.shift()!()
  await clock.advance(0)
  expect(got).toEqual([SYNC, EVERYTHING])
  ends.shift()!()
  await clock.advance(0)
  expect(got).toHaveLength(2)
})
