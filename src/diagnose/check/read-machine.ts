// What this machine is like: read, and nothing else.

import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { release } from 'node:os'
import { splitHostPort } from '../../config/checks.ts'
import { standInFor } from '../../config/modes.ts'
import type { RunOptions } from '../../config/run-options.ts'
import type { KubeProxyConfiguration } from '../../config/types.ts'
import { modes } from '../../modes/all.ts'
import type { LookOptions, Mode, ModeOutlook } from '../../modes/contract.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Family } from '../../lib/ip.ts'
import { probeNftables } from '../../nftables/probe.ts'
import { type HostSetting, planConntrack, readNodeCpus } from '../../system/host-setup.ts'
import { readModuleState } from '../../system/kernel-modules.ts'
import { readNumber, readText } from '../read-text.ts'
import type { ConntrackFacts, KernelFacts, OtherFacts, PortFact, SettingFact } from './facts.ts'
import { findProxies } from './find-proxies.ts'
import { isTaken, parseListeners } from './parse-listeners.ts'

/** Modules, and the file that shows that one is at work, also where it is built in. */
const MODULES: Readonly<Record<string, string>> = {
  nf_conntrack: '/proc/sys/net/netfilter/nf_conntrack_max',
  br_netfilter: '/proc/sys/net/bridge',
  ip_vs: '/proc/net/ip_vs',
  dummy: '/sys/module/dummy',
}
const CONNTRACK = '/proc/sys/net/netfilter/nf_conntrack_'

export function readKernel(): KernelFacts {
  return {
    release: release(),
    nftables: probeNftables(),
    modules: Object.fromEntries(
      Object.entries(MODULES).map(([name, file]) => [name, existsSync(file) ? 'loaded' : readModuleState(name)]),
    ),
  }
}

export function readConntrack(): ConntrackFacts {
  return {
    count: readNumber(`${CONNTRACK}count`),
    max: readNumber(`${CONNTRACK}max`),
    module: readModuleState('nf_conntrack'),
  }
}

/** The settings of connection tracking that the configuration asks for, and what they are now. */
export function readSettings({ conntrack }: KubeProxyConfiguration): SettingFact[] {
  const cpus = readNodeCpus({ read: (path) => readFileSync(path, 'utf8'), write: () => {} })
  return planConntrack(conntrack, cpus).map((setting) => readSetting(setting))
}

/** What each mode finds, in the order in which they are listed. */
export async function readModes(
  config: KubeProxyConfiguration,
  families: readonly Family[],
): Promise<Map<string, ModeOutlook>> {
  const outlooks = new Map<string, ModeOutlook>()
  for (const mode of modes) outlooks.set(mode.name, await look(mode, { config, families }))
  return outlooks
}

/** The same, but only up to the mode that can run: the one that was asked for, and those that stand in for it. */
export async function readPlannedModes(
  { config, standIns }: Pick<RunOptions, 'config' | 'standIns'>,
  families: readonly Family[],
): Promise<Map<string, ModeOutlook>> {
  const outlooks = new Map<string, ModeOutlook>()
  let mode: Mode | undefined = modes.find(({ name }) => name === config.mode)
  while (mode !== undefined) {
    const outlook = await look(mode, { config, families })
    outlooks.set(mode.name, outlook)
    if (outlook.lacks.length === 0) break
    const next = standInFor(mode, standIns)
    mode = modes.find(({ name }) => name === next)
  }
  return outlooks
}

/** If the kernel refuses one answer, the others still count. */
export async function look(mode: Mode, options: LookOptions): Promise<ModeOutlook> {
  try {
    return (await (await mode.load()).look?.(options)) ?? { lacks: [], warnings: [], uses: [] }
  } catch (error) {
    const lack = { what: messageOf(error), todo: 'run the check as root, as the proxy would run' }
    return { lacks: [lack], warnings: [], uses: [] }
  }
}

/** What each mode has in the kernel. */
export async function readRules(
  config: KubeProxyConfiguration,
  families: readonly Family[],
): Promise<Map<string, readonly string[]>> {
  const rules = new Map<string, readonly string[]>()
  for (const mode of modes) {
    try {
      rules.set(mode.name, (await (await mode.load()).readPresent?.({ config, families })) ?? [])
    } catch {
      // Refused answers appear among the things that the mode lacks.
    }
  }
  return rules
}

export function readOthers({
  healthzBindAddress,
  metricsBindAddress,
}: KubeProxyConfiguration): Pick<OtherFacts, 'processes' | 'ports'> {
  const listeners = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path) => parseListeners(readText(path)))
  const port = (name: string, address: string): PortFact[] => {
    const { host, port: number } = splitHostPort(address) ?? { host: '', port: '' }
    return host === '' ? [] : [{ name, address, isTaken: isTaken(listeners, host, Number(number)) }]
  }
  return {
    processes: findProxies(),
    ports: [...port('healthz', healthzBindAddress), ...port('metrics', metricsBindAddress)],
  }
}

function readSetting(setting: HostSetting): SettingFact {
  return { ...setting, present: readNumber(setting.path), isWritable: isWritable(setting.path) }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}
