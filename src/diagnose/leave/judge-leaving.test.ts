import { describe, expect, test } from 'vitest'
import { configurationFromFlags } from '../../cli/apply-flags.ts'
import { parseFlags } from '../../cli/parse-flags.ts'
import type { Service } from '../../kube/types.ts'
import { modes } from '../../modes/all.ts'
import { BALANCE_ANNOTATION } from '../../model/balance.ts'
import { WITHOUT_LOCAL_ANNOTATION } from '../../model/without-local.ts'
import { service, slice } from '../../../test/support/kube-objects.ts'
import { type ChangeCode, changeKinds } from './change-kinds.ts'
import type { LeftMode, MachineFacts, NewMode } from './facts.ts'
import { exitStatusOf, formatLeavingJson, formatText } from './format.ts'
import { judgeLeaving } from './judge-leaving.ts'
import { sideOf } from './side-of.ts'

interface Case {
  readonly from?: LeftMode
  readonly to?: NewMode
  readonly flags?: readonly string[]
  readonly services?: readonly Service[]
  readonly machine?: Partial<MachineFacts>
}

const machineAddresses = ['127.0.0.1', '10.0.0.5', '192.168.7.1', 'fe80::1']
const nodePort = service({ type: 'NodePort', ports: [{ nodePort: 30080 }] })
const outer = service({ type: 'LoadBalancer', ingress: [{ ip: '203.0.113.7', ipMode: 'VIP' }] })
const seen = new Set<string>()

function judge({ from = 'ipvs', to = 'nftables', flags = [], services = [service()], machine = {} }: Case = {}) {
  const given = [`--proxy-mode=${from}`, '--bind-address=10.0.0.5', '--hostname-override=node-1', ...flags]
  const { loaded } = configurationFromFlags(parseFlags(given).given, modes)
  const objects = {
    services,
    slices: [slice(['10.1.0.1', '10.1.0.2'])],
    nodes: [],
    serviceCidrs: [],
    pods: [],
    raw: { services: [], pods: [] },
  }
  const node = { source: 'a test', config: loaded.config, objects, machineAddresses }
  const changes = judgeLeaving({
    from: sideOf(node, from, [4, 6]),
    to: sideOf(node, to, [4, 6]),
    services,
    machineAddresses,
    machine: { lacks: [], bound: [], sloppyTcp: false, ...machine },
    hasFile: false,
  })
  for (const { code } of changes) seen.add(code)
  return changes
}

const codes = (of: Case, effects = ['loses', 'differs']) =>
  judge(of)
    .filter(({ effect }) => effects.includes(effect))
    .map(({ code }) => code)

const both: readonly ChangeCode[] = ['scheduler', 'ping']

describe('from ipvs', () => {
  test.each<[string, Case, readonly ChangeCode[]]>([
    ['a cluster IP with two endpoints', {}, both],
    ['pings, answered', { flags: ['--answer-ping'] }, ['scheduler']],
    ['sh, by a flag', { flags: ['--ipvs-scheduler=sh', '--balance=hash-client'] }, ['ping']],
    [
      'mh, by an annotation',
      {
        services: [service({ annotations: { [BALANCE_ANNOTATION]: 'hash-connection' } })],
        flags: ['--ipvs-scheduler=mh'],
      },
      ['ping'],
    ],
    ['mh, and another hash', { flags: ['--ipvs-scheduler=mh', '--balance=hash-client'] }, both],
    [
      'policy Local, decided',
      {
        services: [
          service({ externalTrafficPolicy: 'Local', annotations: { [WITHOUT_LOCAL_ANNOTATION]: 'use-others' } }),
        ],
      },
      both,
    ],
    ['sloppy TCP, with a hash', { machine: { sloppyTcp: true }, flags: ['--balance=hash-connection'] }, both],
    ['no Services', { services: [] }, []],
    ['one without endpoints is not balanced', { services: [service({ name: 'other' })] }, ['ping']],
    ['addresses of load balancers', { services: [outer] }, [...both, 'link-addresses', 'other-ports']],
    [
      "external IPs that are the node's own",
      { services: [service({ externalIPs: ['10.0.0.5'] })] },
      [...both, 'other-ports'],
    ],
    ['policy Local', { services: [service({ externalTrafficPolicy: 'Local' })] }, [...both, 'local-policy']],
    ['affinity', { services: [service({ sessionAffinity: 'ClientIP' })] }, [...both, 'affinity']],
    ['node ports', { services: [nodePort] }, [...both, 'node-port-addresses']],
    ['node ports, asked for', { services: [nodePort], flags: ['--nodeport-addresses=all'] }, both],
    ['node ports, in the iptables mode', { services: [nodePort], to: 'iptables' }, both],
    ['timeouts', { flags: ['--ipvs-tcp-timeout=20m'] }, [...both, 'timeouts']],
    ['ranges of other programs', { flags: ['--ipvs-exclude-cidrs=172.16.0.0/12'] }, [...both, 'exclude-cidrs']],
    ['sloppy TCP', { machine: { sloppyTcp: true } }, [...both, 'sloppy-tcp']],
    ['a kernel without nftables', { machine: { lacks: ['no nf_tables'] } }, ['cannot-run', ...both]],
    ['a masquerade bit', { flags: ['--iptables-masquerade-bit=9'] }, [...both, 'settings']],
  ])('%s', (_, given, expected) => {
    expect(codes(given)).toEqual(expected)
  })

  test('strict ARP is not needed any more', () => {
    expect(codes({ flags: ['--ipvs-strict-arp'] }, ['gains'])).toEqual(['strict-arp'])
  })

  test('a program on an address of a Service is found, with its port', () => {
    const bound = [
      { address: '203.0.113.7', port: 53, protocol: 'UDP' as const },
      { address: '10.0.0.5', port: 22, protocol: 'TCP' as const },
    ]
    const found = judge({ services: [outer], machine: { bound } }).filter(({ code }) => code === 'bound-program')
    expect(found).toMatchObject([{ services: ['default/web'], message: expect.stringContaining('203.0.113.7:53/UDP') }])
    expect(found[0]!.message).not.toContain(':22')
  })

  test.each([
    ['lc', /fewest connections/],
    ['mh', /on every node/],
    ['sh', /a client address always/],
    ['', /Scheduler rr: endpoints took turns/],
  ])('scheduler %s says what it did', (name, says) => {
    const flags = name === '' ? [] : [`--ipvs-scheduler=${name}`]
    expect(judge({ flags }).find(({ code }) => code === 'scheduler')?.message).toMatch(says)
  })
})

