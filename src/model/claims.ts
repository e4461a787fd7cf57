// Who owns a frontend that several service ports ask for.
//
// Nothing in the API keeps two services from naming the same external IP and port, and a node port may be handed on
// before the former owner is seen to go. The kernel's maps have one value per key, so one service port owns it, always
// the same one whatever order the objects came in, and hears of it when the other goes.

import { joinHostPort, parseIp } from '../lib/ip.ts'
import type { Bytes } from '../lib/ip.ts'
import type { Protocol } from '../kube/types.ts'
import type { ServiceInfo, ServicePortInfo } from './service-ports.ts'

/** A claimed frontend: an address (none for a node port), a protocol and a port. */
export interface ClaimedFrontend {
  readonly address: string | undefined
  readonly protocol: Protocol
  readonly port: number
}

export class Claims {
  /** The only claimant or, where there are several, all of them, the owner first. */
  readonly #claimants = new Map<Bytes, ServicePortInfo | ServicePortInfo[]>()

  /**
   * Replaces what a service claims. Returns the other services that claim a frontend whose owner changed, for a while at
   * least: their views and problems may have changed.
   */
  replace(before: ServiceInfo | undefined, after: ServiceInfo | undefined): ReadonlySet<ServiceInfo> {
    const rivals = new Set<ServiceInfo>()
    for (const port of before?.ports ?? []) {
      for (const frontend of claimedFrontends(port)) this.#release(port, frontend, rivals)
    }
    for (const port of after?.ports ?? []) {
      for (const frontend of claimedFrontends(port)) this.#claim(port, frontend, rivals)
    }
    if (before !== undefined) rivals.delete(before)
    if (after !== undefined) rivals.delete(after)
    return rivals
  }

  /** The service port that owns the frontend; undefined when nobody claims it. */
  owner(frontend: ClaimedFrontend): ServicePortInfo | undefined {
    const claimants = this.#claimants.get(claimKey(frontend))
    return Array.isArray(claimants) ? claimants[0] : claimants
  }

  #claim(port: ServicePortInfo, frontend: ClaimedFrontend, rivals: Set<ServiceInfo>): void {
    const key = claimKey(frontend)
    const known = this.#claimants.get(key)
    if (known === undefined) {
      this.#claimants.set(key, port)
      return
    }
    const claimants = Array.isArray(known) ? known : [known]
    const place = claimants.findIndex((other) => goesBefore(port, other, frontend))
    if (place === 0) for (const { service } of claimants) rivals.add(service)
    claimants.splice(place < 0 ? claimants.length : place, 0, port)
    this.#claimants.set(key, claimants)
  }

  #release(port: ServicePortInfo, frontend: ClaimedFrontend, rivals: Set<ServiceInfo>): void {
    const key = claimKey(frontend)
    const known = this.#claimants.get(key)
    if (!Array.isArray(known)) {
      if (known === port) this.#claimants.delete(key)
      return
    }
    const others = known.filter((claimant) => claimant !== port)
    if (known[0] === port) for (const { service } of others) rivals.add(service)
    const [only] = others
    if (only !== undefined && others.length === 1) this.#claimants.set(key, only)
    else this.#claimants.set(key, others)
  }
}

/** Everything that a service port asks for, each once. An address that it has in several roles counts in the first. */
export function claimedFrontends({ service, protocol, port, nodePort }: ServicePortInfo): ClaimedFrontend[] {
  const claimed: ClaimedFrontend[] = [{ address: service.clusterIP, protocol, port }]
  if (service.loadBalancerIPs.length + service.externalIPs.length > 0) {
    const addresses = new Set([...service.loadBalancerIPs, ...service.externalIPs])
    addresses.delete(service.clusterIP)
    for (const address of addresses) claimed.push({ address, protocol, port })
  }
  if (nodePort !== 0) claimed.push({ address: undefined, protocol, port: nodePort })
  return claimed
}

/**
 * A cluster IP goes before everything else: it was allocated by the API server, and whoever may write externalIPs must
 * not take another service's traffic with it. Then the older service, then the name.
 */
function goesBefore(a: ServicePortInfo, b: ServicePortInfo, { address }: ClaimedFrontend): boolean {
  const aIsClusterIp = a.service.clusterIP === address
  const bIsClusterIp = b.service.clusterIP === address
  if (aIsClusterIp !== bIsClusterIp) return aIsClusterIp
  if (a.service.createdMs !== b.service.createdMs) return a.service.createdMs < b.service.createdMs
  return a.name < b.name
}

const PROTOCOL_CHARACTER = { TCP: '\x06', UDP: '\x11', SCTP: '\x84' } as const satisfies Record<Protocol, Bytes>

/** Bytes rather than text: seven of them for IPv4, and there is one per frontend of the cluster. */
function claimKey({ address, protocol, port }: ClaimedFrontend): Bytes {
  const bytes = address === undefined ? '' : (parseIp(address) ?? '')
  return bytes + PROTOCOL_CHARACTER[protocol] + String.fromCharCode(port >> 8, port & 0xff)
}

/** In words: `10.0.0.1:80/TCP`, `node port 30080/TCP`. */
export function describeFrontend({ address, protocol, port }: ClaimedFrontend): string {
  return address === undefined ? `node port ${port}/${protocol}` : `${joinHostPort(address, port)}/${protocol}`
}
