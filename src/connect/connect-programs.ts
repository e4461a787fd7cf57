// The BPF programs and maps of all families. The kernel removes them when this is closed or this process ends.

import { HashMap } from '../bpf/hash-map.ts'
import { AttachedProgram, verifyProgram } from '../bpf/socket-programs.ts'
import type { Hook } from '../bpf/uapi.ts'
import { closeAllNow } from '../lib/close-all.ts'
import type { Family } from '../lib/ip.ts'
import type { Steps } from '../lib/steps.ts'
import { readNetnsCookie } from '../system/netns-cookie.ts'
import { type ChosenCount, decodeCount, FLOWS, layouts, REMEMBERED } from './layout.ts'
import { planPrograms } from './programs.ts'
import { Witness, type WitnessOptions } from './witness.ts'

/** What the proxy writes for a family, in this order, and deletes in the opposite one. */
export const TABLES = ['live', 'backends', 'frontends'] as const
export type Table = (typeof TABLES)[number]
export type Maps = Readonly<Record<Table, HashMap>>

/** Maps with room for so many elements. */
export function createMaps(family: Family, capacity: Readonly<Record<Table, number>>): Maps {
  const create = (table: Table) =>
    new HashMap({
      ...layouts[family][table],
      name: `kube_${table}${family}`,
      capacity: capacity[table],
      memory: 'as needed',
    })
  const created: HashMap[] = []
  try {
    for (const table of TABLES) created.push(create(table))
  } catch (error) {
    closeAllNow(...created.map((map) => () => map.close()))
    throw error
  }
  const [live, backends, frontends] = created as [HashMap, HashMap, HashMap]
  return { live, backends, frontends }
}

export function closeMaps(maps: Maps): void {
  closeAllNow(...TABLES.map((table) => () => maps[table].close()))
}

/** The most open sockets of TCP and of UDP whose choice is remembered, in 7 MB of kernel memory each. Further ones go by the rules. */
const MOST_SOCKETS = 1 << 16
const MOST_UDP_SOCKETS = 1 << 15
const COOKIE_LENGTH = 8
/** The most pairs of a frontend and a backend that are counted in each family. */
const MOST_PAIRS = 1 << 14

/** Their programs use the maps that may be replaced. */
const CHOOSING: ReadonlySet<Hook> = new Set(['connect4', 'connect6', 'sendmsg4', 'sendmsg6'])

export class ConnectPrograms {
  readonly cgroup: string | undefined
  readonly #nodeNetns = readNetnsCookie()
  readonly #dialled: HashMap
  readonly #flows: HashMap
  readonly #witness: Witness
  readonly #maps: Map<Family, Maps>
  readonly #counts = new Map<Family, HashMap>()
  readonly #attached = new Map<Hook, AttachedProgram>()

  /** Attaches the programs, with empty maps. Without a cgroup, the kernel only looks whether it takes them. */
  constructor(cgroup: string | undefined, options: Omit<WitnessOptions, 'nodeNetns'>) {
    this.cgroup = cgroup
    this.#dialled = new HashMap({
      name: 'kube_dialled',
      keyLength: COOKIE_LENGTH,
      valueLength: 4 * REMEMBERED.words,
      capacity: MOST_SOCKETS,
      memory: 'at once',
    })
    try {
      this.#flows = new HashMap({
        name: 'kube_flows',
        keyLength: COOKIE_LENGTH,
        valueLength: FLOWS.valueLength,
        capacity: MOST_UDP_SOCKETS,
        memory: 'at once',
      })
    } catch (error) {
      this.#dialled.close()
      throw error
    }
    try {
      this.#witness = new Witness({ ...options, nodeNetns: this.#nodeNetns })
    } catch (error) {
      closeAllNow(
        () => this.#dialled.close(),
        () => this.#flows.close(),
      )
      throw error
    }
    this.#maps = new Map()
    try {
      for (const family of options.families) {
        this.#maps.set(family, createMaps(family, { live: 1, backends: 1, frontends: 1 }))
        const name = `kube_counts${family}`
        const memory = 'of the least used'
        this.#counts.set(family, new HashMap({ ...layouts[family].counts, name, capacity: MOST_PAIRS, memory }))
      }
      this.#attach()
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** The backends of these lists with affinity are others now. */
  forget(family: Family, lists: readonly number[]): void {
    this.#witness.forget(family, lists)
  }

  /** How often each backend was chosen for each frontend since the programs are there. */
  *counts(family: Family): Steps<ChosenCount[]> {
    const elements = yield* this.#counts.get(family)!.elements()
    return elements.map(([key, value]) => decodeCount(family, key, value))
  }

  maps(family: Family): Maps {
    return this.#maps.get(family)!
  }

  /** Takes over these maps for the family, and closes those that they replace. Closes the new ones if the programs cannot use them. */
  use(family: Family, maps: Maps): void {
    const former = this.maps(family)
    const replaced = (one: Maps, other: Maps) =>
      TABLES.filter((table) => one[table] !== other[table]).map((table) => () => one[table].close())
    this.#maps.set(family, maps)
    try {
      this.#attach()
    } catch (error) {
      this.#maps.set(family, former)
      closeAllNow(...replaced(maps, former))
      throw error
    }
    closeAllNow(...replaced(former, maps))
  }

  /** The rules serve from now on. Answers that are under way still seem to come from the frontend, until this is closed. */
  stopChoosing(): void {
    for (const hook of CHOOSING) {
      this.#attached.get(hook)?.close()
      this.#attached.delete(hook)
    }
  }

  close(): void {
    closeAllNow(
      ...Array.from(this.#attached.values(), (program) => () => program.close()),
      ...Array.from(this.#maps.values(), (maps) => () => closeMaps(maps)),
      ...Array.from(this.#counts.values(), (map) => () => map.close()),
      () => this.#dialled.close(),
      () => this.#flows.close(),
      () => this.#witness.close(),
    )
    this.#attached.clear()
    this.#maps.clear()
    this.#counts.clear()
  }

  #attach(): void {
    const { seen, called, calls } = this.#witness
    const descriptors = (family: Family) => ({
      frontends: this.maps(family).frontends.fd,
      backends: this.maps(family).backends.fd,
      live: this.maps(family).live.fd,
      seen: seen.get(family)!.fd,
      counts: this.#counts.get(family)!.fd,
    })
    const programs = planPrograms({
      maps4: descriptors(4),
      maps6: this.#maps.has(6) ? descriptors(6) : undefined,
      called: called.fd,
      calls: calls.fd,
      dialled: this.#dialled.fd,
      flows: this.#flows.fd,
      nodeNetns: this.#nodeNetns,
    })
    for (const [hook, steps] of Object.entries(programs) as [Hook, (typeof programs)[Hook] & {}][]) {
      const attached = this.#attached.get(hook)
      if (this.cgroup === undefined) verifyProgram(hook, steps)
      else if (attached === undefined) this.#attached.set(hook, new AttachedProgram(hook, steps, this.cgroup))
      else if (CHOOSING.has(hook)) attached.replace(steps)
    }
  }
}
