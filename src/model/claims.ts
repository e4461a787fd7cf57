// Which service port owns a frontend that several ask for.
//
// The API lets two services name the same external IP and port, and a node port may be given to a new service before this
// proxy sees the old one go. The kernel's maps have one value per key, so one service port owns the frontend: the same one,
// whatever the order of the events. When it goes, the next one gets the frontend.

import { joinHostPort, ipBytes, asBytes } from '../lib/ip.ts'
import type { Bytes } from '../lib/ip.ts'
import { withElement, withoutElement } from '../lib/sorted-list.ts'
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
  readonly #claimants = new Map<Bytes, ServicePortInfo | readonly ServicePortInfo[]>()
  /** How many frontends have several claimants. Mostly none has. */
  #contested = 0

  /**
   * Replaces what a service claims. Returns the other services whose views or problems may have changed: those that get
   * or lose a frontend, and those whose problem names the owner.
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

  /** What the service port owns of what it claims. */
  ownedBy(port: ServicePortInfo, claimed: readonly ClaimedFrontend[]): readonly ClaimedFrontend[] {
    return this.#contested === 0 ? claimed : claimed.filter((frontend) => this.owner(frontend) === port)
  }

  /** The service port that owns the frontend; undefined when no service claims it. */
  owner(frontend: ClaimedFrontend): ServicePortInfo | undefined {
    const claimants = this.#claimants.get(claimKey(frontend))
    return isList(claimants) ? claimants[0] : claimants
  }

  /** The owner, for the problems of the others. Among many no owner is named: each change would be a new problem for all. */
  describeOwner(frontend: ClaimedFrontend): string {
    const claimants = this.#claimants.get(claimKey(frontend))
    const owner = isList(claimants) ? claimants[0] : claimants
    return isList(claimants) && claimants.length > MOST_NAMED
      ? 'one of the many others that claim it'
      : `${owner?.name}`
  }

  #claim(port: ServicePortInfo, frontend: ClaimedFrontend, rivals: Set<ServiceInfo>): void {
    const key = claimKey(frontend)
    const known = this.#claimants.get(key)
    if (known === undefined) {
      this.#claimants.set(key, port)
      return
    }
    const before = isList(known) ? known : [known]
    const [owner] = before
    const claimants = withElement(before, port, orderOf(frontend))
    noteRivals(rivals, { claimants, changes: claimants[0] === owner ? [] : [owner] })
    this.#claimants.set(key, claimants)
    if (!isList(known)) this.#contested++
  }

  #release(port: ServicePortInfo, frontend: ClaimedFrontend, rivals: Set<ServiceInfo>): void {
    const key = claimKey(frontend)
    const known = this.#claimants.get(key)
    if (!isList(known)) {
      if (known === port) this.#claimants.delete(key)
      return
    }
    const [owner] = known
    const others = withoutElement(known, port, orderOf(frontend))
    noteRivals(rivals, { claimants: others, changes: owner === port ? [others[0]] : [] })
    const [only] = others
    if (only !== undefined && others.length === 1) {
      this.#claimants.set(key, only)
      this.#contested--
    } else this.#claimants.set(key, others)
  }
}

/** With more claimants than this, their problems do not name the owner. */
const MOST_NAMED = 16

/** `changes`: the claimants that got or lost the frontend. Among few, the problem of every claimant names the new owner. */
function noteRivals(
  rivals: Set<ServiceInfo>,
  { claimants, changes }: { claimants: readonly ServicePortInfo[]; changes: readonly (ServicePortInfo | undefined)[] },
): void {
  // At the limit, the problems of all change: they begin or cease to name the owner.
  const namesOtherOwner = claimants.length === MOST_NAMED || claimants.length === MOST_NAMED + 1
  const few = changes.length > 0 && claimants.length <= MOST_NAMED
  for (const port of namesOtherOwner || few ? claimants : changes) if (port !== undefined) rivals.add(port.service)
}

function isList(
  claimants: ServicePortInfo | readonly ServicePortInfo[] | undefined,
): claimants is readonly ServicePortInfo[] {
  return Array.isArray(claimants)
}

/** The frontends that a service port asks for, without duplicates. */
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
 * A cluster IP comes first: the API server allocated it, and a user who writes externalIPs must not take its traffic. Then
 * load-balancer IPs, which controllers write, for the same reason. Then the older service, then the name. (kube-proxy has no order.)
 */
function orderOf({ address }: ClaimedFrontend): (a: ServicePortInfo, b: ServicePortInfo) => number {
  return (a, b) => {
    const byRole = roleOf(a.service, address) - roleOf(b.service, address)
    if (byRole !== 0) return byRole
    if (a.service.createdMs !== b.service.createdMs) return a.service.createdMs - b.service.createdMs
    return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
  }
}

function roleOf({ clusterIP, loadBalancerIPs }: ServiceInfo, address: string | undefined): number {
  if (address === undefined || address === clusterIP) return 0
  return hasElement(loadBalancerIPs, address) ? 1 : 2
}

/** One set per long list: a search through the list for each of its addresses would take quadratic time. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>()
const FEW = 8

function hasElement(list: readonly string[], element: string): boolean {
  if (list.length <= FEW) return list.includes(element)
  let set = sets.get(list)
  if (set === undefined) sets.set(list, (set = new Set(list)))
  return set.has(element)
}

const PROTOCOL_CHARACTER = { TCP: '\x06', UDP: '\x11', SCTP: '\x84' } as const satisfies Record<Protocol, string>

/** Bytes rather than text: seven of them for IPv4, and there is one per frontend of the cluster. */
function claimKey({ address, protocol, port }: ClaimedFrontend): Bytes {
  const bytes = address === undefined ? '' : ipBytes(address)
  return asBytes(bytes + PROTOCOL_CHARACTER[protocol] + String.fromCharCode(port >> 8, port & 0xff))
}

/** `10.0.0.1:80/TCP`, `node port 30080/TCP`. */
export function describeFrontend({ address, protocol, port }: ClaimedFrontend): string {
  return address === undefined ? `node port ${port}/${protocol}` : `${joinHostPort(address, port)}/${protocol}`
}
