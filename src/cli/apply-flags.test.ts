import { expect, test } from 'vitest'
import { modes } from '../modes/all.ts'
import { ConfigError } from '../lib/errors.ts'
import { applyDefaults } from '../config/defaults.ts'
import { settle } from '../config/settle.ts'
import { configurationFromFlags, flagValues, overrideByFlags, warnOfFlags } from './apply-flags.ts'
import { formatHelp } from './help.ts'
import { allFlags } from './flags.ts'
import { parseFlags } from './parse-flags.ts'

function given(...argv: string[]) {
  const { given, errors } = parseFlags(argv)
  expect(errors).toEqual([])
  return given
}

const load = (...argv: string[]) => configurationFromFlags(given(...argv), modes).loaded

function errorsOf(...argv: string[]): string[] {
  try {
    configurationFromFlags(given(...argv), modes)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).message.split('\n')
  }
  return []
}

test('configurationFromFlags() gives the defaults when there are no flags', () => {
  const { config, mode, minSyncPeriod } = load()
  expect(config).toEqual({
    ...settle(applyDefaults({})),
    mode: 'iptables',
    detectLocalMode: 'ClusterCIDR',
  })
  expect({ mode, minSyncPeriod }).toEqual({ mode: 'defaulted', minSyncPeriod: 'defaulted' })
})

test('configurationFromFlags() sets the field of each flag', () => {
  const { config } = load(
    '--proxy-mode=nftables',
    '--kubeconfig=/k',
    '--kube-api-burst=7',
    '--cluster-cidr=10.0.0.0/8,fd00::/8',
    '--masquerade-all',
    '--nodeport-addresses=localhost',
    '--conntrack-udp-timeout=10s',
    '--hostname-override= Node-1 ',
    '--logging-format=json',
    '-v=3',
    '--feature-gates=NFTablesNetlink=false',
  )
  expect(config).toMatchObject({
    mode: 'nftables',
    clientConnection: { kubeconfig: '/k', burst: 7, qps: 5 },
    detectLocal: { clusterCIDRs: ['10.0.0.0/8', 'fd00::/8'] },
    masqueradeAll: true,
    nodePortAddresses: ['localhost'],
    conntrack: { udpTimeoutMs: 10_000 },
    hostnameOverride: 'node-1',
    logging: { format: 'json', verbosity: 3 },
    featureGates: { NFTablesNetlink: false },
  })
})

test('configurationFromFlags() lets the iptables periods count for nftables, and the ipvs periods for ipvs only', () => {
  const flags = [
    '--iptables-sync-period=1m',
    '--iptables-min-sync-period=2s',
    '--ipvs-sync-period=3m',
    '--ipvs-min-sync-period=4s',
  ]
  const periods = (mode: string) => {
    const { config, minSyncPeriod } = load(...flags, `--proxy-mode=${mode}`)
    return [config.syncPeriodMs, config.minSyncPeriodMs, minSyncPeriod]
  }
  expect(periods('nftables')).toEqual([60_000, 2000, 'given'])
  expect(periods('iptables')).toEqual([60_000, 2000, 'given'])
  expect(periods('ipvs')).toEqual([180_000, 4000, 'given'])
})

test('configurationFromFlags() leaves ipvs its minimum period of 1s, as kube-proxy does without a file', () => {
  expect(load('--proxy-mode=ipvs')).toMatchObject({ config: { minSyncPeriodMs: 1000 }, minSyncPeriod: 'defaulted' })
})

test.each<[string[], string, string]>([
  [[], '0.0.0.0:10256', '127.0.0.1:10249'],
  [['--healthz-port=0', '--metrics-port=0'], '', ''],
  [['--healthz-port=1', '--metrics-port=2'], '0.0.0.0:1', '127.0.0.1:2'],
  [['--healthz-bind-address=1.2.3.4', '--healthz-port=1'], '1.2.3.4:1', '127.0.0.1:10249'],
  [['--healthz-bind-address=1.2.3.4:5', '--healthz-port=1'], '1.2.3.4:5', '127.0.0.1:10249'],
  [['--healthz-bind-address=::', '--metrics-bind-address=fd00::1'], '[::]:10256', '[fd00::1]:10249'],
  [['--healthz-bind-address='], '0.0.0.0:10256', '127.0.0.1:10249'],
  [['--write-config-to=/x', '--healthz-port=0'], '0.0.0.0:10256', '127.0.0.1:10249'],
])('configurationFromFlags() with %j serves health on %j and metrics on %j', (argv, healthz, metrics) => {
  const { config } = load(...argv)
  expect([config.healthzBindAddress, config.metricsBindAddress]).toEqual([healthz, metrics])
})

