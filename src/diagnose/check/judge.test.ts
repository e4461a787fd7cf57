import { describe, expect, test } from 'vitest'
import { configurationFromFlags } from '../../cli/apply-flags.ts'
import { parseFlags } from '../../cli/parse-flags.ts'
import { modes } from '../../modes/all.ts'
import type { ModeOutlook } from '../../modes/contract.ts'
import type { ApiFacts, ApiRequestFact, CheckFacts } from './facts.ts'
import { type FindingCode, findingKinds } from './finding-kinds.ts'
import { exitStatusOf, formatReportJson, formatText } from './format.ts'
import { judge } from './judge.ts'

const works: ModeOutlook = { lacks: [], warnings: [], uses: [] }
const fails: ModeOutlook = { ...works, lacks: [{ what: 'it lacks a thing', todo: 'get the thing' }] }

const asked = {
  kind: 'asked',
  server: 'https://10.0.0.1:6443',
  warnings: [],
  version: 'v1.36.4',
  clockAheadMs: 300,
  requests: ['services', 'endpointslices', 'servicecidrs', 'nodes'].flatMap((resource) =>
    (['list', 'watch'] as const).map((verb) => ({ verb, resource, status: 200, reason: '' })),
  ),
} satisfies ApiFacts

function configuration(...flags: string[]): CheckFacts['configuration'] {
  const { loaded } = configurationFromFlags(parseFlags(flags).given, modes)
  return { ...loaded, standIns: 'allowed', file: undefined, warnings: [] }
}

function facts(changes: Partial<CheckFacts> = {}): CheckFacts {
  return {
    kernel: { release: '6.12.1', nftables: 'works', modules: { ip_vs: 'missing' } },
    capabilities: new Set(['CAP_NET_ADMIN']),
    modes: new Map(modes.map(({ name }) => [name, works])),
    conntrack: { count: 1, max: 1000, module: 'loaded' },
    settings: [],
    others: {
      processes: [],
      ports: [{ name: 'healthz', address: '0.0.0.0:10256', isTaken: false }],
      rules: new Map(),
      mark: { bit: 14, setters: [] },
    },
    api: asked,
    node: {
      name: 'node-1',
      object: 'exists',
      addresses: [{ type: 'InternalIP', address: '10.0.0.11' }],
      machineAddresses: ['10.0.0.11'],
      problems: { warnings: [], errors: [] },
    },
    configuration: configuration('--proxy-mode=nftables'),
    sockets: undefined,
    ...changes,
  }
}

/** Warnings and problems only, unless told otherwise. */
function codes(changes: Partial<CheckFacts>, levels = ['warning', 'problem']): FindingCode[] {
  const { findings } = judge(facts(changes), modes)
  return findings.filter(({ level }) => levels.includes(level)).map(({ code }) => code)
}

const outlooks = (changes: Record<string, ModeOutlook>) => new Map([...facts().modes, ...Object.entries(changes)])
const api = (changes: Partial<typeof asked>): ApiFacts => ({ ...asked, ...changes })
const refused = (resource: string, status: number): ApiRequestFact[] => [
  ...asked.requests.filter((each) => each.resource !== resource),
  { verb: 'list', resource, status, reason: 'no' },
]

const coming = ['mode-default', 'mode-ends', 'external-ips-end']

test.each([
  [
    'the defaults',
    [],
    ['external-ips-end', 'mode-default'],
    /AllowServiceExternalIPs: true}.*iptables keeps the present behaviour/s,
  ],
  ['a mode that stays', ['--proxy-mode=nftables'], ['external-ips-end'], /1\.40/],
  ['no external IPs', ['--proxy-mode=iptables', '--feature-gates=AllowServiceExternalIPs=false'], [], /^$/],
  [
    'ipvs, and external IPs that are wanted',
    ['--proxy-mode=ipvs', '--feature-gates=AllowServiceExternalIPs=true'],
    ['external-ips-end', 'mode-ends'],
    /^Kubernetes 1\.43 removes external.*KubeProxyIPVS: true}/s,
  ],
  [
    'ipvs that is wanted',
    ['--proxy-mode=ipvs', '--feature-gates=KubeProxyIPVS=true,AllowServiceExternalIPs=false'],
    ['mode-ends'],
    /^Kubernetes 1\.43 removes kube-proxy's ipvs mode\n(?!.*KubeProxyIPVS)/,
  ],
])('what Kubernetes 1.40 and 1.43 change: %s', (_, flags, expected, says) => {
  const findings = judge(facts({ configuration: configuration(...flags) }), modes).findings.filter(({ code }) =>
    coming.includes(code),
  )
  expect(findings.map(({ code }) => code)).toEqual(expected)
  expect(findings.map(({ message, todo }) => `${message}\n${todo}`).join('\n')).toMatch(says)
})

