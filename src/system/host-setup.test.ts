import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { describe, expect, test } from 'vitest'
import { silentLogger, type Logger, type LogValues } from '../lib/log.ts'
import {
  applyHostSetup,
  countCpus,
  planConntrack,
  planOomScoreAdj,
  readNodeCpus,
  type ConntrackSettings,
} from './host-setup.ts'
import type { SettingFiles } from './setting-files.ts'

const nothing: ConntrackSettings = {
  maxPerCore: 0,
  min: 131_072,
  tcpEstablishedTimeoutMs: 0,
  tcpCloseWaitTimeoutMs: 0,
  tcpBeLiberal: false,
  udpTimeoutMs: 0,
  udpStreamTimeoutMs: 0,
}
const defaults = {
  ...nothing,
  maxPerCore: 32_768,
  tcpEstablishedTimeoutMs: 86_400_000,
  tcpCloseWaitTimeoutMs: 3_600_000,
}
const netfilter = '/proc/sys/net/netfilter/nf_conntrack_'
const hashsize = '/sys/module/nf_conntrack/parameters/hashsize'

describe('planConntrack()', () => {
  test('plans kube-proxy’s defaults', () => {
    expect(planConntrack(defaults, 8)).toEqual([
      { path: `${netfilter}max`, wanted: 262_144, rule: 'exactly' },
      { path: hashsize, wanted: 65_536, rule: 'at least' },
      { path: `${netfilter}tcp_timeout_established`, wanted: 86_400, rule: 'exactly' },
      { path: `${netfilter}tcp_timeout_close_wait`, wanted: 3600, rule: 'exactly' },
    ])
  })

  test('plans nothing where everything is 0', () => {
    expect(planConntrack(nothing, 8)).toEqual([])
  })

  test('plans the optional settings', () => {
    expect(planConntrack({ ...nothing, tcpBeLiberal: true, udpTimeoutMs: 30_500, udpStreamTimeoutMs: 500 }, 8)).toEqual(
      [
        { path: `${netfilter}tcp_be_liberal`, wanted: 1, rule: 'exactly' },
        { path: `${netfilter}udp_timeout`, wanted: 30, rule: 'exactly' },
        { path: `${netfilter}udp_timeout_stream`, wanted: 1, rule: 'exactly' },
      ],
    )
  })

  test.each([
    [{ maxPerCore: 32_768, min: 131_072 }, 2, 131_072],
    [{ maxPerCore: 32_768, min: 131_072 }, 32, 1_048_576],
    [{ maxPerCore: 32_768, min: 131_072 }, 512, 1_048_576],
    [{ maxPerCore: 1, min: 123_456 }, 8, 123_456],
    [{ maxPerCore: 1, min: 2_000_000 }, 8, 2_000_000],
    [{ maxPerCore: 32_768, min: 2_000_000 }, 512, 1_048_576],
  ])('with %o and %d CPUs allows %d connections', (settings, cpus, max) => {
    expect(planConntrack({ ...nothing, ...settings }, cpus)[0]).toMatchObject({ path: `${netfilter}max`, wanted: max })
  })
})

