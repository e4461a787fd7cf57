import { expect, test } from 'vitest'
import { modes } from '../modes/all.ts'
import { ConfigError } from '../lib/errors.ts'
import { loadConfiguration } from './load.ts'

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n'

function load(body: string, available = modes) {
  const { loaded, warnings } = loadConfiguration(head + body, { modes: available })
  return { ...loaded, warnings }
}

function errorsOf(text: string): string[] {
  try {
    loadConfiguration(text, { modes })
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).message.split('\n')
  }
  return []
}

test('loadConfiguration() fills in the defaults of an empty file', () => {
  const { config, mode, minSyncPeriod, warnings } = load('')
  expect(config).toMatchObject({
    mode: 'iptables',
    detectLocalMode: 'ClusterCIDR',
    bindAddress: '0.0.0.0',
    healthzBindAddress: '0.0.0.0:10256',
    metricsBindAddress: '127.0.0.1:10249',
    syncPeriodMs: 30_000,
    minSyncPeriodMs: 1000,
    masqueradeAll: false,
    nodePortAddresses: [],
    oomScoreAdj: -999,
    configSyncPeriodMs: 900_000,
    conntrack: { maxPerCore: 32768, min: 131072, max: null, tcpEstablishedTimeoutMs: 86_400_000 },
    userspace: { portRange: '', udpIdleTimeoutMs: 250 },
  })
  expect({ mode, minSyncPeriod, warnings }).toEqual({ mode: 'defaulted', minSyncPeriod: 'defaulted', warnings: [] })
})

test('loadConfiguration() reads JSON too', () => {
  const text =
    '{\n\t"apiVersion": "kubeproxy.config.k8s.io/v1alpha1",\n\t"kind": "KubeProxyConfiguration",\n\t"mode": "ipvs"\n}'
  expect(loadConfiguration(text, { modes }).loaded.config.mode).toBe('ipvs')
})

test('loadConfiguration() takes periods and masqueradeAll from the block of the active mode', () => {
  const body = `
iptables: {syncPeriod: 1m, minSyncPeriod: 2s, masqueradeAll: true}
nftables: {syncPeriod: 3m, minSyncPeriod: 4s}
ipvs: {syncPeriod: 5m, minSyncPeriod: 6s}
`
  const settled = (mode: string) => {
    const { syncPeriodMs, minSyncPeriodMs, masqueradeAll } = load(`mode: ${mode}${body}`).config
    return [syncPeriodMs, minSyncPeriodMs, masqueradeAll]
  }
  expect(settled('iptables')).toEqual([60_000, 2000, true])
  expect(settled('nftables')).toEqual([180_000, 4000, false])
  expect(settled('ipvs')).toEqual([300_000, 6000, true])
})

test('loadConfiguration() tells a minimum period that was set from one that was not', () => {
  expect(load('mode: nftables\nnftables: {minSyncPeriod: 1s}').minSyncPeriod).toBe('given')
  expect(load('mode: nftables\nnftables: {minSyncPeriod: 0s}').minSyncPeriod).toBe('defaulted')
  expect(load('mode: nftables\niptables: {minSyncPeriod: 1s}').minSyncPeriod).toBe('defaulted')
})

test('loadConfiguration() reads zero as the default where Go does, and as zero where Go can tell', () => {
  const { config } = load('iptables: {minSyncPeriod: 0s, masqueradeBit: 0}\nbindAddress: ""\nconntrack: {min: 0}')
  expect(config.minSyncPeriodMs).toBe(1000)
  expect(config.iptables.masqueradeBit).toBe(0)
  expect(config.bindAddress).toBe('0.0.0.0')
  expect(config.conntrack.min).toBe(0)
  expect(load('mode: ipvs').config.minSyncPeriodMs).toBe(0)
})

test('loadConfiguration() treats null as not set', () => {
  expect(load('oomScoreAdj: null\nconntrack:\nnodePortAddresses: null').config.oomScoreAdj).toBe(-999)
})

test('loadConfiguration() puts the servers on IPv6 when bindAddress is, and completes addresses without a port', () => {
  expect(load('bindAddress: "::"').config).toMatchObject({
    healthzBindAddress: '[::]:10256',
    metricsBindAddress: '[::1]:10249',
  })
  expect(load('healthzBindAddress: 1.2.3.4\nmetricsBindAddress: "fd00::1"').config).toMatchObject({
    healthzBindAddress: '1.2.3.4:10256',
    metricsBindAddress: '[fd00::1]:10249',
  })
})

test('loadConfiguration() serves node ports on the primary addresses only, in nftables mode', () => {
  expect(load('mode: nftables').config.nodePortAddresses).toEqual(['primary'])
  expect(load('mode: nftables\nnodePortAddresses: [all]').config.nodePortAddresses).toEqual(['all'])
  expect(load('mode: iptables').config.nodePortAddresses).toEqual([])
})

test('loadConfiguration() uses a file with unknown and repeated fields, and warns with lines', () => {
  const { config, warnings } = load('mode: ipvs\nmode: nftables\nnftables:\n  syncPeriods: 1m\nnosuch: 1\n')
  expect(config.mode).toBe('nftables')
  expect(warnings).toEqual([
    'Configuration file: mode: field is given twice (line 4)',
    'Configuration file: nftables.syncPeriods: unknown field; is syncPeriod meant? (line 6)',
    'Configuration file: nosuch: unknown field (line 7)',
  ])
})

test('loadConfiguration() takes the old name of socketBalancing, and warns', () => {
  const { config, warnings } = load('mode: nftables\nchooseAtConnect: pods')
  expect(config.socketBalancing).toBe('pods')
  expect(warnings).toEqual([expect.stringContaining('it is called socketBalancing now')])
})

