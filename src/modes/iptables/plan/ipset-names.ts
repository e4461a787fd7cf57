// The sets that kube-proxy's ipvs mode makes. We have none: they are of a node that ran it before.

/** What a name of a set may have. */
const LONGEST = 31

const NAMES = [
  'LOOP-BACK',
  'CLUSTER-IP',
  'EXTERNAL-IP',
  'EXTERNAL-IP-LOCAL',
  'LOAD-BALANCER',
  'LOAD-BALANCER-LOCAL',
  'LOAD-BALANCER-FW',
  'LOAD-BALANCER-SOURCE-IP',
  'LOAD-BALANCER-SOURCE-CIDR',
  'NODE-PORT-TCP',
  'NODE-PORT-LOCAL-TCP',
  'NODE-PORT-UDP',
  'NODE-PORT-LOCAL-UDP',
  'NODE-PORT-SCTP-HASH',
  'NODE-PORT-LOCAL-SCTP-HASH',
  'HEALTH-CHECK-NODE-PORT',
  'IPVS-IPS',
]

export const KUBE_PROXY_IPSETS: readonly string[] = ['KUBE-', 'KUBE-6-'].flatMap((prefix) =>
  NAMES.map((name) => `${prefix}${name}`.slice(0, LONGEST)),
)
