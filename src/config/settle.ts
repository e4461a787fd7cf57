// Between the file's shape, which has some settings once per mode, and the one that the program runs with.

import type { FileConfiguration } from './fields.ts'
import { blockOf } from './modes.ts'
import type { DetectLocalMode, KubeProxyConfiguration } from './types.ts'

/** Takes from the file what concerns the mode that it names; no mode counts as iptables, as in kube-proxy. */
export function settle(file: FileConfiguration): KubeProxyConfiguration {
  const { iptables, ipvs, nftables, clusterCIDR, portRange, udpIdleTimeoutMs, ...rest } = file
  const { periods, masquerade } = blockOf(file.mode)
  const { syncPeriodMs, minSyncPeriodMs } = file[periods]
  return {
    ...rest,
    syncPeriodMs,
    minSyncPeriodMs,
    masqueradeAll: file[masquerade].masqueradeAll,
    iptables: { masqueradeBit: iptables.masqueradeBit, localhostNodePorts: iptables.localhostNodePorts },
    ipvs: omitPeriods(ipvs),
    // In the versions that had it, 0 left the decision to maxPerCore and min.
    conntrack: { ...file.conntrack, max: file.conntrack.max === 0 ? null : file.conntrack.max },
    nftables: { masqueradeBit: nftables.masqueradeBit },
    // Any text until validation has seen it.
    detectLocalMode: file.detectLocalMode as DetectLocalMode,
    detectLocal: { ...file.detectLocal, clusterCIDRs: clusterCIDR === '' ? [] : clusterCIDR.split(',') },
    userspace: { portRange, udpIdleTimeoutMs },
  }
}

/** The file that says the same. The periods of modes that are not active are zero, as kube-proxy writes them. */
export function unsettle(config: KubeProxyConfiguration): FileConfiguration {
  const { syncPeriodMs, minSyncPeriodMs, masqueradeAll, userspace, detectLocal, ...rest } = config
  const { clusterCIDRs, ...detectLocalRest } = detectLocal
  const block = blockOf(config.mode)
  const periodsOf = (name: typeof block.periods) =>
    block.periods === name ? { syncPeriodMs, minSyncPeriodMs } : { syncPeriodMs: 0, minSyncPeriodMs: 0 }
  const masqueradeOf = (name: typeof block.masquerade) => ({
    masqueradeAll: block.masquerade === name && masqueradeAll,
  })
  return {
    ...rest,
    iptables: { ...config.iptables, ...periodsOf('iptables'), ...masqueradeOf('iptables') },
    ipvs: { ...config.ipvs, ...periodsOf('ipvs') },
    nftables: { ...config.nftables, ...periodsOf('nftables'), ...masqueradeOf('nftables') },
    detectLocal: detectLocalRest,
    clusterCIDR: clusterCIDRs.join(','),
    ...userspace,
  }
}

function omitPeriods(ipvs: FileConfiguration['ipvs']): KubeProxyConfiguration['ipvs'] {
  const { syncPeriodMs: _sync, minSyncPeriodMs: _minSync, ...rest } = ipvs
  return rest
}
