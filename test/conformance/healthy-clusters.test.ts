// A thousand healthy clusters at random, with firewalls of other programs that let them work: the doctor finds nothing. And one in
// four with something planted, which it finds. The clusters are the same in every run; EXPLAIN_SEED makes others.

import { expect, test } from 'vitest'
import { examine } from '../../src/diagnose/doctor/examine.ts'
import type {
  EndpointFacts,
  ForeignFacts,
  OtherFrontend,
  ServiceExamination,
  TryFact,
} from '../../src/diagnose/doctor/facts.ts'
import { doubtOf, factOf, findForeign } from '../../src/diagnose/doctor/foreign.ts'
import { packetsOfFlow } from '../../src/diagnose/doctor/foreign-flow.ts'
import { parseForeignIptables } from '../../src/diagnose/doctor/foreign-iptables.ts'
import { parseForeignTables } from '../../src/diagnose/doctor/foreign-nft.ts'
import type { ForeignPacket, ForeignTable } from '../../src/diagnose/doctor/foreign-rules.ts'
import { otherFrontends } from '../../src/diagnose/doctor/frontends.ts'
import { serviceFact } from '../../src/diagnose/doctor/service-fact.ts'
import { explain, prepare } from '../../src/diagnose/explain/explain.ts'
import type { Explanation } from '../../src/diagnose/explain/explanation.ts'
import { decideAll, type Known } from '../../src/diagnose/explain/known.ts'
import type { EndpointSlice, Service } from '../../src/kube/types.ts'
import { type Family, formatIp, ipBytes, joinHostPort, parseIp, splitHostPort } from '../../src/lib/ip.ts'
import type { Walkable } from '../../src/packet-walk/types.ts'
import { modeNamed } from '../../src/modes/all.ts'
import { node, nodeAddresses, peer, pods } from '../support/addresses.ts'
import { nodeViewOf } from '../support/planned-node.ts'
import { plannedWalkables } from '../support/planned-walkable.ts'
import { Dice } from '../support/random-clusters.ts'
import { runs } from '../support/runs.ts'

const CLUSTERS = runs(250).numRuns
const seed = Number(process.env['EXPLAIN_SEED'] ?? 1)
const MODES = ['nftables', 'iptables', 'ipvs', 'userspace'] as const

interface Cluster {
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
}

/** Each service has endpoints for each client, and addresses of its own. */
function aHealthyCluster(dice: Dice, family: Family): Cluster {
  const services: Service[] = []
  const slices: EndpointSlice[] = []
  for (let i = 0; i < 1 + dice.below(4); i++) {
    const type = dice.pick(['ClusterIP', 'NodePort', 'LoadBalancer'])
    const isLocal = dice.one(3)
    const name = `s${i}`
    const ip = (v4: string, v6: string) => (family === 4 ? `${v4}.${10 + i}` : `${v6}${10 + i}`)
    services.push({
      namespace: 'default',
      name,
      type,
      clusterIPs: [ip('10.2.0', 'fd02::')],
      externalIPs: dice.one(3) ? [ip('192.0.2', '2001:db8::')] : [],
      ports: Array.from({ length: 1 + dice.below(2) }, (_, nth) => ({
        name: `p${nth}`,
        protocol: 'TCP',
        port: 80 + nth,
        nodePort: type === 'ClusterIP' ? 0 : 30_000 + i * 10 + nth,
      })),
      sessionAffinity: dice.one(4) ? 'ClientIP' : 'None',
      affinityTimeoutSeconds: 600,
      externalTrafficPolicy: isLocal ? 'Local' : 'Cluster',
      internalTrafficPolicy: isLocal ? 'Local' : 'Cluster',
      loadBalancerSourceRanges: [],
      healthCheckNodePort: 0,
      ingress: type === 'LoadBalancer' ? [{ ip: ip('198.51.100', '2001:db8:1::'), ipMode: 'VIP' }] : [],
      labels: undefined,
      annotations: undefined,
      createdMs: i,
    })
    const hosts = Object.values(pods).filter(({ nodeName }) => nodeName === node.name || dice.one(2))
    slices.push({
      namespace: 'default',
      name: `${name}-1`,
      serviceName: name,
      addressType: `IPv${family}`,
      ports: services[i]!.ports.map((port, nth) => ({ name: port.name, protocol: 'TCP', port: 3000 + nth })),
      endpoints: hosts.map((host) => ({
        address: host.ip[family],
        ready: true,
        serving: true,
        terminating: false,
        nodeName: host.nodeName,
        zoneHints: undefined,
        nodeHints: undefined,
      })),
      triggerTimeMs: undefined,
    })
  }
  return { services, slices }
}

