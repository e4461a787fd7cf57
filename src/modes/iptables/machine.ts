// The iptables mode on this machine: which iptables, its programs for each family, and the watch for changes by other programs.

import type { KubeProxyConfiguration } from '../../config/types.ts'
import { type Contention, Iptables } from '../../iptables/driver.ts'
import { deleteCounter, ensureCounter, readCounter } from '../../nfacct/counters.ts'
import {
  describePrograms,
  findPrograms,
  findProgramsWithRules,
  type FoundIptables,
  probeIptables,
} from '../../iptables/probe.ts'
import { type IptablesWatch, watchIptables } from '../../iptables/watch.ts'
import { UnsupportedError } from '../../lib/errors.ts'
import type { Family } from '../../lib/ip.ts'
import type { Logger } from '../../lib/log.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../../model/types.ts'
import { planLocalnetGuard } from './plan/base.ts'
import { hasLocalnetNote, planCleanup } from './plan/cleanup.ts'
import { iptablesPlanner, type IptablesPlanner } from './plan/planner.ts'
import { KUBE_PROXY_IPSETS } from './plan/ipset-names.ts'
import { CHAINS, COUNTERS } from './plan/names.ts'
import { type IptablesSettings, opensLocalhost } from './plan/settings.ts'
import { diffTables } from '../../iptables/diff-tables.ts'
import { KeptText } from '../../iptables/kept-text.ts'
import { TablesState } from '../../iptables/tables-state.ts'
import { hasRandomFully, type IptablesPrograms } from '../../iptables/programs.ts'
import { destroySets } from '../../ipset/destroy-sets.ts'
import { Script } from '../../iptables/script.ts'
import { settingFiles } from '../../system/setting-files.ts'
import { bridgeWarning, invalidPackets, mayOpenLocalhost } from './host-setup.ts'
import { type IptablesDriver, IptablesProgrammer } from './programmer.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { nfacctMetrics } from '../../metrics/kube-proxy.ts'
import { lookForIptables, readPresentChains } from './look.ts'
import { readIptables } from './walkable.ts'
import { dryRunIptables } from './dry-run.ts'
import type { ModeHost, ModeOptions, RunningMode } from '../contract.ts'
import type { Programmer, ProgrammerReports, SyncStats } from '../../reconcile/programmer.ts'
import { trafficCounters } from '../traffic.ts'
import { RouteLocalnet, takeBackLocalnet } from './route-localnet.ts'

export const iptablesMachine: ModeHost = {
  init: initIptables,
  giveBack: giveBackLocalnet,
  look: lookForIptables,
  readPresent: readPresentChains,
  readWalkable: readIptables,
  dryRun: dryRunIptables,
  open: openIptables,
  cleanup: cleanupIptables,
}

/** Other programs may change our tables all day long, and comparing takes the longer the more rules there are. */
const SHARED_TABLES = { groupMs: 50, share: 0.1, idleShare: 0.02 }

/** A text whose first piece is longer than this is restored faster when the kernel has no listener to tell about it. */
const LARGE_PIECE = 30_000

/** For a proxy that may not change kernel settings later. The rule that makes route_localnet safe comes before it. */
async function initIptables(config: KubeProxyConfiguration, log: Logger): Promise<void> {
  if (!mayOpenLocalhost({ ...config, ...config.iptables })) return
  let programs: IptablesPrograms
  try {
    programs = (await probeIptables([4])).programs
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error
    log.warn('Cannot prepare proxy mode iptables', { err: error.message })
    return
  }
  const driver = new Iptables({ programs, family: 4, onContention: () => {} })
  const ops = diffTables(await driver.read(), [], new TablesState(planLocalnetGuard()))
  await driver.restore(new KeptText(new Script(ops, programs.backend).text()))
  await new RouteLocalnet(driver, settingFiles, log).follow(true)
}

