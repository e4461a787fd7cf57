// Derives the settings of the parts of the proxy from the configuration.

import { hostname } from 'node:os'
import type { KubeProxyConfiguration, LoadedConfiguration } from '../config/types.ts'
import { featureEnabled } from '../config/feature-gates.ts'
import { splitHostPort } from '../config/checks.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { BALANCES } from '../model/balance.ts'
import type { OtherSettings } from '../model/config-problems.ts'
import type { NodeSettings } from '../model/node-view.ts'
import type { Periods } from '../reconcile/pacing.ts'
import { applyHostSetup, planConntrack, planOomScoreAdj, readNodeCpus } from '../system/host-setup.ts'
import { settingFiles } from '../system/setting-files.ts'
import { blockOf } from '../config/modes.ts'
import { valueAt } from '../config/value-at.ts'
import { modeNamed } from '../modes/all.ts'
import type { Mode } from '../modes/contract.ts'

/** Fields that a running proxy cannot change: a new one takes over from it, and the rules stay meanwhile. */
const restartFields = [
  'mode',
  'clientConnection',
  'hostnameOverride',
  'featureGates',
  'enableProfiling',
  'socketBalancing',
] as const

export function restartsFor(mode: Mode, before: KubeProxyConfiguration, after: KubeProxyConfiguration): boolean {
  return [...restartFields, ...mode.restartFields].some(
    (path) => JSON.stringify(valueAt(before, path)) !== JSON.stringify(valueAt(after, path)),
  )
}

/** As kube-proxy: lower case, and the host's name where none is given. */
export function nodeNameOf({ hostnameOverride }: KubeProxyConfiguration): string {
  return (hostnameOverride.trim() || hostname()).toLowerCase()
}

/** Goes by the configured mode, also where a stand-in runs: that is what the operator had in mind. */
export function nodeSettings(config: KubeProxyConfiguration): NodeSettings {
  const { detectLocalMode, detectLocal, nodePortAddresses, featureGates } = config
  const isListening = modeNamed(config.mode).semantics.localhostNodePorts === 'by listeners'
  const bit = config[blockOf(config.mode).masquerade].masqueradeBit
  return {
    nodeName: nodeNameOf(config),
    bindAddress: config.bindAddress,
    detectLocal: { ...detectLocal, mode: detectLocalMode },
    nodePortAddresses,
    localhostNodePorts: isListening && featureEnabled(featureGates, 'KubeProxyNFTablesLocalhostNodePorts'),
    answerPing: config.answerPing,
    balance: BALANCES.find((each) => each === config.balance),
    masqueradeAll: config.masqueradeAll,
    masqueradeBit: bit ?? DEFAULT_MASQUERADE_BIT,
  }
}

export function otherSettings(config: KubeProxyConfiguration, families: readonly Family[]): OtherSettings {
  const { healthzBindAddress, metricsBindAddress, ipvs } = config
  const hostOf = (address: string) => splitHostPort(address)?.host ?? ''
  const servers = {
    healthzBindAddress: hostOf(healthzBindAddress),
    metricsBindAddress: hostOf(metricsBindAddress),
  }
  return { excludeCIDRs: ipvs.excludeCIDRs, servers, families }
}

export function periodsOf({ config, minSyncPeriod }: LoadedConfiguration, mode: Mode): Periods {
  const { syncPeriodMs, minSyncPeriodMs } = config
  return {
    minMs: minSyncPeriod === 'defaulted' && mode.changesAreCheap ? 0 : minSyncPeriodMs,
    maxMs: syncPeriodMs,
    retryMs: Math.min(FIRST_RETRY_MS, syncPeriodMs),
    maxRetryMs: syncPeriodMs,
  }
}

/** Writes kernel settings and the OOM score. Logs those that it cannot write. */
export function applySettings(config: KubeProxyConfiguration, log: Logger): void {
  applyKernelSettings(config, log)
  applyHostSetup(planOomScoreAdj(config.oomScoreAdj), settingFiles, log)
}

/** Those of the node alone, which outlive this process. */
export function applyKernelSettings(config: KubeProxyConfiguration, log: Logger): void {
  applyHostSetup(planConntrack(config.conntrack, readNodeCpus(settingFiles)), settingFiles, log)
}

const DEFAULT_MASQUERADE_BIT = 14
const FIRST_RETRY_MS = 100