test('loadConfiguration() understands fields of old kube-proxies and warns of those that are set', () => {
  const { config, warnings } = load('udpIdleTimeout: 1s\nresourceContainer: ""\nconntrack: {max: 1000}\nportRange: 1-2')
  expect(config.userspace).toEqual({ portRange: '1-2', udpIdleTimeoutMs: 1000 })
  expect(config.conntrack.max).toBe(1000)
  expect(warnings.map((warning) => warning.split(':')[1])).toEqual([' udpIdleTimeout', ' conntrack.max'])
})

test('loadConfiguration() reads the words that Go reads as booleans', () => {
  expect(load('enableProfiling: yes\nbindAddressHardFail: off').config).toMatchObject({
    enableProfiling: true,
    bindAddressHardFail: false,
  })
})

test('loadConfiguration() follows aliases and merges, and survives a map that merges itself', () => {
  expect(load('iptables: &m {masqueradeBit: 5}\nnftables:\n  <<: *m').config.nftables.masqueradeBit).toBe(5)
  expect(load('nftables: &m\n  <<: *m\n  masqueradeBit: 6').config.nftables.masqueradeBit).toBe(6)
})

test('loadConfiguration() reports values of the wrong type with path, value, what is allowed, and line', () => {
  expect(
    errorsOf(`${head}oomScoreAdj: high
mode: 5
iptables: [1]
conntrack:
  min: 1.5
  udpTimeout: 30
nodePortAddresses: all
featureGates: {AllAlpha: 1}
clientConnection: {qps: fast}
logging: {vmodule: [{verbosity: -1}], options: {text: {infoBufferSize: big}}}
`),
  ).toEqual([
    'oomScoreAdj: Invalid value: "high": must be a whole number from -2147483648 to 2147483647 (line 3)',
    'mode: Invalid value: 5: must be text; put it in quotes (line 4)',
    'iptables: must be an object, not a list (line 5)',
    'conntrack.min: Invalid value: 1.5: must be a whole number from -2147483648 to 2147483647 (line 7)',
    'conntrack.udpTimeout: Invalid value: 30: must be a duration such as "30s", "1m30s" or "2h22m" (line 8)',
    'nodePortAddresses: must be a list, not the string "all" (line 9)',
    'featureGates.AllAlpha: Invalid value: 1: must be true or false (line 10)',
    'clientConnection.qps: Invalid value: "fast": must be a number (line 11)',
    'logging.vmodule[0].verbosity: Invalid value: -1: must be a whole number from 0 to 4294967295 (line 12)',
    'logging.options.text.infoBufferSize: Invalid value: "big": must be a quantity such as "512", "1K" or "2Ki" (line 12)',
  ])
})

test('loadConfiguration() reports values that no rule allows, all at once, with the line of each', () => {
  expect(
    errorsOf(`${head}mode: nftables
clusterCIDR: nonsense
nftables:
  masqueradeBit: 32
  syncPeriod: 1s
  minSyncPeriod: 2s
healthzBindAddress: localhost:10256
metricsBindAddress: 127.0.0.1:99999
nodePortAddresses:
- primary
- 10.0.0.0/33
- primary
featureGates:
  NoSuchGate: true
`),
  ).toEqual([
    'healthzBindAddress: Invalid value: "localhost:10256": must be IP:port (e.g. 0.0.0.0:10256 or [::]:10256), but "localhost" is not an IP address (line 9)',
    'metricsBindAddress: Invalid value: "127.0.0.1:99999": must be IP:port, with a port from 1 to 65535, but the port is "99999" (line 10)',
    'nftables.masqueradeBit: Invalid value: 32: must be within the range [0, 31] (line 6)',
    'featureGates.NoSuchGate: Invalid value: true: unrecognized feature gate: NoSuchGate (line 16)',
    'nftables.syncPeriod: Invalid value: "1s": must be greater than or equal to nftables.minSyncPeriod, which is 2s (line 7)',
    "nodePortAddresses[1]: Invalid value: \"10.0.0.0/33\": must be a CIDR or one of the keywords 'primary', 'localhost', 'all' (line 11)",
    'nodePortAddresses[2]: Duplicate value: "primary" (line 11)',
    'clusterCIDR[0]: Invalid value: "nonsense": must be a CIDR (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48) (line 4)',
  ])
})

test.each([
  ['', ['apiVersion: Required value', 'kind: Required value']],
  ['- a\n', ['must be a KubeProxyConfiguration, not a list (line 1)']],
  ['just text', ['must be a KubeProxyConfiguration, not the string "just text"']],
  [
    'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n',
    ['apiVersion: Invalid value: "v1"', 'kind: Invalid value: "Pod"'],
  ],
  ['apiVersion: [unclosed\n  kind: {\n', ['not valid YAML: ', 'not valid YAML: ', 'not valid YAML: ']],
])('loadConfiguration() refuses %j', (text, messages) => {
  expect(errorsOf(text)).toEqual(messages.map((message) => expect.stringContaining(message)))
})

test('loadConfiguration() uses the first of several documents and warns', () => {
  expect(load('mode: ipvs\n---\nmode: nftables\n')).toMatchObject({
    config: { mode: 'ipvs' },
    warnings: ['Configuration file: only the first document of the file is used'],
  })
})

test('loadConfiguration() lets flags outrank the file', () => {
  const { loaded } = loadConfiguration(`${head}hostnameOverride: a`, {
    modes,
    override: (config) => ({ ...config, hostnameOverride: 'b' }),
  })
  expect(loaded.config.hostnameOverride).toBe('b')
})