/** The rules stay until the other mode has its own: then nothing is left for which the one that makes it safe had to stay. */
async function giveBackLocalnet(log: Logger): Promise<void> {
  for (const programs of await findPrograms()) {
    const tables = await new Iptables({ programs, family: 4, onContention: () => {} }).read()
    if (hasLocalnetNote(tables)) takeBackLocalnet(settingFiles, log)
  }
}

/** Rejects with an UnsupportedError when iptables is missing, too old, or not supported by the kernel. */
export async function openIptables(options: ModeOptions): Promise<RunningMode> {
  const { config, families, log, clock, onForeignChange } = options
  const found = await probeIptables(families)
  logFound(found, log)
  const settings = readSettings(found, config)
  const planner = iptablesPlanner(settings)
  const locks = new LockLog(log)
  let counted = false
  const iptables = new Map(
    found.families.map((family) => {
      const onContention = (contention: Contention) => locks.note(family, contention)
      return [family, new Iptables({ programs: found.programs, family, onContention })]
    }),
  )
  const watch = watchIptables({
    iptables,
    canary: { chain: CHAINS.canary, tables: ['mangle', 'nat', 'filter'] },
    pollMs: config.syncPeriodMs,
    clock,
    onChange: (family) => onForeignChange(family),
    onPoll: (family) => onForeignChange(family, 'perhaps'),
    onFailure: (error) => log.error(error, 'Cannot look after the rules of iptables for now, trying again'),
  })
  return {
    programmer(family, reports) {
      const driver = iptables.get(family)
      if (driver === undefined) return new NoProgrammer()
      locks.metrics = reports.metrics
      if (!counted) reports.metrics.register(...nfacctMetrics(readCounter))
      counted = true
      const programmer = createIptablesProgrammer({ planner, driver: quietly(driver, watch), family, log, reports })
      const localnet = family === 4 ? new RouteLocalnet(driver, settingFiles, log) : undefined
      const after = async ({ node, written }: Compared) => {
        watch.canariesSet(family)
        await localnet?.follow(opensLocalhost(node, settings), written)
      }
      return new AttendedProgrammer({ programmer, after })
    },
    sharedTables: SHARED_TABLES,
    // With iptables-legacy the kernel may have no nftables: then the client gets this error.
    traffic: trafficCounters(found.programs.backend === 'nft' ? families : []),
    close: () => watch.close(),
  }
}

export interface CreateIptablesOptions {
  readonly planner: IptablesPlanner
  readonly driver: IptablesDriver
  readonly family: Family
  readonly log: Logger
  readonly reports: ProgrammerReports
}

export function createIptablesProgrammer({ planner, driver, family, log, reports }: CreateIptablesOptions): Programmer {
  const { metrics, onRefused } = reports
  const ipFamily = `IPv${family}` as const
  return new IptablesProgrammer({
    planner,
    driver,
    log: log.withValues({ ipFamily }),
    counts: {
      rules(table, total, written) {
        metrics.iptablesRules.with(table, ipFamily).set(total)
        metrics.iptablesRulesWritten.with(table, ipFamily).set(written)
      },
      restoreFailed(sync) {
        metrics.iptablesRestoreFailures.with(ipFamily).inc()
        if (sync === 'partial') metrics.iptablesPartialRestoreFailures.with(ipFamily).inc()
      },
    },
    onRefused,
  })
}

/** Removes the rules of every iptables that has any, for they may be left from another time. */
export async function cleanupIptables(log: Logger): Promise<void> {
  for (const programs of await findProgramsWithRules()) {
    for (const family of [4, 6] as const) {
      const iptables = new Iptables({ programs, family, onContention: () => {} })
      const tables = await iptables.read()
      // Before the rule goes that makes it safe.
      const isSafe = !hasLocalnetNote(tables) || takeBackLocalnet(settingFiles, log)
      const { ops, kept } = planCleanup(tables, isSafe ? 'remove' : 'keep')
      for (const chain of kept) log.warn('Left a chain that rules of another program use', { chain })
      if (ops.length === 0) continue
      await iptables.restore(new KeptText(new Script(ops, programs.backend).text()))
      log.info('Removed rules of iptables', { programs: describePrograms(programs), ipFamily: `IPv${family}` })
    }
  }
  for (const name of Object.values(COUNTERS)) deleteCounter(name)
  const sets = destroySets(KUBE_PROXY_IPSETS)
  if (sets.length > 0) log.info('Removed sets of ipset', { sets: sets.length })
}

