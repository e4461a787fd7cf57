// UDP flows that the connection tracker still sends where the service no longer does.
//
// A UDP flow has no end: as long as packets come, its entry lives and its translation with it, even when the endpoint has
// gone, the service only now has endpoints, or the client is no longer allowed. Removing the entry makes the next packet ask the
// rules again.

import { type Cidr, joinHostPort, mergeCidrs, mergedContain, ipBytes } from '../lib/ip.ts'
import { sameSources } from './frontends.ts'
import type { Frontend, FrontendAddress, ServicePortChange, ServicePortView } from './types.ts'

/**
 * As much of a UDP entry of the connection tracker as decides. The client talks to `original.dst`; the answer comes from
 * `reply.src`. Addresses are canonical texts.
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
 * Says of flows whether they are stale. A flow to a frontend stays when one of the service port's serving endpoints answers
 * it: policies choose for new connections and do not disturb old ones. Nor do source ranges, but a flow that was never answered
 * is a new one with each packet, to kube-proxy too. Flows that go to no known frontend are never stale.
 */
export class StaleFlowIndex {
  readonly #frontends: DestinationIndex<Served | 'gone'>

  /** The addresses of this machine on which node ports are open: other machines' ports are not our business. */
  constructor(nodePortAddresses: ReadonlySet<string>) {
    this.#frontends = new DestinationIndex(nodePortAddresses)
  }

  /** UDP frontends that went away: see {@link goneUdpFrontends}. */
  addGone(frontends: readonly FrontendAddress[]): void {
    for (const frontend of frontends) this.#frontends.set(frontend, 'gone')
  }

  /** A service port as it is now. Others than UDP are passed over. */
  add(view: ServicePortView): void {
    if (view.protocol !== 'UDP') return
    const serving = new Set(view.serving)
    for (const frontend of view.frontends) {
      const sources = frontend.allowedSources && new Sources(frontend.allowedSources)
      this.#frontends.set(frontend, { serving, sources })
    }
  }

  /** Says nothing about the flows of a service port any more. */
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
 * Whose flows the changes can have made stale: the endpoints that went, each as `ip:port`. 'any': more than endpoints
 * changed, so any flow may be. Where DNS is busy the tracker has very many entries, and few of them are worth reading.
 */
export function staleAnswerers(changes: readonly ServicePortChange[]): ReadonlySet<string> | 'any' {
  const gone = new Set<string>()
  for (const { before, after } of changes) {
    if (before?.protocol !== 'UDP' && after?.protocol !== 'UDP') continue
    if (before === undefined || after === undefined || !sameFrontends(before, after)) return 'any'
    // A client that was not served has a flow that no rule translated.
    if (before.serving.length === 0 && after.serving.length > 0) return 'any'
    if (before.serving === after.serving) continue
    const serving = new Set(after.serving)
    for (const endpoint of before.serving) if (!serving.has(endpoint)) gone.add(endpoint)
  }
  return gone
}

/** Also in whom they let in. */
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
  // No rule translated it, so it began while there was nothing to translate to. There is something now, or it may stay.
  return isTranslated || serving.size > 0
}

/** Source ranges, of which there may be tens of thousands, as there may be flows. */
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

/** Frontends by where packets are sent to. An address goes before a node port, as in the rules. */
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
