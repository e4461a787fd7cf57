// Failures as people have them, planted one by one on a node that works, in every mode that runs here: the doctor finds each, names
// it, and says a command that exists. In between, it finds nothing.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { DoctorLine, type DoctorQuestion, Shell } from './support/lines.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './support/machine.ts'
import { aPod, aSickPod, aSliceByHand } from './support/objects.ts'
import { program, SandboxProcess } from './support/sandbox-process.ts'

enterMachine()
const root = makeRoot()
const services = '/api/v1/namespaces/default/services'
const TAKEN = '192.0.2.80'

type Mode = 'nftables' | 'iptables' | 'userspace' | 'ipvs'
const ALL_MODES: readonly Mode[] = ['nftables', 'iptables', 'userspace', 'ipvs']
/** The kernel of this machine may lack that of ipvs: test/uml/doctor-plants.test.ts has it. */
const isIpvs = process.env['SANDBOX_MODES'] === 'ipvs'
const MODES = ALL_MODES.filter((mode) => (mode === 'ipvs') === isIpvs)

let sandbox: SandboxProcess
let node: Shell
let doctor: DoctorLine
const pods = new Map<string, Shell>()

beforeAll(async () => {
  sandbox = await SandboxProcess.start(root, '--empty')
  const { api } = sandbox
  const path = '/api/v1/namespaces/default/pods'
  await Promise.all(
    [aPod('a1', 'node-1', 'web'), aPod('b1', 'node-2', 'web'), aSickPod()].map((pod) => api.create(path, pod)),
  )
  for (const service of objects) await api.create(services, service)
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
  await api.create(slices, aSliceByHand('by-hand', { name: 'web', ready: true }))
  // Beside the one of the controller, which is up to date.
  await api.create(slices, aSliceByHand('forgotten', { name: 'http', ready: true }))
  await api.create(slices, aSliceByHand('unready', { name: 'http', ready: false }))
  const byHand = (service: string, addressType: string, address: string) => ({
    ...aSliceByHand(service, { name: '', ready: true }),
    addressType,
    ports: [{ name: '', port: 80, protocol: 'TCP' }],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  })
  await api.create(slices, byHand('other-family', 'IPv6', 'fd00:244::77'))
  const { spec } = await api.get(`${services}/web`)
  await api.create(slices, byHand('of-a-service', 'IPv4', String(spec.clusterIP)))
  const { clusters } = parse(readFileSync(sandbox.path('kube-proxy.kubeconfig'), 'utf8')) as {
    clusters: [{ cluster: { server: string } }]
  }
  node = new Shell(sandbox, 'node-1')
  for (const name of ['a1', 'b1', 'node-2']) pods.set(name, new Shell(sandbox, name))
  doctor = new DoctorLine(sandbox, 'node-1', [sandbox.path('kubeconfig'), clusters[0].cluster.server])
  await isWell()
})
afterAll(async () => {
  for (const each of [node, doctor, ...pods.values()]) await each[Symbol.asyncDispose]()
  await sandbox[Symbol.asyncDispose]()
  expect(leftovers(root)).toEqual([])
  removeRoot(root)
})

function isWell(): Promise<void> {
  return eventually(
    'the doctor finds nothing',
    async () => (await doctor.about({ service: 'default/web' })).finding?.what,
  )
}

function aService(name: string, spec: object = {}, labels: Readonly<Record<string, string>> = {}): object {
  const ports = [{ port: 80, targetPort: 'web' }]
  return { metadata: { name, labels }, spec: { selector: { app: 'web' }, ports, ...spec } }
}

