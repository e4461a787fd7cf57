// Kernel settings of the node that the proxy adjusts when it starts: connection tracking, and its own OOM score.
//
// What is wanted is planned first, as data; applying it goes on past whatever cannot be set. Upstream ends instead,
// which has kept whole control planes from starting where settings are read-only (kubernetes issue 141943).

import { availableParallelism } from 'node:os'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/log.ts'
import type { SettingFiles } from './setting-files.ts'

/** The section `conntrack` of the configuration, durations in milliseconds. 0 leaves a setting as it is. */
export interface ConntrackSettings {
  /** Of old versions: the limit, whatever maxPerCore and min say. */
  readonly max?: number | null
  readonly maxPerCore: number
  readonly min: number
  readonly tcpEstablishedTimeoutMs: number
  readonly tcpCloseWaitTimeoutMs: number
  readonly tcpBeLiberal: boolean
  readonly udpTimeoutMs: number
  readonly udpStreamTimeoutMs: number
}

/** A file and the number that it shall hold: exactly that, or at least that. */
export interface HostSetting {
  readonly path: string
  readonly wanted: number
  readonly rule: 'exactly' | 'at least'
}

/** What became of a setting. `present` is what it held before; undefined when it could not be read. */
export interface AppliedSetting extends HostSetting {
  readonly present: number | undefined
  readonly outcome: 'as wanted' | 'set' | 'failed'
}

// More than this costs hundreds of megabytes on machines with many cores.
const MOST_CONNECTIONS = 1_048_576

const netfilter = '/proc/sys/net/netfilter/nf_conntrack_'

/** What the configuration asks for on a machine with so many CPUs, in the order in which it is to be applied. */
export function planConntrack(settings: ConntrackSettings, cpus: number): HostSetting[] {
  const max = conntrackMax(settings, cpus)
  const plan: HostSetting[] = []
  const want = (name: string, wanted: number): void => {
    if (wanted > 0) plan.push({ path: netfilter + name, wanted, rule: 'exactly' })
  }
  want('max', max)
  // The kernel keeps about four entries per bucket without long searches.
  const buckets = Math.floor(max / 4)
  if (buckets > 0) {
    plan.push({ path: '/sys/module/nf_conntrack/parameters/hashsize', wanted: buckets, rule: 'at least' })
  }
  want('tcp_timeout_established', wholeSeconds(settings.tcpEstablishedTimeoutMs))
  want('tcp_timeout_close_wait', wholeSeconds(settings.tcpCloseWaitTimeoutMs))
  want('tcp_be_liberal', settings.tcpBeLiberal ? 1 : 0)
  want('udp_timeout', wholeSeconds(settings.udpTimeoutMs))
  want('udp_timeout_stream', wholeSeconds(settings.udpStreamTimeoutMs))
  return plan
}

/** The OOM score that this process shall have, -1000 (never killed) to 1000; undefined leaves it as it is. */
export function planOomScoreAdj(score: number | undefined): HostSetting[] {
  return score === undefined ? [] : [{ path: '/proc/self/oom_score_adj', wanted: score, rule: 'exactly' }]
}

/** Sets what is not as wanted. What cannot be set is logged with the value that it has, and left. */
export function applyHostSetup(plan: readonly HostSetting[], files: SettingFiles, log: Logger): AppliedSetting[] {
  return plan.map((setting) => {
    const { path, wanted, rule } = setting
    let present: number | undefined
    try {
      present = parseNumber(files.read(path))
      if (present === wanted || (rule === 'at least' && present > wanted)) {
        return { ...setting, present, outcome: 'as wanted' }
      }
      files.write(path, String(wanted))
      log.info('Changed a kernel setting', { path, from: present, to: wanted })
      return { ...setting, present, outcome: 'set' }
    } catch (error) {
      log.warn('Cannot change a kernel setting, going on with what it is', {
        path,
        wanted,
        present: present ?? 'unknown',
        err: messageOf(error),
      })
      return { ...setting, present, outcome: 'failed' }
    }
  })
}

/**
 * The CPUs of the machine that are online: the table of connections is the machine's, so the CPUs that this process may
 * use do not matter, but for where nothing else can be read.
 */
export function readNodeCpus(files: SettingFiles): number {
  try {
    return countCpus(files.read('/sys/devices/system/cpu/online'))
  } catch {
    return availableParallelism()
  }
}

/** How many CPUs a list such as `0-3,8` names. */
export function countCpus(list: string): number {
  let count = 0
  for (const part of list.trim().split(',')) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part)
    const size = match === null ? 0 : Number(match[2] ?? match[1]) - Number(match[1]) + 1
    if (size < 1) throw new RangeError(`Cannot count the CPUs in ${JSON.stringify(list)}: must be a list such as 0-3,8`)
    count += size
  }
  return count
}

function conntrackMax({ max, maxPerCore, min }: ConntrackSettings, cpus: number): number {
  if (max !== undefined && max !== null && max > 0) return max
  if (maxPerCore <= 0) return 0
  const scaled = maxPerCore * cpus
  // As upstream: the limit is for what was computed, not for a minimum that the operator chose.
  return scaled > MOST_CONNECTIONS ? MOST_CONNECTIONS : Math.max(scaled, min)
}

/** The kernel counts in seconds. Something shorter than one is still more than nothing, which would end every flow. */
export function wholeSeconds(ms: number): number {
  return ms <= 0 ? 0 : Math.max(1, Math.floor(ms / 1000))
}

function parseNumber(text: string): number {
  const trimmed = text.trim()
  if (!/^-?\d+$/.test(trimmed)) throw new RangeError(`it holds ${JSON.stringify(trimmed)}, which is no number`)
  return Number(trimmed)
}
