import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatDuration } from '../lib/duration.ts'
import { allFlags } from './flags.ts'
import { kindOfFlag, parseFlags } from './parse-flags.ts'

function given(...argv: string[]): Record<string, unknown> {
  const { given, errors } = parseFlags(argv)
  expect(errors).toEqual([])
  return Object.fromEntries(given)
}

test.each<[string[], Record<string, unknown>]>([
  [['--proxy-mode=nftables'], { 'proxy-mode': 'nftables' }],
  [['--proxy-mode', 'nftables'], { 'proxy-mode': 'nftables' }],
  [['--proxy_mode=nftables'], { 'proxy-mode': 'nftables' }],
  [['--masquerade-all'], { 'masquerade-all': true }],
  [['--masquerade-all=false'], { 'masquerade-all': false }],
  [['--masquerade-all=T'], { 'masquerade-all': true }],
  [['-v=4'], { v: 4 }],
  [['-v', '4'], { v: 4 }],
  [['-v4'], { v: 4 }],
  [['--v=4'], { v: 4 }],
  [['-hv=2'], { help: true, v: 2 }],
  [['--iptables-sync-period=1h2m'], { 'iptables-sync-period': 3_720_000 }],
  [['--kubeconfig='], { kubeconfig: '' }],
  [['--kubeconfig', ''], { kubeconfig: '' }],
  [['--master=http://a:1/?x=y'], { master: 'http://a:1/?x=y' }],
  [
    ['--nodeport-addresses=10.0.0.0/8,primary', '--nodeport-addresses=::/0'],
    { 'nodeport-addresses': ['10.0.0.0/8', 'primary', '::/0'] },
  ],
  [['--nodeport-addresses='], { 'nodeport-addresses': [] }],
  [['--feature-gates=A=true,B=false', '--feature-gates', 'C=1'], { 'feature-gates': { A: true, B: false, C: true } }],
  [
    ['--vmodule=a=1,b*=2'],
    {
      vmodule: [
        { filePattern: 'a', verbosity: 1 },
        { filePattern: 'b*', verbosity: 2 },
      ],
    },
  ],
  [['--oom-score-adj', '-998'], { 'oom-score-adj': -998 }],
  [['--oom-score-adj=0x10'], { 'oom-score-adj': 16 }],
  [['--kube-api-qps=2.5'], { 'kube-api-qps': 2.5 }],
  [['--proxy-mode=a', '--proxy-mode=b'], { 'proxy-mode': 'b' }],
  [['--version=raw'], { version: 'raw' }],
  [['--version'], { version: 'true' }],
  [['', '--'], {}],
])('parseFlags(%j) gives %j', (argv, expected) => {
  expect(given(...argv)).toEqual(expected)
})

test.each<[string[], string]>([
  [['--no-such-flag=1'], 'unknown flag: --no-such-flag'],
  [['--proxy-moed=x'], 'unknown flag: --proxy-moed (is --proxy-mode meant?)'],
  [['--clustercidr', '10.0.0.0/8'], 'unknown flag: --clustercidr (is --cluster-cidr meant?)'],
  [['--proxy-mode'], 'flag needs an argument: --proxy-mode'],
  [['-v'], 'flag needs an argument: -v, --v'],
  [['-x'], "unknown shorthand flag: 'x' in -x"],
  [['-proxy-mode=a'], "unknown shorthand flag: 'p' in -proxy-mode=a (is --proxy-mode meant?)"],
  [['--=a'], 'bad flag syntax: --=a'],
  [['---a'], 'bad flag syntax: ---a'],
  [['serve'], 'kube-proxy takes no arguments, but was given "serve"'],
  [['--', '--help'], 'kube-proxy takes no arguments, but was given "--help"'],
  [['-'], 'kube-proxy takes no arguments, but was given "-"'],
  [['--masquerade-all', 'false'], 'kube-proxy takes no arguments, but was given "false"'],
  [
    ['--iptables-sync-period=soon'],
    'invalid argument "soon" for "--iptables-sync-period" flag: must be a duration such as "30s", "1m30s" or "2h22m"',
  ],
  [['--masquerade-all=maybe'], 'invalid argument "maybe" for "--masquerade-all" flag: must be true or false'],
  [['-v=x'], 'invalid argument "x" for "-v, --v" flag: must be a whole number from 0 to 2147483647'],
  [['--bind-address=host'], 'invalid argument "host" for "--bind-address" flag: must be an IP address'],
  [
    ['--feature-gates=A=maybe'],
    'invalid argument "A=maybe" for "--feature-gates" flag: the value of A must be true or false, not "maybe"',
  ],
  [['--feature-gates=A'], 'invalid argument "A" for "--feature-gates" flag: must be pairs such as "name=true"'],
  [['--vmodule=a'], 'invalid argument "a" for "--vmodule" flag: "a" does not have the pattern=N format'],
  [
    ['--oom-score-adj=99999999999'],
    'invalid argument "99999999999" for "--oom-score-adj" flag: must be a whole number from -2147483648 to 2147483647',
  ],
])('parseFlags(%j) says %s', (argv, message) => {
  expect(parseFlags(argv).errors).toEqual([message])
})