test('a machine on which all is well has nothing but ok and notes, for every subject', () => {
  expect(codes({})).toEqual([])
  expect(codes({}, ['ok'])).toEqual([
    'config-ok',
    'kernel-ok',
    'rights-ok',
    'mode-ok',
    'conntrack-ok',
    'settings-ok',
    'others-none',
    'api-ok',
    'clock-ok',
    'node-ok',
  ])
})

const taken = {
  ...facts().others,
  ports: [{ name: 'healthz', address: '0.0.0.0:10256', isTaken: true }],
}
const marking = { ...facts().others, mark: { bit: 14, setters: ['chain divert of the nftables table inet vpn'] } }
const proxy = { pid: 7, command: '/usr/local/bin/kube-proxy' }
const setting = { path: '/proc/sys/net/netfilter/nf_conntrack_max', wanted: 5, rule: 'exactly' as const }
const node = facts().node

const cases: [string, Partial<CheckFacts>, FindingCode[]][] = [
  ['an old kernel', { kernel: { release: '5.12.9', nftables: 'works', modules: {} } }, ['kernel-old']],
  ['a kernel that is just new enough', { kernel: { release: '5.13.0', nftables: 'works', modules: {} } }, []],
  ['few rights', { capabilities: new Set(['CAP_NET_RAW']) }, ['rights-missing']],
  ['a mode that cannot run and has no stand-in', { modes: outlooks({ nftables: fails }) }, ['mode-impossible']],
  [
    'a stand-in',
    { configuration: configuration('--proxy-mode=ipvs'), modes: outlooks({ ipvs: fails }) },
    ['mode-stands-in'],
  ],
  [
    'a stand-in of a stand-in',
    { configuration: configuration('--proxy-mode=ipvs'), modes: outlooks({ ipvs: fails, iptables: fails }) },
    ['mode-stands-in'],
  ],
  [
    'a stand-in that is not wanted',
    {
      configuration: { ...configuration('--proxy-mode=ipvs'), standIns: 'refused' },
      modes: outlooks({ ipvs: fails }),
    },
    ['mode-impossible'],
  ],
  ['a mark that another program uses', { others: marking }, ['mark-taken']],
  ['a mode with a warning', { modes: outlooks({ nftables: { ...works, warnings: fails.lacks } }) }, ['mode-odd']],
  ['a warning of another mode', { modes: outlooks({ ipvs: { ...works, warnings: fails.lacks } }) }, []],
  ['no mode', { configuration: configuration() }, ['mode-default']],
  ['sockets that cannot choose', { sockets: { kind: 'cannot choose', why: 'no cgroup' } }, ['sockets-cannot-choose']],
  ['a full table', { conntrack: { count: 801, max: 1000, module: 'loaded' } }, ['conntrack-full']],
  ['no tracking', { conntrack: { count: undefined, max: undefined, module: 'missing' } }, ['conntrack-missing']],
  ['tracking that is not loaded', { conntrack: { count: undefined, max: undefined, module: 'can be loaded' } }, []],
  ['a setting that changes', { settings: [{ ...setting, present: 4, isWritable: true }] }, []],
  ['a setting that cannot change', { settings: [{ ...setting, present: 4, isWritable: false }] }, ['setting-stays']],
  ['a setting that need not', { settings: [{ ...setting, present: 5, isWritable: false }] }, []],
  ['a larger setting', { settings: [{ ...setting, rule: 'at least', present: 9, isWritable: false }] }, []],
  ['another proxy', { others: { ...taken, processes: [proxy] } }, ['other-process']],
  ['rules of another', { others: { ...facts().others, rules: new Map([['iptables', ['KUBE-SERVICES']]]) } }, []],
  ['a port', { others: taken }, ['port-taken']],
  [
    'a port that must be had',
    { others: taken, configuration: configuration('--proxy-mode=nftables', '--bind-address-hard-fail') },
    ['port-taken-hard'],
  ],
  ['no API server is named', { api: { kind: 'not named' } }, ['api-not-named']],
  ['no kubeconfig', { api: { kind: 'no access', reason: 'no such file' } }, ['api-no-access']],
  ['files', { api: { kind: 'files', folder: '/etc/services' } }, []],
  ['silence', { api: api({ requests: refused('services', 0) }) }, ['api-unreachable']],
  ['strangers', { api: api({ requests: refused('services', 401) }) }, ['api-unauthorized']],
  ['no rights', { api: api({ requests: refused('nodes', 403) }) }, ['api-forbidden']],
  ['a failing server', { api: api({ requests: refused('services', 500) }) }, ['api-failed']],
  ['an old server', { api: api({ requests: refused('endpointslices', 404) }) }, ['api-no-slices']],
  ['no ServiceCIDRs', { api: api({ requests: refused('servicecidrs', 403) }) }, []],
  ['plain http', { api: api({ warnings: ['plain http'] as never }) }, ['api-odd']],
  ['a clock that is behind', { api: api({ clockAheadMs: 11_000 }) }, ['clock-off']],
  ['a clock that is ahead', { api: api({ clockAheadMs: -11_000 }) }, ['clock-off']],
  ['a clock that is a little off', { api: api({ clockAheadMs: -9_000 }) }, []],
  ['no Node', { node: { ...node, object: 'does not exist', addresses: [] } }, ['node-missing']],
  ['a Node elsewhere', { node: { ...node, machineAddresses: ['10.0.0.12'] } }, ['node-elsewhere']],
  ['a Node without addresses', { node: { ...node, addresses: [] } }, []],
  ['an odd setting', { node: { ...node, problems: { warnings: ['odd'], errors: [] } } }, ['node-odd']],
  ['a wrong setting', { node: { ...node, problems: { warnings: [], errors: ['wrong'] } } }, ['node-wrong']],
  ['a warning of the loader', { configuration: { ...configuration('--proxy-mode=nftables'), warnings: ['odd'] } }, ['config-odd']], // oxfmt-ignore
]

