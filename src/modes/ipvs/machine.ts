// The ipvs mode on this machine: the drivers of each family, and the watch for changes by other programs.

import { release } from 'node:os'
import { IpvsDriver, openIpvsTable } from '../../ipvs/driver.ts'
import { LinkDriver } from '../../links/driver.ts'
import { watchLink } from '../../links/watch.ts'
import type { TableDriver } from '../../nftables/table-driver.ts'
import { deleteTables, openWatchedTables } from '../../nftables/watched-tables.ts'
import type { Clock } from '../../lib/clock.ts'
import { closeAllNow } from '../../lib/close-all.ts'
import { type Cidr, cidrContains, type Family, joinHostPort, parseCidr, ipBytes } from '../../lib/ip.ts'
import type { Logger } from '../../lib/log.ts'
import { LINK, TABLE } from './plan/names.ts'
import { DEFAULT_SCHEDULER } from './plan/servers.ts'
import { formatServerId } from '../../ipvs/format.ts'
import type { Drained } from '../../ipvs/drain.ts'
import { applyHostSetup, wholeSeconds } from '../../system/host-setup.ts'
import { settingFiles, type SettingFiles } from '../../system/setting-files.ts'
import { planIpvsHostSetup } from './host-setup.ts'
import { checkScheduler, hasScheduler, probeIpvs } from './probe.ts'
import { IpvsProgrammer } from './programmer.ts'
import { Schedulers } from './schedulers.ts'
import { lookForIpvs, readPresentIpvs } from './look.ts'
import { readIpvs } from './walkable.ts'
import { openIpvsTraffic } from './traffic.ts'
import { trafficCounters } from '../traffic.ts'
import { dryRunIpvs } from './dry-run.ts'
import type { ModeHost, RunningMode } from '../contract.ts'
import { type FamilyAudit, IpvsTableWatch } from './table-watch.ts'
import type { Programmer, ProgrammerReports } from '../../reconcile/programmer.ts'

/** The section `ipvs` of the configuration, as far as it is not about periods. */
export interface IpvsSettings {
  /** Empty: rr. */
  readonly scheduler: string
  readonly excludeCIDRs: readonly string[]
  readonly strictARP: boolean
  /** 0 leaves a timeout as it is. */
  readonly tcpTimeoutMs: number
  readonly tcpFinTimeoutMs: number
  readonly udpTimeoutMs: number
  /** Connections to a backend that was removed are cut off after this long; absent: an hour. */
  readonly drainLimitMs?: number
}

export interface OpenIpvsOptions {
  readonly settings: IpvsSettings
  readonly families: readonly Family[]
  readonly clock: Clock
  readonly log: Logger
  readonly files: SettingFiles
  /** Called when another program changes what this mode has programmed, or the addresses of this machine change. */
  readonly onForeignChange: (family: Family) => void
}

const DEFAULT_DRAIN_LIMIT_MS = 60 * 60 * 1000

export const ipvsMachine: ModeHost = {
  init(config, log) {
    using driver = IpvsDriver.tryOpen()
    if (driver === undefined) log.warn('Cannot prepare proxy mode ipvs: this kernel has no IPVS (module ip_vs)')
    else prepareMachine(config.ipvs, { driver, files: settingFiles, log })
  },
  look: lookForIpvs,
  readPresent: readPresentIpvs,
  readWalkable: readIpvs,
  dryRun: dryRunIpvs,
  open: ({ config, ...options }) => openIpvs({ ...options, settings: config.ipvs, files: settingFiles }),
  cleanup: (log, { ipvs }) => cleanupIpvs(ipvs, log),
  // Servers and addresses are kube-proxy's by then; the table is ours alone, and what it refuses is long since out of date.
  cleanupLeftovers: (log) => deleteTables(TABLE, log),
}

