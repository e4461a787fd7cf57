// Converts between the file's shape, which has some settings once per mode, and the program's.

import type { FileConfiguration } from './fields.ts'
import { blockOf } from './modes.ts'
import type { DetectLocalMode, KubeProxyConfiguration } from './types.ts'

/** Takes the settings of the file's mode. As in kube-proxy, no mode counts as iptables. */
export function settle(file: FileConfiguration): KubeProxyConfiguration {
  const { iptables, ipvs, nftables, clusterCIDR, portRange, udpIdleTimeoutMs, chooseAtConnect, ...rest } = file
  const { periods, masquerade } = blockOf(file.mode)
  const { syncPeriodMs, minSyncPeriodMs } = file[periods]
  return {
    ...rest,
    syncPeriodMs,
    minSyncPeriodMs,
    masqueradeAll: file[masquerade].masqueradeAll,
    iptables: { masqueradeBit: iptables.masqueradeBit, localhostNodePorts: iptables.localhostNodePorts },
    ipvs: omitPeriods(ipvs),
    // In the versions that had it, 0 meant: by maxPerCore and min.
    conntrack: { ...file.conntrack, max: file.conntrack.max === 0 ? null : file.conntrack.max },
    nftables: { masqueradeBit: nftables.masqueradeBit },
    // Not validated yet.
    detectLocalMode: file.detectLocalMode as DetectLocalMode,
    detectLocal: { ...file.detectLocal, clusterCIDRs: clusterCIDR === '' ? [] : clusterCIDR.split(',') },
    userspace: { portRange, udpIdleTimeoutMs },
    socketBalancing: file.socketBalancing || chooseAtConnect,
  }
}

/** The file of a configuration. As in kube-proxy, the periods of inactive modes are zero. */
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
    chooseAtConnect: '',
    ...userspace,
  }
}

function omitPeriods(ipvs: FileConfiguration['ipvs']): KubeProxyConfiguration['ipvs'] {
  const { syncPeriodMs: _sync, minSyncPeriodMs: _minSync, ...rest } = ipvs
  return rest
}