test.each(cases)('%s', (_, changes, expected) => {
  expect(codes(changes)).toEqual(expected)
})

test('what is missing for list and watch alike is said once', () => {
  const requests = asked.requests.map((each) => (each.resource === 'servicecidrs' ? { ...each, status: 403 } : each))
  expect(codes({ api: api({ requests }) }, ['note']).filter((code) => code === 'api-no-service-cidrs')).toHaveLength(1)
})

test('every warning and problem says what to do', () => {
  for (const [name, changes] of cases) {
    const silent = judge(facts(changes), modes).findings.filter(
      ({ level, todo }) => (level === 'warning' || level === 'problem') && (todo === undefined || todo === ''),
    )
    expect(silent, name).toEqual([])
  }
})

test('every kind of finding that is a warning or a problem is judged by a case, except what comes before judging', () => {
  const judged = new Set(cases.flatMap(([, , expected]) => expected))
  const severe = Object.entries(findingKinds).filter(([, { level }]) => level === 'warning' || level === 'problem')
  expect(severe.map(([code]) => code).filter((code) => !judged.has(code as FindingCode))).toEqual(['config-invalid'])
})

test('the mode that would run is named, and those that were given up', () => {
  const ipvs = { configuration: configuration('--proxy-mode=ipvs'), modes: outlooks({ ipvs: fails }) }
  expect(judge(facts(ipvs), modes).mode).toEqual({ asked: 'ipvs', chosen: 'iptables', givenUp: ['ipvs'] })
  expect(judge(facts({ modes: outlooks({ nftables: fails }) }), modes).mode.chosen).toBeUndefined()
})

describe('a report', () => {
  const report = (changes: Partial<CheckFacts>) => ({
    ...judge(facts(changes), modes),
    version: 'v1',
    nodeName: 'node-1',
  })

  test('has lines for people, by subject, with what to do', () => {
    const text = formatText(report({ conntrack: { count: 999, max: 1000, module: 'loaded' } }))
    expect(text).toContain(
      'Connection tracking\n  warning  999 of 1000 connections are tracked\n           -> raise conntrack.maxPerCore',
    )
    expect(text).toMatch(/kube-proxy can run here, in mode nftables: 0 problems, 1 warning. Nothing was changed.\n$/)
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120)
  })

  test('is JSON for programs', () => {
    const json = JSON.parse(formatReportJson(report({ capabilities: new Set() }))) as Record<string, unknown>
    expect(json).toMatchObject({
      version: 'v1',
      canRun: false,
      nodeName: 'node-1',
      mode: { asked: 'nftables', chosen: 'nftables', givenUp: [] },
    })
    expect(json['findings']).toContainEqual({
      code: 'rights-missing',
      about: 'rights',
      level: 'problem',
      message: 'This process does not have CAP_NET_ADMIN',
      todo: expect.stringContaining('root'),
    })
  })

  test.each([
    [{}, 0],
    [{ others: taken }, 0],
    [{ capabilities: new Set() }, 1],
  ])('%# ends with status %i', (changes, status) => {
    expect(exitStatusOf(report(changes as Partial<CheckFacts>).findings)).toBe(status)
  })
})