const isHere = (address: string, family: Family) =>
  Object.values(pods).some(({ ip, nodeName }) => nodeName === node.name && ip[family] === address)

/** Links of pods begin with cni; other nodes are behind eth0. */
function packetsOf(explanation: Explanation, family: Family, mode: string): ForeignPacket[] {
  const { question, backends, kernel } = explanation
  const isOwn = question.from === 'the node itself'
  const [way] = kernel?.ways ?? []
  const { ip, port } = splitHostPort(way?.destination ?? ':0')
  const address = parseIp(ip)
  return packetsOfFlow({
    client: {
      address: ipBytes(question.source),
      link: isOwn ? undefined : isHere(question.source, family) ? 'cni0' : 'eth0',
    },
    service: { address: ipBytes(question.destination), port: question.port },
    endpoints: backends
      .filter(({ eligible }) => eligible)
      .map((each) => ({
        address: ipBytes(each.address),
        port: each.port,
        way: { kind: 'link', link: isHere(each.address, family) ? 'cni0' : 'eth0', mtu: 1500 },
      })),
    relay: mode === 'userspace' && address !== undefined ? { address, port } : undefined,
    mode,
    protocol: 'TCP',
  })
}

const EVERYTHING: Readonly<Record<Family, string>> = { 4: '10.0.0.0/8', 6: 'fd00::/8' }

/** Firewalls as their programs make them. In the modes that end or turn connections in the hook input, that has to be open. */
function friendlyFirewalls(dice: Dice, family: Family, mode: string): ForeignTable[] {
  const input = mode === 'nftables' || mode === 'iptables' ? 'DROP' : 'ACCEPT'
  const iptables = (...lines: readonly string[]) =>
    parseForeignIptables(`${lines.join('\n')}\nCOMMIT\n`, 'iptables-nft')
  const docker = iptables(
    '*filter',
    ':INPUT ACCEPT [0:0]',
    ':FORWARD DROP [0:0]',
    ':DOCKER-USER - [0:0]',
    ':DOCKER-ISOLATION-STAGE-1 - [0:0]',
    ':FLANNEL-FWD - [0:0]',
    ':KUBE-FORWARD - [0:0]',
    '-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD',
    '-A FORWARD -j DOCKER-USER',
    '-A FORWARD -j DOCKER-ISOLATION-STAGE-1',
    '-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
    '-A FORWARD -i docker0 ! -o docker0 -j ACCEPT',
    '-A FORWARD -j FLANNEL-FWD',
    '-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DROP',
    '-A DOCKER-USER -j RETURN',
    `-A FLANNEL-FWD -s ${EVERYTHING[family]} -j ACCEPT`,
    `-A FLANNEL-FWD -d ${EVERYTHING[family]} -j ACCEPT`,
    '-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP',
  )
  const ufw = iptables(
    '*filter',
    `:INPUT ${input} [0:0]`,
    ':FORWARD ACCEPT [0:0]',
    ':ufw-before-input - [0:0]',
    ':ufw-user-input - [0:0]',
    ':ufw-logging-deny - [0:0]',
    '-A INPUT -j ufw-before-input',
    '-A INPUT -j ufw-user-input',
    '-A ufw-before-input -i lo -j ACCEPT',
    '-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
    '-A ufw-before-input -m conntrack --ctstate INVALID -j ufw-logging-deny',
    '-A ufw-before-input -m conntrack --ctstate INVALID -j DROP',
    '-A ufw-before-input -p icmp -m icmp --icmp-type 8 -j ACCEPT',
    '-A ufw-logging-deny -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "',
    '-A ufw-user-input -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW -m recent --set --name DEFAULT --mask 255.255.255.255 --rsource',
    '-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT',
  )
  const is = (left: object, right: unknown, op = 'in') => ({ match: { op, left, right } })
  const state = { ct: { key: 'state' } }
  const chain = (name: string, hook: object, rules: readonly (readonly object[])[]) => [
    { chain: { family: 'inet', table: 'firewalld', name, ...hook } },
    ...rules.map((expr, i) => ({ rule: { family: 'inet', table: 'firewalld', chain: name, handle: i, expr } })),
  ]
  const firewalld = parseForeignTables(
    JSON.stringify({
      nftables: [
        { table: { family: 'inet', name: 'firewalld' } },
        ...chain('mangle_PREROUTING', { type: 'filter', hook: 'prerouting', prio: -140, policy: 'accept' }, []),
        ...chain('filter_FORWARD', { type: 'filter', hook: 'forward', prio: 10, policy: 'accept' }, [
          [is(state, ['established', 'related']), { accept: null }],
          [is({ ct: { key: 'status' } }, 'dnat'), { accept: null }],
          // firewalld has the networks of pods in its zone "trusted".
          [
            is({ payload: { protocol: family === 4 ? 'ip' : 'ip6', field: 'saddr' } }, '@trusted', '=='),
            { accept: null },
          ],
          [is(state, ['invalid']), { drop: null }],
          [{ reject: { type: 'icmpx', expr: 'admin-prohibited' } }],
        ]),
        {
          set: {
            family: 'inet',
            table: 'firewalld',
            name: 'trusted',
            elem: [{ prefix: { addr: EVERYTHING[family].split('/')[0], len: 8 } }],
          },
        },
        ...chain('filter_INPUT', { type: 'filter', hook: 'input', prio: 10, policy: 'accept' }, [
          [is(state, ['established', 'related']), { accept: null }],
          [is({ meta: { key: 'iifname' } }, 'lo', '=='), { accept: null }],
          ...(input === 'DROP' ? [[{ reject: { type: 'icmpx', expr: 'admin-prohibited' } }]] : []),
        ]),
      ],
    }),
  )!
  const strict = parseForeignTables(
    JSON.stringify({
      nftables: [
        { table: { family: 'netdev', name: 'guard' } },
        {
          chain: {
            family: 'netdev',
            table: 'guard',
            name: 'in',
            type: 'filter',
            hook: 'ingress',
            prio: 0,
            dev: 'eth0',
          },
        },
        {
          rule: {
            family: 'netdev',
            table: 'guard',
            chain: 'in',
            handle: 1,
            expr: [
              is({ payload: { protocol: 'tcp', field: 'flags' } }, { set: ['fin', 'rst'] }, '=='),
              is({ payload: { protocol: 'tcp', field: 'dport' } }, 23, '=='),
              { drop: null },
            ],
          },
        },
      ],
    }),
  )!
  // Translated connections pass firewalld by their state; where there is no such state it is not used with other modes.
  const isTranslated = mode === 'nftables' || mode === 'iptables'
  return dice.some([...docker, ...ufw, ...(isTranslated ? firewalld : []), ...strict])
}

