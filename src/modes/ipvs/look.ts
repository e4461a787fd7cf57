// What the ipvs mode finds on this machine without changing anything. probe.ts finds the rest by trying.

import { count } from '../../lib/count.ts'
import { existsSync } from 'node:fs'
import { IpvsDriver } from '../../ipvs/driver.ts'
import { LinkDriver } from '../../links/driver.ts'
import { KernelError } from '../../lib/errors.ts'
import { readModuleState } from '../../system/kernel-modules.ts'
import type { Advice, LookOptions, ModeOutlook } from '../contract.ts'
import { adviseOnTables } from '../advise-on-tables.ts'
import { probeRules, readOutlines } from '../../nftables/probe.ts'
import { LINK, TABLE } from './plan/names.ts'
import { DEFAULT_SCHEDULER } from './plan/servers.ts'

export function lookForIpvs({ config }: LookOptions): ModeOutlook {
  const { lacks, warnings } = adviseOnTables(probeRules())
  const state = readState()
  const scheduler = `ip_vs_${config.ipvs.scheduler || DEFAULT_SCHEDULER}`
  const modules = state === 'missing' ? ['dummy'] : ['dummy', scheduler]
  return {
    lacks: [
      ...lacks,
      ...(state === 'missing' ? [lackOf('ip_vs')] : []),
      ...(state === 'works' && !existsSync('/proc/sys/net/ipv4/vs/conntrack') ? [NO_CONNTRACK] : []),
      ...modules.filter((name) => readModuleState(name) === 'missing').map(lackOf),
    ],
    warnings,
    uses: ['netlink, no programs', `scheduler ${scheduler.slice('ip_vs_'.length)}`],
  }
}

export function readPresentIpvs({ families }: LookOptions): string[] {
  const servers = countServers()
  return [
    ...(hasLink() ? [`link ${LINK}`] : []),
    ...(servers > 0 ? [count(servers, 'virtual server')] : []),
    ...readOutlines(TABLE, families).map(({ family, name }) => `table ${family} ${name}`),
  ]
}

const NO_CONNTRACK: Advice = {
  what: 'the kernel has IPVS without connection tracking (CONFIG_IP_VS_NFCT)',
  todo: 'boot a kernel with it, or choose another mode',
}

function lackOf(module: string): Advice {
  return {
    what: `the kernel module ${module} is missing`,
    todo: 'install it (Debian: linux-image, Ubuntu: linux-modules-extra, Fedora: kernel-modules), or choose another mode',
  }
}

/** The kernel's IPVS, or why it cannot be asked: it is asked only where that loads nothing. */
function openPresent(): IpvsDriver | 'can be loaded' | 'missing' {
  const state = readModuleState('ip_vs')
  if (state === 'missing' || state === 'can be loaded') return state
  return IpvsDriver.tryOpen() ?? 'missing'
}

function readState(): 'works' | 'can be loaded' | 'missing' {
  const driver = openPresent()
  if (typeof driver === 'string') return driver
  driver.close()
  return 'works'
}

function countServers(): number {
  const driver = openPresent()
  if (typeof driver === 'string') return 0
  try {
    return driver.readServers().length
  } catch (error) {
    // It does not tell a process without rights.
    if (error instanceof KernelError && error.errno === 'EPERM') return 0
    throw error
  } finally {
    driver.close()
  }
}

function hasLink(): boolean {
  using driver = new LinkDriver(LINK)
  return driver.exists()
}