/** Files in memory, some of them read-only. */
function someFiles(contents: Record<string, string | { readOnly: string }>) {
  const written: [string, string][] = []
  const files: SettingFiles = {
    read: (path) => {
      const content = contents[path]
      if (content === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`)
      return typeof content === 'string' ? content : content.readOnly
    },
    write: (path, value) => {
      if (typeof contents[path] !== 'string') throw new Error(`EROFS: read-only file system, open '${path}'`)
      contents[path] = value
      written.push([path, value])
    },
  }
  return { files, written }
}

function aLog() {
  const warnings: (LogValues | undefined)[] = []
  const log: Logger = { ...silentLogger, warn: (_message, values) => warnings.push(values) }
  return { log, warnings }
}

describe('applyHostSetup()', () => {
  test('writes what differs and nothing else', () => {
    const { files, written } = someFiles({
      [`${netfilter}max`]: '65536\n',
      [hashsize]: '100000\n',
      [`${netfilter}tcp_timeout_established`]: '432000\n',
      [`${netfilter}tcp_timeout_close_wait`]: '3600\n',
    })
    const { log, warnings } = aLog()
    const applied = applyHostSetup(planConntrack(defaults, 8), files, log)
    expect(written).toEqual([
      [`${netfilter}max`, '262144'],
      [`${netfilter}tcp_timeout_established`, '86400'],
    ])
    expect(applied.map(({ present, outcome }) => [present, outcome])).toEqual([
      [65_536, 'set'],
      [100_000, 'as wanted'],
      [432_000, 'set'],
      [3600, 'as wanted'],
    ])
    expect(warnings).toEqual([])
    expect(applyHostSetup(planConntrack(defaults, 8), files, log).every(({ outcome }) => outcome === 'as wanted')).toBe(
      true,
    )
  })

  test('warns about what is read-only, missing or odd, and goes on', () => {
    const { files, written } = someFiles({
      [`${netfilter}max`]: { readOnly: '65536\n' },
      [`${netfilter}tcp_timeout_established`]: 'strange\n',
      [`${netfilter}tcp_timeout_close_wait`]: '60\n',
    })
    const { log, warnings } = aLog()
    const applied = applyHostSetup(planConntrack(defaults, 8), files, log)
    expect(applied.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'failed', 'set'])
    expect(written).toEqual([[`${netfilter}tcp_timeout_close_wait`, '3600']])
    expect(warnings).toMatchObject([
      { path: `${netfilter}max`, wanted: 262_144, present: 65_536, err: expect.stringContaining('EROFS') },
      { path: hashsize, wanted: 65_536, present: 'unknown', err: expect.stringContaining('ENOENT') },
      { path: `${netfilter}tcp_timeout_established`, wanted: 86_400, present: 'unknown', err: expect.stringContaining('"strange"') }, // oxfmt-ignore
    ])
  })
})

test('planOomScoreAdj() plans the score, 0 included, and nothing without one', () => {
  expect(planOomScoreAdj(-999)).toEqual([{ path: '/proc/self/oom_score_adj', wanted: -999, rule: 'exactly' }])
  expect(planOomScoreAdj(0)).toHaveLength(1)
  expect(planOomScoreAdj(undefined)).toEqual([])
})

test('applyHostSetup() leaves an OOM score alone that is as wanted', () => {
  const { files, written } = someFiles({ '/proc/self/oom_score_adj': '-999\n' })
  expect(applyHostSetup(planOomScoreAdj(-999), files, silentLogger)[0]!.outcome).toBe('as wanted')
  expect(applyHostSetup(planOomScoreAdj(-998), files, silentLogger)[0]!.outcome).toBe('set')
  expect(written).toEqual([['/proc/self/oom_score_adj', '-998']])
})

test.each([
  ['0\n', 1],
  ['0-3\n', 4],
  ['0-3,8-11,15\n', 9],
])('countCpus(%j) is %d', (list, count) => {
  expect(countCpus(list)).toBe(count)
})

test.each(['', '3-1', 'x', '0-', '0,,1'])('countCpus(%j) is refused', (list) => {
  expect(() => countCpus(list)).toThrow('Cannot count the CPUs')
})

test('readNodeCpus() reads what is online, or falls back to what this process may use', () => {
  const real: SettingFiles = { read: (path) => readFileSync(path, 'utf8'), write: () => {} }
  expect(readNodeCpus(real)).toBeGreaterThanOrEqual(1)
  expect(readNodeCpus(someFiles({ '/sys/devices/system/cpu/online': '0-127\n' }).files)).toBe(128)
  expect(readNodeCpus(someFiles({}).files)).toBe(availableParallelism())
})
