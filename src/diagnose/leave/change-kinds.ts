// Every difference between two modes that `kube-proxy check --from` knows. docs/reference/check.md is made of this table.

/** `loses`: what worked does not work any more. `differs`: it works, in another way. `gains`: better than before. `note`: good to know. */
export type Effect = 'loses' | 'differs' | 'gains' | 'note'

export interface ChangeKind {
  readonly effect: Effect
  /** For the documentation. */
  readonly when: string
}

function kinds<K extends string>(table: Record<K, ChangeKind>): Readonly<Record<K, ChangeKind>> {
  return table
}

export const changeKinds = kinds({
  'cannot-run': { effect: 'loses', when: 'This machine cannot run the new mode.' },
  connections: {
    effect: 'note',
    when: 'From ipvs: connections that IPVS carries end when its virtual servers go.',
  },
  scheduler: {
    effect: 'differs',
    when: 'From ipvs: Services with several endpoints, which the scheduler chose from.',
  },
  ping: { effect: 'loses', when: 'From ipvs, without `--answer-ping`: every address of a Service answers pings.' },
  'bound-program': {
    effect: 'loses',
    when: "From ipvs: a program of this node listens on a Service's address, which is on `kube-ipvs0` alone.",
  },
  'link-addresses': {
    effect: 'differs',
    when: 'From ipvs: external and load-balancer IPs are on `kube-ipvs0`. Routing daemons may announce them from there, and the node answers ARP for them unless ipvs.strictARP is on.',
  },
  'strict-arp': { effect: 'gains', when: 'From ipvs with ipvs.strictARP: it is not needed any more.' },
  'local-policy': {
    effect: 'differs',
    when: "From ipvs: Services with externalTrafficPolicy Local. kube-proxy's ipvs mode falls back to endpoints of other nodes.",
  },
  affinity: { effect: 'differs', when: 'From ipvs: Services with session affinity.' },
  'node-port-addresses': {
    effect: 'loses',
    when: 'Services with node ports, which the new mode opens on fewer addresses of this node.',
  },
  'localhost-node-ports': {
    effect: 'loses',
    when: 'From iptables: Services with node ports, which are not open on 127.0.0.1 any more.',
  },
  'other-ports': {
    effect: 'differs',
    when: 'From ipvs: Services with external or load-balancer IPs, whose other ports are not refused any more.',
  },
  'other-ports-refused': {
    effect: 'note',
    when: 'From iptables: other ports of cluster IPs are refused at once.',
  },
  unallocated: {
    effect: 'note',
    when: 'Addresses of the service ranges that no Service has are dropped, or are not any more.',
  },
  'source-ranges': {
    effect: 'differs',
    when: 'Services with loadBalancerSourceRanges: whether they hold while the Service has no endpoints. In no mode do they hold for node ports.',
  },
  timeouts: {
    effect: 'differs',
    when: 'From ipvs: ipvs.tcpTimeout, tcpFinTimeout or udpTimeout is set, and has no effect any more.',
  },
  'idle-connections': {
    effect: 'note',
    when: "From ipvs, without these: IPVS's own defaults end.",
  },
  'exclude-cidrs': {
    effect: 'differs',
    when: 'From ipvs: ipvs.excludeCIDRs has no effect any more.',
  },
  'sloppy-tcp': {
    effect: 'differs',
    when: 'From ipvs: net.ipv4.vs.sloppy_tcp is on.',
  },
  'host-firewall': {
    effect: 'note',
    when: 'To nftables: no rule accepts the traffic of Services ahead of a firewall of the host.',
  },
  'invalid-packets': {
    effect: 'differs',
    when: 'From iptables to nftables: packets that the connection tracker calls invalid are not dropped any more.',
  },
  settings: {
    effect: 'differs',
    when: 'A setting has a block for each mode in the configuration file, and the blocks differ.',
  },
  'rule-names': { effect: 'note', when: 'The kernel has other rules: what reads them has to be changed.' },
})

export type ChangeCode = keyof typeof changeKinds

/** One difference, and whom it concerns. */
export interface Change {
  readonly code: ChangeCode
  readonly effect: Effect
  readonly message: string
  /** The annotation, flag or field that brings back what was. Undefined: nothing has to be done, or can be. */
  readonly todo: string | undefined
  /** `namespace/name` of the Services that it concerns; empty: the node. */
  readonly services: readonly string[]
}