test.each(['0.0.0.0', '0.0.0.0:80', '::', '[::]:80', ''])(
  'parseFlags() takes %j for an address with a port',
  (text) => {
    expect(parseFlags([`--healthz-bind-address=${text}`]).errors).toEqual([])
  },
)

test.each(['localhost:80', '1.2.3.4:x', '1.2.3.4:99999', ':80'])(
  'parseFlags() refuses %j for an address with a port',
  (text) => {
    expect(parseFlags([`--healthz-bind-address=${text}`]).errors).toHaveLength(1)
  },
)

test('parseFlags() collects all errors of a command line', () => {
  expect(parseFlags(['--a', '--kube-api-qps=x', 'y']).errors).toHaveLength(3)
})

test('allFlags has no name and no shorthand twice', () => {
  const names = allFlags.flatMap(({ name, short }) => (short === undefined || short === name ? [name] : [name, short]))
  expect(new Set(names).size).toBe(names.length)
})

test('allFlags has every flag of kube-proxy 1.37 and of its predecessors', () => {
  const names = new Set(allFlags.map(({ name }) => name))
  const wanted = `config write-config-to cleanup init-only version help kubeconfig master kube-api-content-type kube-api-qps
    kube-api-burst hostname-override bind-address bind-address-hard-fail healthz-bind-address metrics-bind-address
    healthz-port metrics-port profiling show-hidden-metrics-for-version feature-gates proxy-mode iptables-masquerade-bit
    masquerade-all iptables-localhost-nodeports iptables-sync-period iptables-min-sync-period ipvs-sync-period
    ipvs-min-sync-period ipvs-scheduler ipvs-exclude-cidrs ipvs-strict-arp ipvs-tcp-timeout ipvs-tcpfin-timeout
    ipvs-udp-timeout detect-local-mode cluster-cidr pod-bridge-interface pod-interface-name-prefix nodeport-addresses
    oom-score-adj conntrack-max-per-core conntrack-min conntrack-tcp-timeout-established conntrack-tcp-timeout-close-wait
    conntrack-tcp-be-liberal conntrack-udp-timeout conntrack-udp-timeout-stream config-sync-period v vmodule
    logging-format log-flush-frequency log-text-split-stream log-json-split-stream log-text-info-buffer-size
    log-json-info-buffer-size boot-id-file machine-id-file windows-service source-vip network-name enable-dsr
    root-hnsendpoint-name forward-healthcheck-vip cleanup-iptables cleanup-ipvs resource-container conntrack-max
    udp-timeout proxy-port-range log-dir log-file log-file-max-size logtostderr alsologtostderr stderrthreshold
    log-backtrace-at add-dir-header skip-headers skip-log-headers one-output`
  expect(wanted.split(/\s+/).filter((name) => !names.has(name))).toEqual([])
})

test('parseFlags() reads back durations as --help and /flagz print them', () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 40), max: 2 ** 40 }), (ms) => {
      expect(given(`--udp-timeout=${formatDuration(ms)}`)).toEqual({ 'udp-timeout': ms })
    }),
  )
})

test('parseFlags() answers with values or errors, and never throws, whatever the arguments', () => {
  const name = fc.constantFrom(...allFlags.map((spec) => spec.name))
  const argument = fc.oneof(
    fc.string(),
    name.map((each) => `--${each}`),
    fc.tuple(name, fc.string()).map(([each, value]) => `--${each}=${value}`),
    fc.string().map((text) => `-${text}`),
  )
  fc.assert(
    fc.property(fc.array(argument), (argv) => {
      const parsed = parseFlags(argv)
      for (const [key, value] of parsed.given) {
        const spec = allFlags.find((each) => each.name === key)!
        expect(typeof kindOfFlag(spec).print(value)).toBe('string')
      }
    }),
  )
})

test.each(['', '0-0', '30000-30009', '30000+9', '80', '65535'])('--proxy-port-range takes %j', (text) => {
  expect(given(`--proxy-port-range=${text}`)).toEqual({ 'proxy-port-range': text })
})

test.each(['9-8', '1-70000', '65535+1', 'a-b'])('--proxy-port-range refuses %j', (text) => {
  expect(parseFlags([`--proxy-port-range=${text}`]).errors).toEqual([expect.stringContaining('must be a port range')])
})
