// The names of our chains and what we say in comments: kube-proxy's, to the letter. Operators search for them.

import { base32Sha256 } from '../../../lib/hash.ts'
import type { ServicePortView } from '../../../model/types.ts'

export const CHAINS = {
  /** nat: by destination. filter: cluster IPs that lead nowhere. */
  services: 'KUBE-SERVICES',
  /** filter: external addresses and node ports that lead nowhere. */
  externalServices: 'KUBE-EXTERNAL-SERVICES',
  /** nat: by node port. filter: health checks. */
  nodePorts: 'KUBE-NODEPORTS',
  /** nat: pings of service IPs; there with `--answer-ping`. */
  ping: 'KUBE-PING',
  postrouting: 'KUBE-POSTROUTING',
  markMasquerade: 'KUBE-MARK-MASQ',
  forward: 'KUBE-FORWARD',
  /** filter: what a firewall chain of a service did not let through. */
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  /** Empty; when it is gone, another program flushed the table. */
  canary: 'KUBE-PROXY-CANARY',
  /** Of kubelet, where there is one; we put the same rule into it. */
  kubeletFirewall: 'KUBE-FIREWALL',
  /** Of kubelet: empty, and there as long as kubelet is. */
  kubeletCanary: 'KUBE-KUBELET-CANARY',
  /** filter, empty: route_localnet was off before we turned it on. */
  localnetNote: 'KUBE-PROXY-LOCALNET',
} as const

const PREFIXES = {
  cluster: 'KUBE-SVC-',
  local: 'KUBE-SVL-',
  external: 'KUBE-EXT-',
  firewall: 'KUBE-FW-',
  endpoint: 'KUBE-SEP-',
} as const

/** Of kube-proxy before 1.24. */
const OLD_PREFIXES: readonly string[] = ['KUBE-XLB-']

const ALL_PREFIXES: readonly string[] = [...Object.values(PREFIXES), ...OLD_PREFIXES]

/** Whether a chain of the nat table belongs to one service port. */
export function isServiceChain(name: string): boolean {
  return name.startsWith('KUBE-') && ALL_PREFIXES.some((prefix) => name.startsWith(prefix))
}

/** The names of what a service port has. */
export class ServiceNames {
  /** `namespace/name:port` */
  readonly label: string
  readonly cluster: string
  readonly local: string
  readonly external: string
  readonly firewall: string
  /** What leaves those over a limit untranslated. Of a kind that kube-proxy, too, takes away when it does not know it. */
  readonly limits: string
  readonly #seed: string

  constructor(port: ServicePortView) {
    this.label = port.name
    this.#seed = port.name + port.protocol.toLowerCase()
    const hash = base32Sha256(this.#seed, HASH_LENGTH)
    this.cluster = PREFIXES.cluster + hash
    this.local = PREFIXES.local + hash
    this.external = PREFIXES.external + hash
    this.firewall = PREFIXES.firewall + hash
    this.limits = PREFIXES.firewall + base32Sha256(`${this.#seed} limits`, HASH_LENGTH)
  }

  /** `hostPort`: `ip:port` or `[ip]:port`. */
  endpoint(hostPort: string): string {
    return PREFIXES.endpoint + base32Sha256(this.#seed + hostPort, HASH_LENGTH)
  }
}

/** The name of a list of hashlimit, which keeps its numbers for as long as it has it. */
export function limitListName(port: ServicePortView, perSecond: number, of: 'all' | 'client'): string {
  return base32Sha256(`${port.name} ${port.protocol} ${of} ${perSecond}`, 15)
}

/** Chain names have at most 28 characters. */
const HASH_LENGTH = 16

/** Objects of nfacct that count packets, and the metrics are made of. */
export const COUNTERS = {
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  localhostNodePorts: 'localhost_nps_accepted_pkts',
} as const

export type CounterName = (typeof COUNTERS)[keyof typeof COUNTERS]