test('a Service that has another balance is said to have that', () => {
  const pinned = service({ annotations: { [BALANCE_ANNOTATION]: 'hash-client' } })
  const [change] = judge({ services: [pinned], flags: ['--ipvs-scheduler=lc', '--balance=least-connections'] })
  expect(change).toMatchObject({ code: 'scheduler', services: ['default/web'] })
  expect(change!.message).toMatch(/chooses by a hash of the client's address$/)
})

test.each([
  ['sh', /--balance=hash-client .* service\.kube-proxy-ts\.io\/balance=hash-client/],
  ['mh', /--balance=hash-connection/],
  ['rr', /stay in ipvs mode/],
  ['dh', /stay in ipvs mode/],
])('what brings scheduler %s back, in the nftables mode', (name, todo) => {
  const change = judge({ flags: [`--ipvs-scheduler=${name}`] }).find(({ code }) => code === 'scheduler')
  expect(change?.todo).toMatch(todo)
  const toIptables = judge({ to: 'iptables', flags: [`--ipvs-scheduler=${name}`] })
  expect(toIptables.find(({ code }) => code === 'scheduler')?.todo).toMatch(/stay in ipvs mode/)
})

describe('from iptables', () => {
  test.each<[string, Case, readonly ChangeCode[]]>([
    ['a cluster IP', { flags: ['--conntrack-tcp-be-liberal'] }, []],
    ['invalid packets', {}, ['invalid-packets']],
    ['node ports', { services: [nodePort] }, ['node-port-addresses', 'localhost-node-ports', 'invalid-packets']],
    [
      'node ports, on localhost too',
      {
        services: [nodePort],
        flags: [
          '--nodeport-addresses=10.0.0.0/8,localhost',
          '--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true',
          '--conntrack-tcp-be-liberal',
        ],
      },
      [],
    ],
    [
      'source ranges',
      { services: [{ ...outer, loadBalancerSourceRanges: ['10.0.0.0/8'] }] },
      ['source-ranges', 'invalid-packets'],
    ],
    ['masquerading of all, by a flag', { flags: ['--masquerade-all'] }, ['invalid-packets']],
  ])('%s', (_, given, expected) => {
    expect(codes({ from: 'iptables', ...given })).toEqual(expected)
  })
})

test('every kind of change was judged above', () => {
  expect([...seen].toSorted()).toEqual(Object.keys(changeKinds).toSorted())
})

test('a report names the first Services of many, in JSON all; the exit status says whether something is different', () => {
  const services = Array.from({ length: 20 }, (_, i) => service({ name: `web-${i}` }))
  const changes = judge({ services })
  const report = { version: 'v1', nodeName: 'n', source: 'a test', from: 'ipvs', to: 'nftables', services: 20, changes }
  expect(formatText(report)).toMatch(/20 Services: default\/web-0, .*default\/web-7 and 12 more/s)
  const json = JSON.parse(formatLeavingJson(report)) as { isSame: boolean; changes: { services: string[] }[] }
  expect(json.isSame).toBe(false)
  expect(json.changes[0]!.services).toHaveLength(20)
  expect(exitStatusOf(changes)).toBe(1)
  expect(exitStatusOf(judge({ from: 'iptables', flags: ['--conntrack-tcp-be-liberal'] }))).toBe(0)
})
