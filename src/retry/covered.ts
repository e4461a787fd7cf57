// Which frontends connect retry covers, and which backends can become suspects.

import { type Bytes, asBytes } from '../lib/ip.ts'
import { isLoopback, parseIp } from '../lib/ip.ts'
import type { Backend, NodeView, ServicePortName, ServicePortView } from '../model/types.ts'
import { addressField, portField } from '../nftables/fields.ts'

/** With fewer backends, there is no other one to try. */
const FEWEST_BACKENDS = 2

/** The addresses on which node ports are open: those of the node view, or all of this machine. */
export function planNodePortAddresses(
  { nodePortAddresses, family }: NodeView,
  machineAddresses: readonly string[],
): readonly string[] {
  if (nodePortAddresses.kind === 'only') return [...nodePortAddresses.addresses, ...(nodePortAddresses.loopback ?? [])]
  return machineAddresses.filter((address) => {
    const bytes = parseIp(address)
    return bytes !== undefined && bytes.length === (family === 4 ? 4 : 16) && !isLoopback(bytes)
  })
}

/** Elements of the set of frontends, `address . port`; none where connect retry does not apply. */
export function planCoveredFrontends(view: ServicePortView, nodePortAddresses: readonly string[]): Bytes[] {
  if (!isWatched(view)) return []
  const lists = Object.values(view.lists)
  if (lists.length === 0 || lists.some((list) => list.length < FEWEST_BACKENDS)) return []
  return view.frontends.flatMap(({ address, port }) =>
    (address === undefined ? nodePortAddresses : [address]).map((each) =>
      asBytes(addressField(each) + portField(port)),
    ),
  )
}

/** The backends whose failures count, including ejected ones. */
export function planWatchedBackends(view: ServicePortView): readonly Pick<Backend, 'ip' | 'port'>[] {
  return isWatched(view) ? [...view.backends, ...(view.ejected ?? [])] : []
}

function isWatched({ protocol, connectRetry }: ServicePortView): boolean {
  return protocol === 'TCP' && connectRetry === true
}

/** Which service ports use a backend. */
export class BackendIndex {
  readonly #ports = new Map<string, Set<ServicePortName>>()

  get size(): number {
    return this.#ports.size
  }

  add(view: ServicePortView): void {
    for (const backend of planWatchedBackends(view)) {
      const key = keyOf(backend)
      const ports = this.#ports.get(key)
      if (ports === undefined) this.#ports.set(key, new Set([view.name]))
      else ports.add(view.name)
    }
  }

  remove(view: ServicePortView): void {
    for (const backend of planWatchedBackends(view)) {
      const key = keyOf(backend)
      const ports = this.#ports.get(key)
      ports?.delete(view.name)
      if (ports?.size === 0) this.#ports.delete(key)
    }
  }

  clear(): void {
    this.#ports.clear()
  }

  portsOf(backend: Pick<Backend, 'ip' | 'port'>): readonly ServicePortName[] {
    return [...(this.#ports.get(keyOf(backend)) ?? [])]
  }

  has(backend: Pick<Backend, 'ip' | 'port'>): boolean {
    return this.#ports.has(keyOf(backend))
  }
}

function keyOf({ ip, port }: Pick<Backend, 'ip' | 'port'>): string {
  return `${ip} ${port}`
}
