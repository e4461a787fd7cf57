// What this machine lacks for the ipvs mode.

import { existsSync } from 'node:fs'
import { IpvsDriver } from '../../ipvs/driver.ts'
import { LinkDriver } from '../../links/driver.ts'
import { NftablesDriver } from '../../nftables/driver.ts'
import { ConfigError, KernelError, UnsupportedError } from '../../lib/errors.ts'
import type { Family } from '../../lib/ip.ts'
import { TABLE } from './plan/names.ts'
import { nftFamily } from '../../nftables/language.ts'
import type { VirtualServer } from '../../ipvs/types.ts'

/** The schedulers of `--ipvs-scheduler` that Linux has. */
export const SCHEDULERS = ['rr', 'wrr', 'lc', 'wlc', 'lblc', 'lblcr', 'dh', 'sh', 'mh', 'sed', 'nq'] as const

/** Addresses for documentation (RFC 5737, RFC 3849), for virtual servers that exist for a moment. */
const PROBE: Readonly<Record<Family, string>> = { 4: '198.51.100.0', 6: '2001:db8::' }
const PROBE_PORT = 20000
const PROBE_LINK = 'kube-ipvs-probe'

/**
 * Throws an UnsupportedError that names the kernel modules that are missing. The kernel loads what it can when it is asked,
 * so whatever is named could not be loaded. Leaves nothing behind.
 */
export function probeIpvs(families: readonly Family[]): void {
  const missing = [...probeServers(families), ...probeLink(), ...probeRules(families)]
  if (missing.length === 0) return
  const [noun, verb] = missing.length === 1 ? ['module', 'is'] : ['modules', 'are']
  throw new UnsupportedError('proxy mode ipvs', `the kernel ${noun} ${missing.join(', ')} ${verb} missing`)
}

/** Throws a ConfigError that lists the schedulers of this kernel when it does not have the one that is wanted. */
export function checkScheduler(scheduler: string): void {
  using driver = new IpvsDriver()
  if (hasScheduler(driver, scheduler)) return
  const present = SCHEDULERS.filter((name) => hasScheduler(driver, name))
  const message = `this kernel has no such scheduler; it has ${present.join(', ')}`
  throw new ConfigError([{ path: 'ipvs.scheduler', value: scheduler, message }])
}

function probeServers(families: readonly Family[]): string[] {
  using driver = IpvsDriver.tryOpen()
  if (driver === undefined) return ['ip_vs']
  const missing: string[] = []
  // Any scheduler will do, and every kernel with IPVS that was ever built has rr.
  for (const family of families) {
    const refusal = tryServer(driver, { family, scheduler: 'rr' })
    if (refusal === 'ENOENT') missing.push('ip_vs_rr')
    else if (refusal !== undefined) missing.push(`ip_vs with CONFIG_IP_VS_IPV6 (${refusal})`)
  }
  if (!existsSync('/proc/sys/net/ipv4/vs/conntrack')) missing.push('ip_vs with CONFIG_IP_VS_NFCT')
  return [...new Set(missing)]
}

function probeLink(): string[] {
  using driver = new LinkDriver(PROBE_LINK)
  try {
    driver.ensure()
    driver.delete()
    return []
  } catch (error) {
    if (error instanceof UnsupportedError) return ['dummy']
    throw error
  }
}

/** Asks for the table, which need not exist. A kernel without nftables does not know the question. */
function probeRules(families: readonly Family[]): string[] {
  try {
    for (const family of families) {
      using driver = new NftablesDriver({ family: nftFamily(family), table: TABLE })
      driver.generation()
    }
    return []
  } catch (error) {
    if (error instanceof KernelError && ['EINVAL', 'EOPNOTSUPP', 'EPROTONOSUPPORT'].includes(error.errno)) {
      return ['nf_tables']
    }
    throw error
  }
}

/** The kernel loads the module if there is one. */
export function hasScheduler(driver: Pick<IpvsDriver, 'apply'>, scheduler: string): boolean {
  return tryServer(driver, { family: 4, scheduler }) !== 'ENOENT'
}

/** Adds a virtual server and deletes it again; what the kernel refuses it with. */
function tryServer(
  driver: Pick<IpvsDriver, 'apply'>,
  { family, scheduler }: Pick<VirtualServer, 'family' | 'scheduler'>,
) {
  const server: VirtualServer = {
    family,
    protocol: 'TCP',
    address: PROBE[family],
    port: PROBE_PORT,
    scheduler,
    schedulerFlags: 0,
    persistenceSeconds: undefined,
  }
  try {
    driver.apply([
      { op: 'addServer', server },
      { op: 'deleteServer', server },
    ])
    return undefined
  } catch (error) {
    if (error instanceof KernelError) return error.errno
    throw error
  }
}