/** Throws an UnsupportedError when the kernel lacks modules, a ConfigError when it does not have the scheduler. */
export function openIpvs(options: OpenIpvsOptions): RunningMode {
  const { settings, families, log, files, onForeignChange } = options
  probeIpvs(families)
  checkScheduler(settings.scheduler || DEFAULT_SCHEDULER)
  const driver = new IpvsDriver()
  prepareMachine(settings, { driver, files, log })
  driver.close()
  const tables = openWatchedTables({ table: TABLE, families, onForeignChange })
  const links = new Map(families.map((family) => [family, new LinkDriver(LINK)]))
  for (const link of links.values()) link.ensure()
  const linkWatch = watchLink(links, onForeignChange)
  const table = openIpvsTable()
  const refusals = trafficCounters(families)
  const tableWatch = new IpvsTableWatch({
    table,
    clock: options.clock,
    onForeignChange,
    onError: (error) => log.error(error, 'Cannot look whether another program changed virtual servers'),
  })
  return {
    programmer: (family, { onRefused }) =>
      createIpvsProgrammer({
        ...options,
        onRefused,
        family,
        rules: tables.driver(family),
        link: links.get(family)!,
        audit: tableWatch.of(family),
      }),
    traffic: (family) => openIpvsTraffic(family, refusals(family)),
    close: () =>
      closeAllNow(
        () => tables.close(),
        () => linkWatch.close(),
        () => tableWatch.close(),
        () => table.close(),
      ),
  }
}

/** Removes all that the mode put into this machine; harmless when it never ran. */
export function cleanupIpvs({ excludeCIDRs }: Pick<IpvsSettings, 'excludeCIDRs'>, log: Logger): void {
  // Only with the link are there virtual servers of ours. Without it, those that are there are another program's.
  using link = new LinkDriver(LINK)
  if (link.exists()) removeServers(excludeCIDRs, log)
  link.delete()
  deleteTables(TABLE, log)
}

export interface CreateIpvsOptions extends Omit<OpenIpvsOptions, 'families' | 'files' | 'onForeignChange'> {
  readonly family: Family
  readonly audit: FamilyAudit
  readonly rules: TableDriver
  readonly link: LinkDriver
  readonly onRefused?: ProgrammerReports['onRefused'] | undefined
}

export function createIpvsProgrammer(options: CreateIpvsOptions): Programmer {
  const { settings, clock, log, rules, link, family, audit, onRefused } = options
  const servers = new IpvsDriver()
  const scheduler = settings.scheduler || DEFAULT_SCHEDULER
  return new IpvsProgrammer({
    family,
    servers,
    link,
    rules,
    clock,
    scheduler,
    schedulers: new Schedulers({
      fallback: scheduler,
      has: (name) => hasScheduler(servers, name),
      onMissing: (service, reason) => {
        log.warn('A Service does not get the scheduler that it asks for', { servicePort: service, reason })
        onRefused?.(service, reason)
      },
    }),
    excludeCidrs: parseCidrs(settings.excludeCIDRs),
    drainLimitMs: settings.drainLimitMs ?? DEFAULT_DRAIN_LIMIT_MS,
    audit,
    onDrained: (drained) => logDrained(drained, log),
    onError: (error) => log.error(error, 'Cannot look after backends that are to go', { ipFamily: `IPv${family}` }),
  })
}

function removeServers(excludeCIDRs: readonly string[], log: Logger): void {
  using driver = IpvsDriver.tryOpen()
  if (driver === undefined) return
  const excluded = parseCidrs(excludeCIDRs)
  const isExcluded = (address: string) => excluded.some((cidr) => cidrContains(cidr, ipBytes(address)))
  const ours = driver.readServers().filter((server) => !isExcluded(server.address))
  driver.apply(ours.map((server) => ({ op: 'deleteServer', server })))
  log.info('Removed virtual servers', { count: ours.length })
}

/** Kernel settings, which are there once IPVS is loaded, and timeouts. What cannot be set is logged. */
function prepareMachine(
  { strictARP, tcpTimeoutMs, tcpFinTimeoutMs, udpTimeoutMs }: IpvsSettings,
  { driver, files, log }: { driver: IpvsDriver; files: SettingFiles; log: Logger },
): void {
  applyHostSetup(planIpvsHostSetup({ strictARP, kernelRelease: release() }), files, log)
  const timeouts = {
    tcpSeconds: wholeSeconds(tcpTimeoutMs),
    tcpFinSeconds: wholeSeconds(tcpFinTimeoutMs),
    udpSeconds: wholeSeconds(udpTimeoutMs),
  }
  if (Object.values(timeouts).some((value) => value > 0)) driver.setTimeouts(timeouts)
}

function logDrained(drained: readonly Drained[], log: Logger): void {
  for (const { server, destination, end } of drained) {
    const values = { server: formatServerId(server), backend: joinHostPort(destination.address, destination.port) }
    if (end === 'limit') log.warn('Cut off the connections of a removed backend', values)
    else log.v(2)?.info('A removed backend is gone', { ...values, because: end })
  }
}

function parseCidrs(texts: readonly string[]): Cidr[] {
  return texts.flatMap((text) => parseCidr(text) ?? [])
}
