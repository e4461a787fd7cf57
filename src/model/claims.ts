// Which service port owns a frontend that several ask for.
//
// Nothing in the API keeps two services from naming the same external IP and port, and a node port may be handed on
// before the former owner is seen to go. The kernel's maps have one value per key, so one service port owns it, always
// the same one whatever order the objects came in, and hears of it when the other goes.

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
   * Replaces what a service claims. Returns the other services whose views and problems may have changed: those that get
   * or lose a frontend, and those that have to tell of another owner.
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

  /** The owner, in words for the others. A crowd is not told: each change of owner would be news for all of it. */
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

/** Up to so many claimants are told which service port owns the frontend, and hear of each change. */
const MOST_NAMED = 16

/** `changes`: the claimants that got or lost the frontend. Among few, every claimant has to tell of the new owner. */
function noteRivals(
  rivals: Set<ServiceInfo>,
  { claimants, changes }: { claimants: readonly ServicePortInfo[]; changes: readonly (ServicePortInfo | undefined)[] },
): void {
  // At the limit, what is told about the owner changes for all, whichever it is.
  const namesOtherOwner = claimants.length === MOST_NAMED || claimants.length === MOST_NAMED + 1
  const few = changes.length > 0 && claimants.length <= MOST_NAMED
  for (const port of namesOtherOwner || few ? claimants : changes) if (port !== undefined) rivals.add(port.service)
}

function isList(
  claimants: ServicePortInfo | readonly ServicePortInfo[] | undefined,
): claimants is readonly ServicePortInfo[] {
  return Array.isArray(claimants)
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
 * A cluster IP goes before everything else: it was allocated by the API server, and a user who may write externalIPs must
 * not take another service's traffic with it. Nor that of a load balancer, which is in the status, where controllers write. Then
 * the older service, then the name. (kube-proxy has no order: one of them gets it, by chance.)
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

/** Long lists are searched for each of their addresses. */
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

/** In words: `10.0.0.1:80/TCP`, `node port 30080/TCP`. */
export function describeFrontend({ address, protocol, port }: ClaimedFrontend): string {
  return address === undefined ? `node port ${port}/${protocol}` : `${joinHostPort(address, port)}/${protocol}`
}
