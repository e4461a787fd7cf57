// Which node ports are taken: kept in step with the services there are.

import { pickFree, portBand } from './pick.ts'
import type { Change, Collection } from '../store/collection.ts'
import type { Service } from '../objects/service.ts'

export interface PortRange {
  readonly first: number
  readonly last: number
}

export class NodePorts {
  readonly #range: PortRange
  /** By port: the keys of the services that hold it. There is more than one only while something is wrong. */
  readonly #holders = new Map<number, Set<string>>()

  constructor(range: PortRange, services: Collection<Service>) {
    this.#range = range
    for (const { key, object } of services.values()) this.#add(key, object)
    services.listen((change) => this.#follow(change))
  }

  /** A free port; undefined when all are taken. `besides` are spoken for although no service holds them yet. */
  pick(besides: ReadonlySet<number>): number | undefined {
    const { first, last } = this.#range
    const isFree = (offset: number): boolean => !this.#holders.has(first + offset) && !besides.has(first + offset)
    const offset = pickFree({ size: last - first + 1, isFree }, portBand)
    return offset === undefined ? undefined : first + offset
  }

  /** Why a service cannot have a port that it asks for; undefined when it can. */
  problem(port: number, key: string): string | undefined {
    const { first, last } = this.#range
    if (port < first || port > last) {
      return `provided port is not in the valid range. The range of valid ports is ${first}-${last}`
    }
    const others = [...(this.#holders.get(port) ?? [])].filter((holder) => holder !== key)
    return others.length > 0 ? 'provided port is already allocated' : undefined
  }

  #follow({ key, before, after }: Change<Service>): void {
    if (before !== undefined) {
      for (const port of nodePortsOf(before.object)) {
        const holders = this.#holders.get(port)
        holders?.delete(key)
        if (holders?.size === 0) this.#holders.delete(port)
      }
    }
    if (after !== undefined) this.#add(key, after.object)
  }

  #add(key: string, service: Service): void {
    for (const port of nodePortsOf(service)) {
      const holders = this.#holders.get(port)
      if (holders === undefined) this.#holders.set(port, new Set([key]))
      else holders.add(key)
    }
  }
}

function nodePortsOf({ spec }: Service): number[] {
  return [...(spec.ports ?? []).map(({ nodePort }) => nodePort), spec.healthCheckNodePort].filter(
    (port) => port !== undefined,
  )
}