interface Asked extends Cluster {
  readonly known: Known
  readonly family: Family
  readonly mode: (typeof MODES)[number]
  readonly walkable: Walkable
  readonly tables: readonly ForeignTable[]
}

function explainOne({ known, walkable }: Asked, from: string, to: string): Explanation {
  return explain(prepare(known, { from, to }), { kind: 'walkable', walkable, when: 'read now', nowMs: 0 })
}

/** Everything answers. */
function reached(explanation: Explanation | undefined): EndpointFacts {
  const all = (explanation?.backends ?? [])
    .filter((each) => each.eligible)
    .map(({ address, port }) => joinHostPort(address, port))
  const answer = (to: string): TryFact => ({ to, pod: '', result: 'connected', error: '' })
  return {
    ways: all.map((to) => ({ to, way: { kind: 'link', link: 'eth0', mtu: 1500 } })),
    tries: all.map(answer),
    ends: undefined,
    serviceTry: explanation && answer(explanation.question.destination),
  }
}

/** As read-facts.ts does it, with a network that works. */
function factsOf(asked: Asked, service: string, from: string): ServiceExamination {
  const { known, family, mode, tables } = asked
  const explanation = explainOne(asked, from, service)
  const others = otherFrontends(known, { service, port: '', from, via: undefined, explained: explanation }).map(
    ({ kind, label, target }): OtherFrontend => {
      const of = target === undefined ? undefined : explainOne(asked, from, target)
      return { kind, label, explanation: of, ...reached(of) }
    },
  )
  const all = [explanation, ...others.flatMap((other) => other.explanation ?? [])]
  const packets = all.filter(({ outcome }) => outcome === 'to').flatMap((each) => packetsOf(each, family, mode))
  const own = new Set(nodeAddresses)
  const { found, doubts } = findForeign(tables, packets, { isLocalAddress: (address) => own.has(formatIp(address)) })
  const foreign: ForeignFacts = {
    found: found.map((end) => factOf(end, end.rule)),
    doubts: doubts.map((end) => doubtOf(end, end.rule)),
    walls: [],
    policyEngines: [],
  }
  return {
    asked: { service, port: '', from, via: undefined },
    proxy: { kind: 'answers', mode, node: node.name, unheard: [] },
    installation: { logs: 'journalctl', status: 'systemctl' },
    service: serviceFact(known, undefined, service),
    apiError: undefined,
    near: [],
    explanation,
    others,
    machine: {
      forwardingOff: [],
      conntrack: { count: 10, max: 1000 },
      smallMtus: [],
      podMtu: { link: 'cni0', mtu: 1450 },
      strictRpFilter: ['eth0'],
      rpFiltered: 3,
    },
    foreign,
    ...reached(explanation),
    wayBack: undefined,
    staleFlows: [],
    dns: { kind: 'not asked' },
  }
}