const onNode2 = { name: 'b1' }
const outside = { type: 'LoadBalancer', selector: onNode2, externalTrafficPolicy: 'Local' }
const objects = [
  aService('web'),
  // The oldest service that asks for an address gets it, and of one second the first by name.
  aService('web-early', { externalIPs: [TAKEN] }),
  aService('headless', { clusterIP: 'None' }),
  { metadata: { name: 'elsewhere' }, spec: { type: 'ExternalName', externalName: 'example.com' } },
  aService('adopted', {}, { 'service.kubernetes.io/service-proxy-name': 'other' }),
  { metadata: { name: 'unwritten' }, spec: { ports: [{ port: 80 }] } },
  aService('sick', { selector: { app: 'sick' } }),
  { metadata: { name: 'by-hand' }, spec: { ports: [{ name: 'http', port: 80 }] } },
  { metadata: { name: 'unready' }, spec: { ports: [{ name: 'http', port: 80 }] } },
  aService('unmatched', { selector: { app: 'wev' } }),
  aService('misnamed', { ports: [{ port: 80, targetPort: 'http' }] }),
  aService('inside', { selector: onNode2, internalTrafficPolicy: 'Local' }),
  aService('outside', outside),
  aService('walled', { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.9.0.0/16'] }),
  aService('web-late', { externalIPs: [TAKEN] }),
  aService('deaf', { ports: [{ port: 80, targetPort: 4444 }] }),
  aService('far', { selector: onNode2 }),
  aService('far-deaf', { selector: onNode2, ports: [{ port: 80, targetPort: 4444 }] }),
  aService('front', { type: 'LoadBalancer' }),
  aService('forgotten', { selector: onNode2, ports: [{ name: 'http', port: 80, targetPort: 'web' }] }),
  aService('pinned', { sessionAffinity: 'ClientIP' }),
  aService('deaf-dns', { ports: [{ port: 53, protocol: 'UDP', targetPort: 4444 }] }),
  aService('pending', { type: 'LoadBalancer', loadBalancerClass: 'example.com/nobody' }),
  { metadata: { name: 'other-family' }, spec: { ports: [{ port: 80 }] } },
  { metadata: { name: 'of-a-service' }, spec: { ports: [{ port: 80 }] } },
  aService('old-dns', { ports: [{ port: 53, protocol: 'UDP', targetPort: 3000 }] }),
]

/** In the order of the objects: nothing of the node is touched. */
const OF_OBJECTS: readonly (readonly [code: string, service: string, how?: Omit<DoctorQuestion, 'service'>])[] = [
  ['no-service', 'default/wbe'],
  ['headless', 'default/headless'],
  ['external-name', 'default/elsewhere'],
  ['another-proxy', 'default/adopted'],
  ['no-port', 'default/web:81'],
  ['selector-matches-nothing', 'default/unmatched'],
  ['no-endpoints', 'default/unmatched', { seesPods: false }],
  ['no-selector', 'default/unwritten'],
  ['pods-not-ready', 'default/sick'],
  ['pods-not-ready', 'default/unready', { seesPods: false }],
  ['target-port-name', 'default/misnamed'],
  ['endpoint-port-name', 'default/by-hand'],
  ['internal-policy-local', 'default/inside'],
  ['external-policy-local', 'default/outside', { from: 'outside' }],
  ['external-policy-local', 'default/outside', { from: '172.30.0.1' }],
  ['external-policy-local', 'default/outside', { from: 'outside', via: 'nodePort' }],
  ['source-not-allowed', 'default/walled', { from: 'outside' }],
  ['source-not-allowed', 'default/walled', { from: '172.30.0.1', seesPods: false }],
  ['address-taken', 'default/web-late'],
  ['endpoint-refuses', 'default/deaf'],
  ['endpoint-refuses', 'default/deaf-dns', { sends: true }],
  ['endpoint-family', 'default/other-family'],
  ['stale-endpoint', 'default/forgotten'],
  ['load-balancer-pending', 'default/pending', { from: 'outside' }],
  ['load-balancer-pending', 'default/pending', { via: 'loadBalancerIP' }],
  ['no-address', 'default/web', { via: 'externalIP' }],
]

interface Plant {
  readonly code: string
  /** In a pod, or on the other node. */
  readonly pod?: string
  readonly plant: string
  readonly remove: string
  readonly ask?: Partial<DoctorQuestion>
  /** What the finding says. */
  readonly says?: RegExp
  /** Where it does harm; in every mode if absent. */
  readonly modes?: readonly Mode[]
}

/** A table of nftables with one chain. */
function table(
  name: string,
  base: string,
  rule: string,
  chain = 'c',
  type = 'filter',
): Pick<Plant, 'code' | 'plant' | 'remove'> {
  const lines = [
    `add table ${name}`,
    `add chain ${name} ${chain} { type ${type} hook ${base}; }`,
    `add rule ${name} ${chain} ${rule}`,
  ]
  return {
    code: 'foreign-rule',
    plant: lines.map((line) => `nft '${line}'`).join('; '),
    remove: `nft delete table ${name}`,
  }
}

/** A rule of iptables, perhaps in a chain that another program would have. */
function iptables(of: string, chain: string, rule: string, owned?: string): Pick<Plant, 'code' | 'plant' | 'remove'> {
  if (owned === undefined) {
    return { code: 'foreign-rule', plant: `${of} -I ${chain} ${rule}`, remove: `${of} -D ${chain} ${rule}` }
  }
  return {
    code: 'foreign-rule',
    plant: `${of} -N ${owned}; ${of} -I ${chain} -j ${owned}; ${of} -A ${owned} ${rule}`,
    remove: `${of} -D ${chain} -j ${owned}; ${of} -F ${owned}; ${of} -X ${owned}`,
  }
}

/** A program on port 4444, which may be stopped: then connections wait for it to accept them. */
function listening(address: string, then = ''): Pick<Plant, 'plant' | 'remove'> {
  const pid = join(root, 'listener')
  const program = `require("node:net").createServer().listen({ host: "${address}", port: 4444, backlog: 1 })`
  return {
    plant: `node -e '${program}' > /dev/null 2>&1 & echo $! > ${pid}
      until ss -ltn | grep -q :4444; do sleep 0.05; done; ${then.replaceAll('PID', `$(cat ${pid})`)}`,
    remove: `kill -KILL $(cat ${pid}); rm ${pid}; while ss -ltn | grep -q :4444; do sleep 0.05; done`,
  }
}
const CLIENTS = 'for i in 1 2 3 4; do curl -sm 9 127.0.0.1:4444 > /dev/null 2>&1 & done; sleep 0.3'

/** A pod of this node that nobody has: only its packets are followed. */
const A_POD = { from: '10.244.1.99' }
/** That of ipvs has no hook ingress, no target TTL, no xfrm, and tells nothing of what it drops. */
const FULL_KERNEL: readonly Mode[] = ['nftables', 'iptables', 'userspace']
const TRANSLATING: readonly Mode[] = ['nftables', 'iptables']
const WEB = 'tcp dport 3000'

const PLANTS: Readonly<Record<string, Plant>> = {
  'a drop in a table called filter': {
    ...table('inet filter', 'output priority 0', `${WEB} drop`),
    says: /table inet filter, chain c: tcp dport 3000 drop$/,
  },
  'a drop in a table called nat': table('ip nat', 'output priority 0', `${WEB} drop`),
  'a drop in a table called mangle': table('inet mangle', 'postrouting priority 0', `${WEB} drop`),
  'a policy that drops': {
    ...table('inet fw', 'output priority 0; policy drop', 'tcp dport 22 accept'),
    says: /policy drop$/,
  },
  'a set of ports': table('inet fw', 'output priority 0', 'tcp dport { 80, 2000-4000 } drop'),
  'a link': {
    ...table('inet fw', 'output priority 0', 'oifname "eth*" tcp flags syn drop'),
    ask: { service: 'default/far' },
  },
  'the answers': { ...table('inet fw', 'input priority 0', 'tcp sport 3000 drop'), says: /the answer of 10\.244\./ },
  'what comes in by a link': {
    ...table('netdev guard', 'ingress device eth0 priority 0', 'tcp sport 3000 drop'),
    ask: { service: 'default/far' },
    modes: FULL_KERNEL,
  },
  'what is forwarded': {
    ...table('inet fw', 'forward priority 0', 'ct state new drop'),
    ask: A_POD,
    modes: TRANSLATING,
  },
  'the Service, before it is translated': {
    ...table('inet fw', 'prerouting priority -300', 'ip daddr 10.96.0.0/16 drop'),
    ask: A_POD,
  },
  'a node port, before it is translated': {
    ...table('inet fw', 'prerouting priority -150', 'tcp dport 30000-32767 drop'),
    ask: { service: 'default/front', from: 'outside' },
    says: /to 172\.30\.0\.11:3\d{4}/,
  },
  'the proxy itself, behind a closed hook input': {
    ...table('inet fw', 'input priority 0; policy drop', 'ct state established accept'),
    ask: A_POD,
    modes: ['userspace'],
  },
  'the connection tracker looks away': {
    ...table('ip fast', 'output priority -300', 'ip daddr 10.96.0.0/16 notrack'),
    says: /connection tracker/,
  },
  'firewalld refuses': {
    ...table('inet firewalld', 'output priority 10', `${WEB} reject with icmpx admin-prohibited`, 'filter_OUTPUT'),
    says: /^a rule of firewalld refuses/,
  },
  'iptables drops': {
    ...iptables('iptables-nft', 'OUTPUT', '-p tcp --dport 3000 -j DROP'),
    says: /table filter of iptables-nft, chain OUTPUT/,
  },
  'iptables-legacy drops': {
    ...iptables('iptables-legacy', 'OUTPUT', '-p tcp --dport 3000 -j DROP'),
    says: /of iptables-legacy/,
  },
  'iptables drops in raw': { ...iptables('iptables-nft -t raw', 'PREROUTING', '-d 10.96.0.0/16 -j DROP'), ask: A_POD },
  'iptables drops in mangle': {
    ...iptables('iptables-nft -t mangle', 'POSTROUTING', '-p tcp -m multiport --dports 80,3000 -j DROP'),
  },
  'iptables sends it elsewhere': {
    ...iptables('iptables-nft -t nat', 'PREROUTING', '-d 10.96.0.0/16 -j DNAT --to-destination 192.0.2.1'),
    ask: A_POD,
    says: /redirects/,
  },
  'the answers are not tracked': {
    ...table('ip fast', 'prerouting priority -300', 'tcp sport 3000 notrack'),
    ask: { service: 'default/far' },
    says: /connection tracker.*the answer of 10\.244\.2\./,
    modes: TRANSLATING,
  },
  'the policy of FORWARD': {
    code: 'foreign-rule',
    plant: 'iptables-nft -P FORWARD DROP',
    remove: 'iptables-nft -P FORWARD ACCEPT',
    ask: A_POD,
    modes: TRANSLATING,
  },
  'ufw drops': {
    ...iptables('iptables-nft', 'OUTPUT', '-m conntrack --ctstate NEW -j DROP', 'ufw-user-output'),
    says: /^a rule of ufw drops/,
  },
  'Docker drops': {
    ...iptables('iptables-nft', 'FORWARD', '-i cni0 -j DROP', 'DOCKER-USER'),
    ask: A_POD,
    says: /^a rule of Docker drops/,
    modes: TRANSLATING,
  },
  'Cilium drops': {
    ...iptables('iptables-nft', 'FORWARD', '-j DROP', 'CILIUM_FORWARD'),
    ask: A_POD,
    says: /^a rule of Cilium drops/,
    modes: TRANSLATING,
  },
  'a policy of Calico': {
    ...iptables('iptables-nft', 'FORWARD', '-p tcp --dport 3000 -j DROP', 'cali-tw-cali1'),
    code: 'network-policy',
    ask: A_POD,
    says: /enforced by Calico/,
    modes: TRANSLATING,
  },
  'a policy of kube-router': {
    ...iptables('iptables-nft', 'FORWARD', '-d 10.244.0.0/16 -j REJECT', 'KUBE-POD-FW-X'),
    code: 'network-policy',
    ask: A_POD,
    says: /kube-router, refuses/,
    modes: TRANSLATING,
  },
  'a policy of kube-network-policies': {
    ...table('inet kube-network-policies', 'postrouting priority 0', 'ip daddr 10.244.0.0/16 ct state new drop'),
    code: 'network-policy',
  },
  'a blackhole': {
    code: 'no-route',
    plant: 'ip route add blackhole 10.244.2.0/25',
    remove: 'ip route del blackhole 10.244.2.0/25',
    ask: { service: 'default/far' },
  },
  'an unreachable network': {
    code: 'no-route',
    plant: 'ip route add unreachable 10.244.2.0/25',
    remove: 'ip route del unreachable 10.244.2.0/25',
    ask: { service: 'default/far' },
  },
  'a prohibited network': {
    code: 'no-route',
    plant: 'ip route add prohibit 10.244.2.0/25',
    remove: 'ip route del prohibit 10.244.2.0/25',
    ask: { service: 'default/far' },
  },
  'no way back': {
    code: 'no-way-back',
    plant: 'ip route add unreachable 198.51.100.0/24',
    remove: 'ip route del unreachable 198.51.100.0/24',
    ask: { from: '198.51.100.7', via: 'clusterIP' },
  },
  'policy routing that refuses what a pod sends': {
    code: 'no-route',
    plant: 'ip rule add pref 50 iif cni0 to 10.244.2.0/24 prohibit',
    remove: 'ip rule del pref 50',
    ask: { service: 'default/far', ...A_POD },
    says: /^packets of 10\.244\.1\.99 that come in by cni0 have no route to the endpoint 10\.244\.2\./,
    modes: TRANSLATING,
  },
  'policy routing by the mark for masquerading': {
    code: 'no-route',
    plant: 'ip rule add pref 50 fwmark 0x4000/0x4000 unreachable',
    remove: 'ip rule del pref 50',
    ask: { service: 'default/far' },
    says: /^packets of this node to the Service have no route/,
    modes: TRANSLATING,
  },
  'policy routing of the answers': {
    code: 'no-way-back',
    plant: 'ip rule add pref 50 iif eth0 to 10.244.1.0/24 blackhole',
    remove: 'ip rule del pref 50',
    ask: { service: 'default/far', ...A_POD },
    says: /^answers, packets of 10\.244\.2\.\d+ that come in by eth0, have no route to the client 10\.244\.1\.99/,
    modes: TRANSLATING,
  },
  'a link with a small MTU': {
    code: 'small-mtu',
    plant: 'ip link set eth0 mtu 1300',
    remove: 'ip link set eth0 mtu 1500',
    ask: { service: 'default/far' },
  },
  'a route with a small MTU': {
    code: 'small-mtu',
    plant: 'ip route add 10.244.2.0/25 via 172.30.0.12 mtu 1300',
    remove: 'ip route del 10.244.2.0/25',
    ask: { service: 'default/far' },
  },
  'an MTU that IPv6 does not accept': {
    code: 'small-mtu',
    plant: 'ip link set eth0 mtu 900',
    remove: 'ip link set eth0 mtu 1500',
  },
  'no forwarding': {
    code: 'forwarding-off',
    plant: 'sysctl -qw net.ipv4.ip_forward=0',
    remove: 'sysctl -qw net.ipv4.ip_forward=1',
    modes: TRANSLATING,
  },
  'no forwarding of what one link brings': {
    code: 'forwarding-off',
    plant: 'sysctl -qw net.ipv4.conf.cni0.forwarding=0',
    remove: 'sysctl -qw net.ipv4.conf.cni0.forwarding=1',
    says: /cni0\.forwarding is 0: this machine forwards no packets that come in by cni0/,
    modes: TRANSLATING,
  },
  'a router that is not there': {
    code: 'next-hop-silent',
    plant: 'ip route add 10.244.2.0/25 via 172.30.0.99',
    remove: 'ip route del 10.244.2.0/25',
    ask: { service: 'default/far' },
    says: /^nobody on eth0 answers for the address 172\.30\.0\.99 \(ARP\), the next hop to the endpoint 10\.244\.2\./,
  },
  'an address of a pod on this machine, too': {
    code: 'wrong-route',
    plant: 'ip addr add 10.244.2.3/32 dev lo',
    remove: 'ip addr del 10.244.2.3/32 dev lo',
    ask: { service: 'default/far' },
    says: /its address is one of this machine's own, and its EndpointSlice says that it is on node-2$/,
  },
  'a neighbour that nobody is': {
    code: 'endpoint-silent',
    plant: 'ip neigh replace 172.30.0.12 lladdr 02:00:00:00:00:99 nud permanent dev eth0',
    remove: 'ip neigh del 172.30.0.12 dev eth0',
    ask: { service: 'default/far', sends: true },
    says: /carries the MAC address of another machine than those that get it/,
  },
  'a wall in the pod': {
    ...table('inet wall', 'input priority 0', `${WEB} drop`),
    pod: 'a1',
    code: 'endpoint-silent',
    ask: { sends: true },
    says: /1 of 2 endpoints does not answer: .*table inet wall, chain c: .*drop$/,
  },
  'a wall on the other node': {
    ...table('inet wall', 'forward priority 0', `${WEB} drop`),
    pod: 'node-2',
    code: 'endpoint-silent',
    ask: { service: 'default/far', sends: true },
    says: /in the network namespace \S+node-2, link \S+, by table inet wall, chain c: .*drop$/,
  },
  'a filter of tc': {
    code: 'endpoint-silent',
    plant: `tc qdisc add dev eth0 clsact; tc filter add dev eth0 egress protocol ip bpf da bytecode '1,6 0 0 2'`,
    remove: 'tc qdisc del dev eth0 clsact',
    ask: { service: 'default/far', sends: true },
    says: /on this node, link eth0: a tc filter or BPF program drops it/,
  },
  'another machine that says that there is no way': {
    ...table('inet wall', 'forward priority 0', `${WEB} reject with icmpx host-unreachable`),
    pod: 'node-2',
    code: 'endpoint-unreachable',
    ask: { service: 'default/far' },
    says: /a machine on the way says so \(EHOSTUNREACH\)/,
  },
  'a packet of the Service by its mark': {
    ...table('inet fw', 'output priority 0', 'meta mark and 0x4000 == 0x4000 drop'),
    says: /drops a packet from this node to 10\.244\./,
    modes: TRANSLATING,
  },
  'a source that nobody has': {
    ...table('ip fw', 'postrouting priority 90', 'ip daddr 10.244.2.0/24 snat to 192.0.2.9', 'c', 'nat'),
    code: 'endpoint-silent',
    ask: { service: 'default/far' },
    says: /may give a source that is not of this machine to a packet .*snat to 192\.0\.2\.9$/,
  },
  'a zone of the connection tracker for the answers': {
    ...table('ip fw', 'prerouting priority -300', 'iifname "eth0" ct zone set 5'),
    code: 'service-silent',
    ask: { service: 'default/far' },
    says: /although its endpoints answer; and table ip fw, chain c puts into a zone of its own .*ct zone set 5$/,
    modes: TRANSLATING,
  },
  'too few hops': {
    ...iptables('iptables-nft -t mangle', 'POSTROUTING', '-d 10.244.2.0/24 -j TTL --ttl-set 1'),
    code: 'endpoint-unreachable',
    ask: { service: 'default/far' },
    says: /leaves too few hops \(TTL\) to a packet .*--ttl-set 1$/,
    modes: FULL_KERNEL,
  },
  "another kube-proxy's rules, left over": {
    code: 'service-silent',
    plant: `iptables-legacy -t nat -N KUBE-SERVICES; iptables-legacy -t nat -A KUBE-SERVICES -d 10.96.0.0/16 -p tcp -j DNAT --to 10.244.1.200:3000
      for chain in PREROUTING OUTPUT; do iptables-legacy -t nat -I $chain -j KUBE-SERVICES; done`,
    remove: `for chain in PREROUTING OUTPUT; do iptables-legacy -t nat -D $chain -j KUBE-SERVICES; done
      iptables-legacy -t nat -F KUBE-SERVICES; iptables-legacy -t nat -X KUBE-SERVICES`,
    says: /chain KUBE-SERVICES, of another kube-proxy, may redirect a packet/,
    modes: ['nftables'],
  },
  'a pod that has no route back': {
    code: 'endpoint-silent',
    plant: 'ip route del default',
    remove: 'ip route add default via 10.244.2.1',
    pod: 'b1',
    ask: { service: 'default/far' },
    says: /^the endpoint does not answer: 10\.244\.2\.\d+:3000: its pod has no route back: there is no route$/,
  },
  'a pod that listens on its loopback only': {
    code: 'endpoint-refuses',
    ...listening('127.0.0.1'),
    pod: 'b1',
    ask: { service: 'default/far-deaf' },
    says: /its program listens on port 4444 at 127\.0\.0\.1 only$/,
  },
  'a program that no longer accepts connections': {
    code: 'endpoint-silent',
    ...listening('0.0.0.0', `kill -STOP PID; ${CLIENTS}`),
    pod: 'b1',
    ask: { service: 'default/far-deaf' },
    says: /connections wait there for the program to accept them \(\d+\): it is stuck/,
  },
  'a policy of xfrm': {
    code: 'cannot-dial',
    plant: 'ip xfrm policy add dir out dst 10.244.2.0/24 action block',
    remove: 'ip xfrm policy flush',
    ask: { service: 'default/far' },
    says: /^this node cannot open a connection to 10\.244\.2\..* xfrm, a security module or a BPF program/,
    modes: FULL_KERNEL,
  },
  'a pod on another node that refuses': {
    ...table('inet wall', 'input priority 0', `${WEB} reject with tcp reset`),
    pod: 'b1',
    code: 'endpoint-refuses',
    says: /^1 of 2 endpoints refuses connections: 10\.244\.2\./,
  },
  rp_filter: {
    code: 'rp-filter',
    // As with policy routing: marked packets go the right way, and where the answers come from leads elsewhere.
    plant: `sysctl -qw net.ipv4.conf.eth0.rp_filter=1; ip link add elsewhere type veth peer name nowhere; ip link set elsewhere up; ip link set nowhere up
      ip route add 10.244.2.0/24 dev elsewhere table 77; ip rule add pref 76 fwmark 0x99 lookup main; ip rule add pref 77 to 10.244.2.0/24 lookup 77
      nft add table ip steering; nft 'add chain ip steering out { type route hook output priority -150; }'
      nft add rule ip steering out ip daddr 10.244.2.0/24 meta mark set 0x99`,
    remove: 'ip rule del pref 77; ip rule del pref 76; ip link del elsewhere; nft delete table ip steering',
    ask: { service: 'default/far' },
  },
}

/** Those that only show something, and can be typed here. */
const SHOWS =
  /^(nft (-a )?list|ip route get|ip xfrm policy|tc filter show|ip link show|ip netns exec \S+ nft|iptables\S* .*-L) /

async function isFound(code: string, question: DoctorQuestion, says = /./): Promise<void> {
  const { finding, answers } = await doctor.about(question)
  expect(finding?.what ?? JSON.stringify(answers.filter(({ result }) => result !== 'yes'))).toMatch(says)
  expect(finding).toMatchObject({ code })
  expect(finding!.what).not.toMatch(/\.$|undefined|null/)
  const [command = ''] = finding!.next.split(/ *[#|;]/)
  expect(finding!.next).toMatch(/^(kubectl|kube-proxy|nft|ip|iptables-nft|iptables-legacy|sysctl|dig|conntrack|tc) /)
  // Where there is no route, it says so with status 2.
  const isNoRoute = command.startsWith('ip route get') ? ' || [ $? -eq 2 ]' : ''
  if (SHOWS.test(command)) await node.run(`${command} > /dev/null 2>&1${isNoRoute}`)
}

/**
 * User Mode Linux takes ten times as long, and most of what is asked has nothing to do with the mode. So a third is planted there, unless
 * DOCTOR_PLANTS=all.
 */
function sampleOf<T>(all: readonly T[]): readonly T[] {
  return isIpvs && process.env['DOCTOR_PLANTS'] !== 'all' ? all.filter((_, i) => i % 3 === 0) : all
}

describe.each(MODES)('in mode %s', (mode) => {
  /** The userspace mode relays connections: these failures cannot be there. */
  const whereTranslated = (name: string, run: () => Promise<void>) => {
    if (TRANSLATING.includes(mode)) test(name, run)
  }

  beforeAll(async () => {
    if (mode !== 'nftables') expect(sandbox.run('mode', 'node-1', mode).status).toBe(0)
    await isWell()
  })

  test.each(sampleOf(OF_OBJECTS).map(([code, service, how]) => [code, { service, ...how }] as const))(
    '%s: %o',
    (code, question) => isFound(code, question),
  )

  const harmful = Object.entries(PLANTS).filter(
    ([, { modes = ALL_MODES, ask }]) => modes.includes(mode) && !(isIpvs && ask?.sends === true),
  )
  test.each(sampleOf(harmful))('%s', async (_, { code, plant, remove, says, ask, pod }) => {
    const place = pod === undefined ? node : pods.get(pod)!
    await place.run(plant)
    try {
      // What is planted may keep the node from the API server, too.
      await isFound(code, { service: 'default/web', seesPods: false, ...ask }, says)
    } finally {
      await place.run(remove)
    }
  })

  test('affinity keeps this node at an endpoint that has died', async () => {
    const { spec } = await sandbox.api.get(`${services}/pinned`)
    const said = await node.run(`curl -sm 3 http://${spec.clusterIP}`)
    const pod = pods.get(/\b(a1|b1)\b/.exec(said)![1]!)!
    const wall = table('inet wall', 'input priority 0', `${WEB} drop`)
    await pod.run(wall.plant)
    try {
      await isFound('affinity-pins', { service: 'default/pinned' })
    } finally {
      await pod.run(wall.remove)
    }
  })

  test('a mark for masquerading that is removed is a doubt for clients outside', async () => {
    const wall = table('ip fw', 'postrouting priority -150', 'meta mark set 0')
    await node.run(wall.plant)
    try {
      const question = { service: 'default/front', from: 'outside', via: 'nodePort' }
      const { finding, answers } = await doctor.about(question)
      expect(finding).toBeNull()
      const removes =
        /chain c removes the mark for masquerading.* from a packet from 203\.0\.113\.7 to 10\.244\..*mark set 0/
      if (TRANSLATING.includes(mode)) expect(answers.map(({ detail }) => detail).join('\n')).toMatch(removes)
    } finally {
      await node.run(wall.remove)
    }
  })

  whereTranslated("a name server's cache on this node, and a check of the way back, are healthy", async () => {
    const { spec } = await sandbox.api.get('/api/v1/namespaces/kube-system/services/kube-dns')
    const rule = `-d ${spec.clusterIP} -p tcp --dport 53 -j NOTRACK`
    const chains = ['PREROUTING', 'OUTPUT']
    const check = table('inet rp', 'prerouting priority -300', 'fib saddr . mark . iif oif missing drop')
    await node.run(`ip addr add ${spec.clusterIP}/32 dev lo; ${check.plant}`)
    for (const chain of chains) await node.run(`iptables-nft -t raw -I ${chain} ${rule}`)
    try {
      const { finding, answers } = await doctor.about({ service: 'kube-system/kube-dns:53', seesPods: false })
      expect(finding?.code).not.toBe('foreign-rule')
      expect(answers.find(({ question }) => question.startsWith('do rules'))).toMatchObject({ result: 'yes' })
    } finally {
      for (const chain of chains) await node.run(`iptables-nft -t raw -D ${chain} ${rule}`)
      await node.run(`ip addr del ${spec.clusterIP}/32 dev lo; ${check.remove}`)
    }
  })

  // The userspace mode relays: it has no such flows, and may itself dial another Service.
  if (TRANSLATING.includes(mode)) {
    test('a rule that harms only the attempts of this node is no finding for others', async () => {
      const wall = table('inet fw', 'output priority 0', `${WEB} drop`)
      await node.run(wall.plant)
      try {
        expect(await doctor.about({ service: 'default/web', from: 'outside' })).toMatchObject({
          finding: null,
          isOpen: true,
        })
      } finally {
        await node.run(wall.remove)
      }
    })

    test('an endpoint that is another Service', () =>
      isFound('wrong-route', { service: 'default/of-a-service' }, /is the cluster IP of the Service default\/web: /))

    test('a flow of UDP to where nobody is', async () => {
      const { spec } = await sandbox.api.get(`${services}/old-dns`)
      const flow = `-p udp -s 10.244.1.99 -d ${spec.clusterIP} --sport 5353 --dport 53`
      // The proxy removes such flows for some seconds after a change of the Service.
      await eventually('the flow stays, and is found', async () => {
        await node.run(
          `conntrack -I ${flow} -r 10.244.7.7 -q 10.244.1.99 --reply-port-src 53 --reply-port-dst 5353 -t 300 || true`,
        )
        const { finding } = await doctor.about({ service: 'default/old-dns' })
        return finding?.code === 'stale-flow' ? undefined : (finding?.what ?? 'it finds nothing')
      })
      await node.run(`conntrack -D ${flow}`)
    })
  }

  test.each([
    // IPVS sends what a pod sends through it, too.
    ['output', mode === 'ipvs'],
    ['prerouting', true],
  ])(
    'a rule that cannot be read in the hook %s is no finding; a doubt, if it is of others: %s',
    async (hook, isOpen) => {
      const doubt = table('inet odd', `${hook} priority 0`, 'meta cpu 4095 drop')
      await node.run(doubt.plant)
      try {
        expect(await doctor.about({ service: 'default/web' })).toMatchObject({ finding: null, isOpen })
        expect(await doctor.about({ service: 'default/web', ...A_POD })).toMatchObject({ finding: null, isOpen: true })
      } finally {
        await node.run(doubt.remove)
      }
    },
  )

  test('a wall in the client: its own connection shows it', async () => {
    const wall = table('inet wall', 'output priority 0', 'tcp dport 80 drop')
    const client = pods.get('a1')!
    const from = (await client.run('ip -4 -o addr show dev eth0')).match(/inet ([\d.]+)/)![1]!
    await client.run(wall.plant)
    try {
      const question = { service: 'default/far', from }
      await isFound('service-silent', question, /does not answer from 10\.244\.1\.\d+ .*although its endpoints answer/)
      if (!isIpvs)
        await isFound(
          'service-silent',
          { ...question, sends: true },
          /namespace \S*a1, by table inet wall, chain c: .* drop$/,
        )
    } finally {
      await client.run(wall.remove)
    }
    expect(await doctor.about({ service: 'default/far', from })).toMatchObject({ finding: null, isOpen: false })
  })

  whereTranslated('policy routing that leads what a pod sends elsewhere', async () => {
    const client = pods.get('a1')!
    const from = (await client.run('ip -4 -o addr show dev eth0')).match(/inet ([\d.]+)/)![1]!
    await node.run('ip route add default via 172.30.0.1 table 88; ip rule add pref 50 from 10.244.1.0/24 lookup 88')
    try {
      await isFound(
        'service-silent',
        { service: 'default/far', from },
        /leave by eth0 by way of 172\.30\.0\.1, which packets of this node do not$/,
      )
    } finally {
      await node.run('ip rule del pref 50; ip route flush table 88')
    }
  })

  whereTranslated('one of two endpoints does not answer one client', async () => {
    // In words that the doctor cannot read.
    const wall = table('inet fw', 'forward priority 0', 'iifname "cni0" ip daddr 10.244.2.0/24 meta cpu != 4095 drop')
    const from = (await pods.get('a1')!.run('ip -4 -o addr show dev eth0')).match(/inet ([\d.]+)/)![1]!
    await node.run(wall.plant)
    try {
      const says =
        /^10\.96\.\S+ does not answer from 10\.244\.1\.\d+ in [1-7] of 8 attempts .*although its endpoints answer; and table inet fw/
      await isFound('service-silent', { service: 'default/web', from }, says)
    } finally {
      await node.run(wall.remove)
    }
  })

  test('the name server of the cluster is asked by DNS', async () => {
    const dns = { service: 'kube-system/kube-dns:53', seesPods: false }
    const { finding, answers } = await doctor.about(dns)
    expect({ finding, open: answers.filter(({ result }) => result !== 'yes') }).toEqual({ finding: null, open: [] })
    // In words that the doctor cannot read.
    const wall = table('inet wall', 'input priority 0', 'meta cpu != 4095 udp sport 53 drop')
    await node.run(wall.plant)
    try {
      await isFound('endpoint-silent', dns, /^2 of 2 endpoints do not answer: /)
    } finally {
      await node.run(wall.remove)
    }
  })

  test('an API server that is away', async () => {
    expect(sandbox.run('api-server', 'away').status).toBe(0)
    try {
      await eventually('the doctor says so', async () => {
        const { finding } = await doctor.about({ service: 'default/web', seesPods: false })
        return finding?.code === 'proxy-uninformed' ? undefined : (finding?.what ?? 'nothing')
      })
    } finally {
      expect(sandbox.run('api-server', 'back').status).toBe(0)
    }
    await isWell()
  })

  test('and in the end nothing is wrong, with or without an API server, for any client', async () => {
    for (const from of ['node', 'outside', '10.244.1.99', '10.244.2.99', '172.30.0.99']) {
      for (const service of ['default/web', 'default/front', 'default/far', 'default/pinned']) {
        const { finding, answers } = await doctor.about({ service, from, seesPods: from === 'node' })
        expect(finding).toBeNull()
        // Of clients that are elsewhere, no connection can be tried.
        const open = answers.filter(({ result }) => result !== 'yes').map(({ question }) => question)
        expect(open).toEqual(from === 'node' ? [] : ['does the Service answer the client'])
      }
    }
  })

  test('and there is nothing to do: what the proxy keeps for later is listed apart', async () => {
    // As many endpoints as no other service has.
    const path = '/api/v1/namespaces/default/pods'
    const more = ['c1', 'c2', 'c3'].map((name) => aPod(name, 'node-1', 'many'))
    for (const pod of more) await sandbox.api.create(path, pod)
    await sandbox.api.create(services, aService('many', { selector: { app: 'many' } }))
    const plan = () => sandbox.run('exec', 'node-1', '--', program, 'plan')
    await eventually(
      'the service is served',
      async () => (await doctor.about({ service: 'default/many' })).finding?.what,
    )
    await sandbox.api.delete(`${services}/many`)
    for (const name of ['c1', 'c2', 'c3']) await sandbox.api.delete(`${path}/${name}`)
    await eventually('there is nothing to do', () => (plan().status === 0 ? undefined : plan().stdout))
    if (mode === 'nftables')
      expect(plan().stdout).toMatch(/IPv4, leftovers: .*\n(.*\n)*  delete set ip kube-proxy served-ips-3$/m)
  })
})
