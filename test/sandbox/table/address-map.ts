// The packet-flow table names the fixed addresses of test/support/addresses.ts; here is who has which of them in a sandbox.

import { parseIp, type Family } from '../../../src/lib/ip.ts'
import { planAddresses, planNode, type AddressPlan, type NodeAddresses } from '../../../src/sandbox/address-plan.ts'
import { external, node, peer, pods, ranges, type DualStack, type PodName } from '../../support/addresses.ts'

/** The addresses that the sandbox gave to the table's pods. */
export type PodAddresses = Readonly<Record<PodName, DualStack>>

/** Beyond the nodes of any sandbox. */
const secondHost = 120
const manyPodsNode = 200

/** What addresses of a kind begin with. */
interface Prefixes {
  readonly services: string
  readonly manyPods: string
  /** Of addresses outside the cluster: for load balancers and external IPs. */
  readonly outside: string
}

const tablePrefixes: Readonly<Record<Family, Prefixes>> = {
  4: { services: '10.2.', manyPods: '10.1.2.', outside: '10.4.' },
  6: { services: 'fd02::', manyPods: 'fd01:0:0:c::', outside: 'fd04::' },
}

const names: Readonly<Record<string, string>> = { [node.name]: 'node-1', [peer.name]: 'node-2' }

export class AddressMap {
  readonly plan: AddressPlan
  readonly nodes: readonly [NodeAddresses, NodeAddresses]
  readonly #index: number
  /** Ranges and addresses of the table to those of the sandbox. */
  readonly #exact: ReadonlyMap<string, string>

  /** Without pods for as long as there are none. */
  constructor(index: number, podAddresses?: PodAddresses) {
    this.#index = index
    this.plan = planAddresses(index, [4, 6])
    this.nodes = [planNode(this.plan, 1), planNode(this.plan, 2)]
    this.#exact = new Map(([4, 6] as const).flatMap((family) => this.#pairs(family, podAddresses)))
  }

  /** The address that node-1 has beside its own. */
  secondIp(family: Family): string {
    return family === 4 ? `172.30.${this.#index}.${secondHost}` : `fd00:30:${this.#index.toString(16)}::${secondHost}`
  }

  /** Addresses that localC answers for, so that a service can have many endpoints. */
  manyPods(family: Family): string {
    return `${this.#prefixes(family).manyPods}${family === 4 ? '0/24' : '/64'}`
  }

  outside(family: Family): string {
    return `${this.#prefixes(family).outside}${family === 4 ? '0.0/16' : '/64'}`
  }

  /** An address or a range of the table as it is in the sandbox; any other text as it is. */
  text(text: string): string {
    const exact = this.#exact.get(text)
    if (exact !== undefined) return exact
    const [address = '', length] = text.split('/')
    if (length !== undefined) return `${this.text(address)}/${length}`
    const bytes = parseIp(address)
    if (bytes === undefined) return text
    const family = bytes.length === 4 ? 4 : 6
    const own = this.#prefixes(family)
    for (const [kind, prefix] of Object.entries(tablePrefixes[family])) {
      if (address.startsWith(prefix)) return own[kind as keyof Prefixes] + address.slice(prefix.length)
    }
    return address
  }

  /** Any value of an API object. Space around addresses stays. */
  value(value: unknown): unknown {
    if (typeof value === 'string')
      return names[value] ?? value.replace(/^(\s*)([\da-f:./]+)(\s*)$/, (...parts) => this.#padded(parts))
    if (Array.isArray(value)) return value.map((one) => this.value(one))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.value(one)]))
  }

  #padded([, before, address, after]: readonly string[]): string {
    return `${before}${this.text(address ?? '')}${after}`
  }

  #prefixes(family: Family): Prefixes {
    const own = this.#index.toString(16)
    if (family === 6) {
      return {
        services: `fd00:96:${own}::`,
        manyPods: `fd00:244:${own}:${manyPodsNode}::`,
        outside: `fd04:${own}::`,
      }
    }
    return {
      services: `10.${96 + this.#index}.`,
      manyPods: `10.${244 - this.#index}.${manyPodsNode}.`,
      outside: `10.${64 + this.#index}.`,
    }
  }

  #pairs(family: Family, podAddresses: PodAddresses | undefined): [string, string][] {
    const i = family === 4 ? 0 : 1
    const { plan, nodes } = this
    const [first, second] = nodes
    return [
      [ranges.pods[family], plan.podRanges[i]!],
      [ranges.localPods[family], first.podRanges[i]!],
      [ranges.remotePods[family], second.podRanges[i]!],
      [ranges.services[family], plan.serviceRanges[i]!],
      [ranges.lan[family], plan.fabricRanges[i]!],
      [node.ip[family], first.addresses[i]!],
      [node.secondIp[family], this.secondIp(family)],
      [node.bridgeIp[family], first.gateways[i]!],
      [peer.ip[family], second.addresses[i]!],
      [external.ip[family], plan.machine[i]!],
      ...(Object.keys(pods) as PodName[]).map((name): [string, string] => [
        pods[name].ip[family],
        (podAddresses?.[name] ?? pods[name].ip)[family],
      ]),
    ]
  }
}
