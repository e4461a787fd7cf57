// The fate of one connection: its frontend, the kind of its client, and the route that follows.

import { cidrContains, formatCidr, isLoopback, ipBytes } from '../lib/ip.ts'
import type { Protocol } from '../kube/types.ts'
import { describeLocalDetector } from './local-detector.ts'
import { openNodePortAddresses } from './node-port-addresses.ts'
import type { Backend, Frontend, NodeView, Route, ServicePortView } from './types.ts'

/** The first packet of a connection, as this node sees it. Addresses are canonical texts. */
export interface Connection {
  readonly source: string
  /** The interface that it arrives on; undefined: this node sends it. */
  readonly inputInterface: string | undefined
  readonly destination: string
  /** ICMP: a ping, with 0 for its port. */
  readonly protocol: Protocol | 'ICMP'
  readonly port: number
}

/** The three kinds of sources that frontends have routes for. */
export interface Client {
  readonly kind: 'pod' | 'node' | 'other'
  readonly because: string
}

export interface Dialled {
  readonly view: ServicePortView
  readonly frontend: Frontend
}

/** The loopback addresses on which node ports are open. */
export type OpenLoopback = 'none' | 'all' | ReadonlySet<string>

/** Every frontend of a family by what a client dials. */
export class FrontendIndex {
  readonly #byAddress = new Map<string, Dialled>()
  readonly #byNodePort = new Map<string, Dialled>()
  readonly #nodePortAddresses: ReadonlySet<string>
  readonly #loopback: OpenLoopback

  constructor(
    views: Iterable<ServicePortView>,
    node: NodeView,
    machineAddresses: readonly string[],
    loopback: OpenLoopback = 'none',
  ) {
    this.#loopback = loopback
    this.#nodePortAddresses = openNodePortAddresses(node.nodePortAddresses, machineAddresses)
    for (const view of views) {
      for (const frontend of view.frontends) {
        const { address, protocol, port } = frontend
        if (address === undefined) this.#byNodePort.set(`${protocol} ${port}`, { view, frontend })
        else this.#byAddress.set(`${address} ${protocol} ${port}`, { view, frontend })
      }
    }
  }

  /** The frontend that the connection dials: an address goes before a node port. */
  find({ destination, protocol, port }: Omit<Connection, 'source' | 'inputInterface'>): Dialled | undefined {
    const byAddress = this.#byAddress.get(`${destination} ${protocol} ${port}`)
    if (byAddress !== undefined) return byAddress
    return this.isNodePortAddress(destination) ? this.#byNodePort.get(`${protocol} ${port}`) : undefined
  }

  /** The node port, even if it is not open on the address. */
  nodePort(protocol: Connection['protocol'], port: number): Dialled | undefined {
    return this.#byNodePort.get(`${protocol} ${port}`)
  }

  isNodePortAddress(address: string): boolean {
    if (this.#nodePortAddresses.has(address)) return true
    if (this.#loopback === 'none' || !isLoopback(ipBytes(address))) return false
    return this.#loopback === 'all' || this.#loopback.has(address)
  }

  get openAddresses(): readonly string[] {
    return [...this.#nodePortAddresses]
  }

  *all(): Generator<Dialled> {
    yield* this.#byAddress.values()
    yield* this.#byNodePort.values()
  }
}

/** The local detector goes first: a source that it takes for a pod is one, even with an address of this node. */
export function classifyClient(
  { localDetector }: NodeView,
  { source, inputInterface }: Pick<Connection, 'source' | 'inputInterface'>,
  isOwnAddress: (address: string) => boolean,
): Client {
  if (isDetected(localDetector, source, inputInterface)) {
    return { kind: 'pod', because: `detectLocalMode: ${describeLocalDetector(localDetector)}` }
  }
  if (isOwnAddress(source)) return { kind: 'node', because: `${source} is an address of this node` }
  const detector =
    localDetector.kind === 'none' ? 'no detectLocalMode finds pods' : `not ${describeLocalDetector(localDetector)}`
  return { kind: 'other', because: `${detector}, and ${source} is not an address of this node` }
}

function isDetected(detector: NodeView['localDetector'], source: string, inputInterface: string | undefined): boolean {
  switch (detector.kind) {
    case 'none':
      return false
    case 'cidr':
      return detector.cidrs.some((cidr) => cidrContains(cidr, ipBytes(source)))
    case 'interface':
      return inputInterface === detector.name
    case 'interfacePrefix':
      return inputInterface?.startsWith(detector.prefix) === true
  }
}

export function routeOf(frontend: Frontend, { kind }: Client): Route {
  return kind === 'pod' ? frontend.fromPods : kind === 'node' ? frontend.fromNode : frontend.fromOthers
}

/** Why the source may not connect; undefined: it may. */
export function whyNotAllowed({ allowedSources }: Frontend, source: string): string | undefined {
  const bytes = ipBytes(source)
  if (allowedSources === undefined || allowedSources.some((cidr) => cidrContains(cidr, bytes))) return undefined
  return `loadBalancerSourceRanges has ${allowedSources.map(formatCidr).join(', ')}, and ${source} is in none of them`
}

/** Whether the backend sees an address of this node in place of the client's, and why. */
export interface Masquerade {
  readonly masquerade: boolean
  readonly why: string
}

/** Connections of endpoints to themselves are masqueraded. One that ends on this node itself passes no hook that could do it. */
export function masqueradeTo(
  { masquerade, why = '' }: Route,
  { ip, isLocal, mayBeLocal }: Backend,
  { source, inputInterface }: Pick<Connection, 'source' | 'inputInterface'>,
  { isOwnAddress, hairpin }: { isOwnAddress: (address: string) => boolean; hairpin: 'of this node' | 'all' },
): Masquerade {
  if (inputInterface !== undefined && isOwnAddress(ip)) {
    return { masquerade: false, why: 'the endpoint is this node itself, so the connection does not leave it' }
  }
  if (ip === source && (hairpin === 'all' || isLocal || mayBeLocal === true)) {
    return { masquerade: true, why: 'the client is the endpoint itself, which would answer around the translation' }
  }
  return { masquerade, why }
}