const CLIENTS: Readonly<Record<string, (family: Family) => string>> = {
  node: () => 'node',
  outside: () => 'outside',
  pod: (family) => Object.values(pods).find(({ nodeName }) => nodeName === node.name)!.ip[family],
  elsewhere: (family) => Object.values(pods).find(({ nodeName }) => nodeName === peer.name)!.ip[family],
}

async function aCluster(mode: (typeof MODES)[number], nth: number): Promise<{ asked: Asked; dice: Dice }> {
  const dice = new Dice(seed * 1_000_000 + nth)
  const family = dice.pick([4, 6] as const)
  const cluster = aHealthyCluster(dice, family)
  const of = modeNamed(mode)
  const view = nodeViewOf(family, {}, of.defaultNodePortAddresses)
  const known: Known = {
    source: 'a random cluster',
    hasObjects: true,
    mode: of,
    nodes: { [family]: view },
    machineAddresses: nodeAddresses,
    services: cluster.services,
    slices: cluster.slices,
    allowExternalIPs: true,
    localhostNodePorts: true,
    connectRetry: false,
    ejected: new Map(),
    otherNodes: [],
    pods: [],
  }
  const walkable = await plannedWalkables[mode](view, [...decideAll(known, family)!.model.views()])
  return { asked: { ...cluster, known, family, mode, walkable, tables: friendlyFirewalls(dice, family, mode) }, dice }
}

test.each(MODES)('of healthy clusters in mode %s, the doctor finds nothing', async (mode) => {
  let count = 0
  for (let nth = 0; nth < CLUSTERS; nth++) {
    const { asked, dice } = await aCluster(mode, nth)
    const client = dice.pick(Object.keys(CLIENTS))
    for (const { name } of asked.services) {
      const { answers, finding } = examine(factsOf(asked, `default/${name}`, CLIENTS[client]!(asked.family)))
      if (finding !== null) expect.fail(`cluster ${nth}, ${client} to ${name}: ${finding.code}: ${finding.what}`)
      const open = answers.filter(({ result }) => result === 'not known').map(({ question }) => question)
      expect(open, `cluster ${nth}, ${client} to ${name}`).toEqual([])
      count++
    }
  }
  expect(count).toBeGreaterThan(CLUSTERS)
})

/** What goes wrong, and what the doctor calls it. */
const PLANTS: Readonly<Record<string, (facts: ServiceExamination) => Partial<ServiceExamination> | undefined>> = {
  'endpoint-silent': ({ tries: [first, ...rest], machine }) =>
    first && {
      tries: [{ ...first, result: 'no answer', error: 'no answer' }, ...rest],
      machine: { ...machine, rpFiltered: 0 },
    },
  'rp-filter': ({ tries: [first, ...rest] }) =>
    first && { tries: [{ ...first, result: 'no answer', error: 'no answer' }, ...rest] },
  'endpoint-refuses': ({ tries: [first, ...rest] }) =>
    first && { tries: [{ ...first, result: 'refused', error: 'ECONNREFUSED' }, ...rest] },
  'no-route': ({ ways }) =>
    ways && ways.length > 0
      ? { ways: ways.map(({ to }) => ({ to, way: { kind: 'none', error: 'a blackhole' } })) }
      : undefined,
  'small-mtu': ({ ways }) =>
    ways && ways.length > 0
      ? { ways: ways.map(({ to }) => ({ to, way: { kind: 'link', link: 'eth0', mtu: 1400 } })) }
      : undefined,
  'forwarding-off': ({ machine, proxy }) =>
    proxy.kind === 'answers' && proxy.mode === 'userspace'
      ? undefined
      : { machine: { ...machine, forwardingOff: [{ setting: 'net.ipv4.ip_forward' }] } },
  'proxy-silent': () => ({ proxy: { kind: 'silent', error: 'it hangs' } }),
  'no-way-back': () => ({ wayBack: { to: '203.0.113.7', way: { kind: 'none', error: 'there is no route' } } }),
}

test.each(MODES)('of what is planted in one of them in mode %s, nothing is missed', async (mode) => {
  for (let nth = 0; nth < CLUSTERS / 4; nth++) {
    const { asked, dice } = await aCluster(mode, nth)
    const { name } = dice.pick(asked.services)
    const facts = factsOf(asked, `default/${name}`, CLIENTS[dice.pick(Object.keys(CLIENTS))]!(asked.family))
    const code = dice.pick(Object.keys(PLANTS))
    const planted = PLANTS[code]!(facts)
    if (planted === undefined) continue
    expect(examine({ ...facts, ...planted }).finding?.code, `cluster ${nth}`).toBe(code)
  }
})
