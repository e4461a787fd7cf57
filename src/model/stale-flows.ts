// UDP flows that the connection tracker still sends to endpoints that the service no longer uses.
//
// A UDP flow has no end: while packets come, its entry and its translation live, even when the endpoint has gone, the service
// only now has endpoints, or the client is no longer allowed. Once the entry is removed, the next packet meets the rules.

import { type Cidr, joinHostPort, mergeCidrs, mergedContain, ipBytes } from '../lib/ip.ts'
import { sameSources } from './frontends.ts'
import type { Frontend, FrontendAddress, ServicePortChange, ServicePortView } from './types.ts'

/**
 * A UDP entry of the connection tracker. The client talks to `original.dst`; the answer comes from `reply.src`. Addresses are
 * canonical texts.
 */
export interface UdpFlow {
  readonly original: { readonly src: string; readonly dst: string; readonly dport: number }
  readonly reply: { readonly src: string; readonly sport: number }
  /** Whether there was a packet in both directions. */
  readonly isAnswered: boolean
}

/** What decides about the flows to a frontend. */
interface Served {
  /** `ip:port` of the endpoints. */
  readonly serving: ReadonlySet<string>
  readonly sources: Sources | undefined
}

/**
 * Decides which flows are stale. A flow to a frontend stays while a serving endpoint of the service port answers it: policies
 * and source ranges concern new connections only. A flow without an answer is new with each packet, as in kube-proxy. Flows to
 * unknown frontends are never stale.
 */
export class StaleFlowIndex {
  readonly #frontends: DestinationIndex<Served | 'gone'>

  /** The addresses of this machine on which node ports are open: flows to node ports of other machines are left alone. */
  constructor(nodePortAddresses: ReadonlySet<string>) {
    this.#frontends = new DestinationIndex(nodePortAddresses)
  }

  /** UDP frontends that went away: see {@link goneUdpFrontends}. */
  addGone(frontends: readonly FrontendAddress[]): void {
    for (const frontend of frontends) this.#frontends.set(frontend, 'gone')
  }

  /** A service port as it is now; ignored unless UDP. */
  add(view: ServicePortView): void {
    if (view.protocol !== 'UDP') return
    const serving = new Set(view.serving)
    for (const frontend of view.frontends) {
      const sources = frontend.allowedSources && new Sources(frontend.allowedSources)
      this.#frontends.set(frontend, { serving, sources })
    }
  }

  /** Flows of this service port are no longer stale. */
  forget(view: ServicePortView): void {
    if (view.protocol === 'UDP') for (const frontend of view.frontends) this.#frontends.delete(frontend)
  }

  isStale(flow: UdpFlow): boolean {
    const served = this.#frontends.get(flow.original.dst, flow.original.dport)
    return served !== undefined && isStale(flow, served)
  }
}

/** The UDP frontends that the changes took away. */
export function goneUdpFrontends(changes: readonly ServicePortChange[]): Frontend[] {
  const isUdp = ({ protocol }: Frontend) => protocol === 'UDP'
  const idOf = ({ address, port }: Frontend) => `${address} ${port}`
  const now = new Set(changes.flatMap(({ after }) => after?.frontends.filter(isUdp).map(idOf) ?? []))
  const before = changes.flatMap(({ before }) => before?.frontends.filter(isUdp) ?? [])
  return before.filter((frontend) => !now.has(idOf(frontend)))
}

/**
 * The endpoints whose flows the changes can have made stale, as `ip:port`. 'any': more than endpoints changed, so any flow may
 * be stale. Where DNS is busy the tracker has very many entries, and few of them are worth reading.
 */
export function staleAnswerers(changes: readonly ServicePortChange[]): ReadonlySet<string> | 'any' {
  const gone = new Set<string>()
  for (const { before, after } of changes) {
    if (before?.protocol !== 'UDP' && after?.protocol !== 'UDP') continue
    if (before === undefined || after === undefined || !sameFrontends(before, after)) return 'any'
    if (servesMore(before, after)) return 'any'
    if (before.serving === after.serving) continue
    const serving = new Set(after.serving)
    for (const endpoint of before.serving) if (!serving.has(endpoint)) gone.add(endpoint)
  }
  return gone
}

/**
 * Whether some clients are served that were not, perhaps for a policy alone. Their flows may have no translation: what came while
 * rules were written could pass, and so could what another program's rules let through.
 */
function servesMore(before: ServicePortView, after: ServicePortView): boolean {
  if (before.serving.length === 0 && after.serving.length > 0) return true
  return before.frontends.some((frontend, i) =>
    ROUTES.some((from) => frontend[from].verdict.kind !== 'to' && after.frontends[i]![from].verdict.kind === 'to'),
  )
}

const ROUTES = ['fromPods', 'fromNode', 'fromOthers'] as const

/** Also in the clients that they accept. */
function sameFrontends(before: ServicePortView, after: ServicePortView): boolean {
  return (
    before.protocol === after.protocol &&
    before.frontends.length === after.frontends.length &&
    before.frontends.every(({ address, port, allowedSources }, i) => {
      const now = after.frontends[i]!
      return address === now.address && port === now.port && sameSources(allowedSources, now.allowedSources)
    })
  )
}

function isStale({ original, reply, isAnswered }: UdpFlow, served: Served | 'gone'): boolean {
  const isTranslated = reply.src !== original.dst || reply.sport !== original.dport
  if (served === 'gone') return isTranslated
  const { serving, sources } = served
  if (!isAnswered && sources?.has(original.src) === false) return true
  if (serving.has(joinHostPort(reply.src, reply.sport))) return false
  // Without a translation: the flow began while the frontend had no endpoints.
  return isTranslated || serving.size > 0
}

/** Source ranges, for fast lookups: there may be tens of thousands, and as many flows. */
class Sources {
  readonly #ranges: readonly Cidr[]
  #merged: readonly Cidr[] | undefined

  constructor(ranges: readonly Cidr[]) {
    this.#ranges = ranges
  }

  has(address: string): boolean {
    this.#merged ??= mergeCidrs(this.#ranges)
    return mergedContain(this.#merged, ipBytes(address))
  }
}

/** Frontends by the destination of packets. An address goes before a node port, as in the rules. */
class DestinationIndex<T> {
  readonly #byAddress = new Map<string, T>()
  readonly #byNodePort = new Map<number, T>()
  readonly #nodePortAddresses: ReadonlySet<string>

  constructor(nodePortAddresses: ReadonlySet<string>) {
    this.#nodePortAddresses = nodePortAddresses
  }

  set({ address, port }: Pick<Frontend, 'address' | 'port'>, value: T): void {
    if (address === undefined) this.#byNodePort.set(port, value)
    else this.#byAddress.set(joinHostPort(address, port), value)
  }

  delete({ address, port }: Pick<Frontend, 'address' | 'port'>): void {
    if (address === undefined) this.#byNodePort.delete(port)
    else this.#byAddress.delete(joinHostPort(address, port))
  }

  get(address: string, port: number): T | undefined {
    const value = this.#byAddress.get(joinHostPort(address, port))
    if (value !== undefined || !this.#nodePortAddresses.has(address)) return value
    return this.#byNodePort.get(port)
  }
}