function readSettings({ programs }: FoundIptables, { iptables, conntrack }: KubeProxyConfiguration): IptablesSettings {
  return {
    localhostNodePorts: iptables.localhostNodePorts ? 'allowed' : 'closed',
    invalidPackets: invalidPackets(settingFiles, conntrack.tcpBeLiberal),
    masqueradePorts: hasRandomFully(programs) ? 'fully' : 'no',
    counters: new Set(Object.values(COUNTERS).filter(ensureCounter)),
  }
}

function logFound({ programs, reason, warnings, families }: FoundIptables, log: Logger): void {
  log.info('Using iptables', { programs: describePrograms(programs), because: reason })
  for (const warning of warnings) log.warn(warning)
  for (const family of families) {
    const warning = bridgeWarning(settingFiles, family)
    if (warning !== undefined) log.warn(warning)
  }
}

/** Large changes while the kernel need not tell of them. */
function quietly(driver: Iptables, watch: IptablesWatch): IptablesDriver {
  return {
    backend: driver.backend,
    read: () => driver.read(),
    restore(text) {
      const [first = ''] = text
      return first.length < LARGE_PIECE ? driver.restore(text) : watch.quietly(() => driver.restore(text))
    },
    close: () => driver.close(),
  }
}

interface Attendance {
  readonly programmer: Programmer
  /** Called after each comparison, and again when it fails. */
  readonly after: (compared: Compared) => Promise<void>
}

interface Compared {
  readonly node: NodeView
  /** Rules had to be written. */
  readonly written: boolean
}

/** Sees to kernel settings when all rules have been compared. */
class AttendedProgrammer implements Programmer {
  readonly #attendance: Attendance
  /** Work that is left. */
  #compared: Compared | undefined

  constructor(attendance: Attendance) {
    this.#attendance = attendance
  }

  sync(node: NodeView, changes: readonly ServicePortChange[]): Promise<SyncStats> {
    return this.#attendance.programmer.sync(node, changes)
  }

  async syncAll(node: NodeView, views: Iterable<ServicePortView>): Promise<SyncStats> {
    const stats = await this.#attendance.programmer.syncAll(node, views)
    this.#compared = { node, written: stats.transactions > 0 || this.#compared?.written === true }
    return stats
  }

  async finish(): Promise<void> {
    if (this.#compared === undefined) return
    await this.#attendance.after(this.#compared)
    this.#compared = undefined
  }

  close(): void {
    this.#attendance.programmer.close()
  }
}

/** For a family that iptables cannot serve on this machine, which was warned about. */
class NoProgrammer implements Programmer {
  sync(): Promise<SyncStats> {
    return Promise.resolve({ transactions: 0, operations: 0, bytes: 0 })
  }

  syncAll(): Promise<SyncStats> {
    return this.sync()
  }

  close(): void {}
}

/** Logs which program holds the lock that we wait for. */
class LockLog {
  metrics: Metrics | undefined
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  note(family: Family, { holder, waitedMs }: Contention): void {
    const ipFamily = `IPv${family}`
    this.metrics?.iptablesLockWaits.with(ipFamily).inc()
    if (waitedMs === 0) this.#log.v(2)?.info('Waiting for the xtables lock', { ipFamily, holder })
    else this.#log.warn('Still waiting for the xtables lock', { ipFamily, holder, waitedMs })
  }
}