test('configurationFromFlags() keeps the meaning of old flags', () => {
  const { config } = load('--conntrack-max=1000', '--udp-timeout=1s', '--proxy-port-range=30000-30100')
  expect(config.conntrack.max).toBe(1000)
  expect(config.userspace).toEqual({ udpIdleTimeoutMs: 1000, portRange: '30000-30100' })
  expect(load('--conntrack-max=0').config.conntrack.max).toBeNull()
})

test('configurationFromFlags() names the flag, its value and what is allowed', () => {
  expect(
    errorsOf(
      '--cluster-cidr=10.0.0.0/99',
      '--proxy-mode=teleport',
      '--oom-score-adj=2000',
      '--feature-gates=NoSuchGate=true',
      '--iptables-sync-period=0s',
      '--nodeport-addresses=x',
      '--detect-local-mode=BridgeInterface',
    ),
  ).toEqual([
    '--oom-score-adj: Invalid value: 2000: must be within the range [-1000, 1000]',
    '--proxy-mode: Invalid value: "teleport": must be one of iptables, ipvs, nftables, userspace',
    '--feature-gates: Invalid value: true: unrecognized feature gate: NoSuchGate',
    '--iptables-sync-period: Invalid value: "0s": must be greater than 0',
    "--nodeport-addresses: Invalid value: \"x\": must be a CIDR or one of the keywords 'primary', 'localhost', 'all'",
    'detectLocal.bridgeInterface: Invalid value: "": must not be empty when detectLocalMode is BridgeInterface',
  ])
  expect(errorsOf('--cluster-cidr=10.0.0.0/99')).toEqual([
    '--cluster-cidr: Invalid value: "10.0.0.0/99": must be a CIDR (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)',
  ])
  expect(errorsOf('--hostname-override=  ')).toEqual([
    'invalid argument "  " for "--hostname-override" flag: must not be blank',
  ])
  expect(errorsOf('--healthz-port=70000')).toEqual([expect.stringContaining('--healthz-port: Invalid value')])
})

test('overrideByFlags() applies the node name and logging flags to a file, and nothing else', () => {
  const file = settle(applyDefaults({ mode: 'ipvs', logging: { vmodule: [{ filePattern: 'a', verbosity: 1 }] } }))
  const overridden = overrideByFlags(
    file,
    given('--config=/c', '--hostname-override=B', '-v=5', '--vmodule=b=2', '--proxy-mode=nftables', '--master=m'),
  )
  expect(overridden).toEqual({
    ...file,
    hostnameOverride: 'b',
    logging: {
      ...file.logging,
      verbosity: 5,
      vmodule: [
        { filePattern: 'b', verbosity: 2 },
        { filePattern: 'a', verbosity: 1 },
      ],
    },
  })
})

test('warnOfFlags() says which flags a configuration file outranks', () => {
  expect(
    warnOfFlags(
      given('--config=/c', '--proxy-mode=x', '-v=1', '--hostname-override=a', '--cluster-cidr=b', '--master=m'),
    ),
  ).toEqual(['These flags are ignored because --config is given: --proxy-mode, --cluster-cidr'])
})

test('warnOfFlags() speaks of old flags, and of those that do nothing', () => {
  expect(
    warnOfFlags(given('--cleanup-iptables', '--resource-container=/x', '--boot_id_file=/y', '--proxy-mode=a')),
  ).toEqual([
    'Flag --cleanup-iptables is deprecated: use --cleanup instead',
    expect.stringContaining('Flag --resource-container is deprecated: it has no effect'),
    expect.stringContaining('Flag --boot-id-file is deprecated: it has no effect'),
  ])
})

test('warnOfFlags() warns when log files are asked for but not switched on', () => {
  expect(warnOfFlags(given('--log-dir=/x'))).toEqual(['Flag --log-dir has no effect without --logtostderr=false'])
  expect(warnOfFlags(given('--log-dir=/x', '--logtostderr=false'))).toEqual([])
})

test('flagValues() gives every flag with its value, given or default', () => {
  const values = new Map(flagValues(given('--oom-score-adj=5')).map((flag) => [flag.name, flag]))
  expect(values.get('oom-score-adj')).toEqual({ name: 'oom-score-adj', value: '5' })
  expect(values.get('config-sync-period')).toEqual({ name: 'config-sync-period', value: '15m0s' })
  expect(values.get('nodeport-addresses')?.value).toBe('[]')
  expect(values.size).toBe(allFlags.length)
})

test('formatHelp() names every flag, in groups, within the width', () => {
  const help = formatHelp(modes, 80)
  for (const { name } of allFlags) expect(help).toContain(`--${name}`)
  expect(help).toContain('\nConnection tracking:\n')
  expect(help).toContain('(default 32768)')
  const tooLong = help.split('\n').filter((line) => line.length > 80 && line.trim().includes(' '))
  expect(tooLong).toEqual([])
})
