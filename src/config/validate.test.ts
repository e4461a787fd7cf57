import { expect, test } from 'vitest'
import { modes } from '../modes/all.ts'
import { applyDefaults } from './defaults.ts'
import { settle } from './settle.ts'
import type { KubeProxyConfiguration } from './types.ts'
import { validateConfiguration } from './validate.ts'

const defaults: KubeProxyConfiguration = { ...settle(applyDefaults({})), mode: 'nftables' }

function pathsOf(change: Partial<KubeProxyConfiguration>): string[] {
  return validateConfiguration({ ...defaults, ...change }, modes).map(({ path }) => path)
}

test('validateConfiguration() accepts the defaults', () => {
  expect(pathsOf({})).toEqual([])
})

test.each<[string, Partial<KubeProxyConfiguration>]>([
  ['bindAddress', { bindAddress: 'host' }],
  ['configSyncPeriod', { configSyncPeriodMs: 0 }],
  ['nftables.syncPeriod', { syncPeriodMs: 0 }],
  ['nftables.minSyncPeriod', { minSyncPeriodMs: -1 }],
  ['clientConnection.burst', { clientConnection: { ...defaults.clientConnection, burst: -1 } }],
  ['oomScoreAdj', { oomScoreAdj: 1001 }],
  ['oomScoreAdj', { oomScoreAdj: -1001 }],
  ['iptables.masqueradeBit', { iptables: { ...defaults.iptables, masqueradeBit: -1 } }],
  ['conntrack.max', { conntrack: { ...defaults.conntrack, max: -1 } }],
  ['conntrack.maxPerCore', { conntrack: { ...defaults.conntrack, maxPerCore: -1 } }],
  ['conntrack.tcpCloseWaitTimeout', { conntrack: { ...defaults.conntrack, tcpCloseWaitTimeoutMs: -1 } }],
  ['conntrack.udpStreamTimeout', { conntrack: { ...defaults.conntrack, udpStreamTimeoutMs: -1 } }],
  ['detectLocalMode', { detectLocalMode: 'Magic' as 'NodeCIDR' }],
  ['detectLocal.bridgeInterface', { detectLocalMode: 'BridgeInterface' }],
  ['detectLocal.interfaceNamePrefix', { detectLocalMode: 'InterfaceNamePrefix' }],
  ['showHiddenMetricsForVersion', { showHiddenMetricsForVersion: '1.35' }],
  ['socketBalancing', { socketBalancing: 'kubepods.slice' }],
  ['socketBalancing', { socketBalancing: 'pods', mode: 'ipvs' }],
  ['socketBalancing', { socketBalancing: 'pods', mode: 'userspace' }],
  ['logging.format', { logging: { ...defaults.logging, format: 'xml' } }],
  ['logging.flushFrequency', { logging: { ...defaults.logging, flushFrequencyMs: 0 } }],
])('validateConfiguration() names %s when it is wrong', (path, change) => {
  expect(pathsOf(change)).toEqual([path])
})

test('validateConfiguration() judges the ipvs and nftables blocks only when their mode is active', () => {
  const wrong = {
    ipvs: { ...defaults.ipvs, excludeCIDRs: ['x'], tcpTimeoutMs: -1 },
    nftables: { masqueradeBit: 99 },
  }
  expect(pathsOf({ mode: 'iptables', ...wrong })).toEqual([])
  expect(pathsOf({ mode: 'ipvs', ...wrong })).toEqual(['ipvs.excludeCIDRs[0]', 'ipvs.tcpTimeout'])
  expect(pathsOf({ mode: 'nftables', ...wrong })).toEqual(['nftables.masqueradeBit'])
})

test.each<[readonly string[], readonly string[]]>([
  [[], []],
  [['10.0.0.0/8'], []],
  [['10.0.0.0/8', 'fd00::/8'], []],
  [['10.0.0.0/8', '11.0.0.0/8'], ['clusterCIDR']],
  [['10.0.0.0/8', 'x'], ['clusterCIDR[1]']],
  [['10.0.0.0/8', 'fd00::/8', '11.0.0.0/8'], ['clusterCIDR']],
])('validateConfiguration() judges the cluster CIDRs %j', (clusterCIDRs, paths) => {
  const detectLocal = { ...defaults.detectLocal, clusterCIDRs }
  expect(pathsOf({ detectLocalMode: 'ClusterCIDR', detectLocal })).toEqual(paths)
  expect(pathsOf({ detectLocalMode: 'NodeCIDR', detectLocal })).toEqual([])
})

test('validateConfiguration() wants a gate for split streams and buffers, and text for vmodule', () => {
  const logging = {
    ...defaults.logging,
    format: 'json',
    vmodule: [{ filePattern: 'a', verbosity: 1 }],
    options: { text: { splitStream: true, infoBufferSize: 0 }, json: { splitStream: false, infoBufferSize: 1 } },
  }
  expect(pathsOf({ logging })).toEqual([
    'logging.vmodule',
    'logging.options.text.splitStream',
    'logging.options.json.infoBufferSize',
  ])
  expect(pathsOf({ logging, featureGates: { LoggingAlphaOptions: true } })).toEqual(['logging.vmodule'])
})

test('validateConfiguration() refuses modes that do not exist, with the list of those that do', () => {
  const messageFor = (mode: string, available: typeof modes, gates: Record<string, boolean> = {}) =>
    validateConfiguration({ ...defaults, mode, featureGates: gates }, available).find(({ path }) => path === 'mode')
      ?.message
  expect(messageFor('teleport', modes)).toBe('must be one of iptables, ipvs, nftables, userspace')
  expect(messageFor('ipvs', modes.slice(0, 1))).toBe('must be iptables')
  expect(messageFor('kernelspace', modes)).toMatch(/is for Windows; must be one of/)
  expect(messageFor('ipvs', modes, { KubeProxyIPVS: false })).toBe(
    'the mode ipvs is turned off by a feature gate; must be one of iptables, nftables, userspace',
  )
  expect(messageFor('ipvs', modes)).toBeUndefined()
})
