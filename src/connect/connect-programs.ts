// The BPF programs and maps of all families. The kernel removes them when this is closed or this process ends.

import { HashMap } from '../bpf/hash-map.ts'
import { AttachedProgram } from '../bpf/socket-programs.ts'
import type { Hook } from '../bpf/uapi.ts'
import { closeAllNow } from '../lib/close-all.ts'
import type { Family } from '../lib/ip.ts'
import { layouts, REMEMBERED } from './layout.ts'
import { planPrograms } from './programs.ts'

/** A map of the backends of a family's cluster IPs. */
export function createBackends(family: Family, capacity: number): HashMap {
  const { keyLength, valueLength } = layouts[family]
  return new HashMap({ name: `kube_backends${family}`, keyLength, valueLength, capacity, memory: 'as needed' })
}

/** The most open sockets whose choice is remembered, in 7 MB of kernel memory. Further ones dial the cluster IP and go by the rules. */
const MOST_SOCKETS = 1 << 16
const COOKIE_LENGTH = 8

export class ConnectPrograms {
  readonly cgroup: string
  readonly #dialled: HashMap
  readonly #maps: Map<Family, HashMap>
  readonly #attached = new Map<Hook, AttachedProgram>()

  /** Attaches the programs, with empty maps. */
  constructor(cgroup: string, families: readonly Family[]) {
    this.cgroup = cgroup
    this.#dialled = new HashMap({
      name: 'kube_dialled',
      keyLength: COOKIE_LENGTH,
      valueLength: 4 * REMEMBERED.words,
      capacity: MOST_SOCKETS,
      memory: 'at once',
    })
    this.#maps = new Map()
    try {
      for (const family of families) this.#maps.set(family, createBackends(family, 1))
      this.#attach()
    } catch (error) {
      this.close()
      throw error
    }
  }

  map(family: Family): HashMap {
    return this.#maps.get(family)!
  }

  /** Takes over this map for the family, and closes the former one. Closes the new map if the programs cannot use it. */
  use(family: Family, map: HashMap): void {
    const former = this.map(family)
    this.#maps.set(family, map)
    try {
      this.#attach()
    } catch (error) {
      this.#maps.set(family, former)
      map.close()
      throw error
    }
    former.close()
  }

  close(): void {
    closeAllNow(
      ...Array.from(this.#attached.values(), (program) => () => program.close()),
      ...Array.from(this.#maps.values(), (map) => () => map.close()),
      () => this.#dialled.close(),
    )
    this.#attached.clear()
    this.#maps.clear()
  }

  #attach(): void {
    const programs = planPrograms({
      backends4: this.map(4).fd,
      backends6: this.#maps.get(6)?.fd,
      dialled: this.#dialled.fd,
    })
    for (const [hook, steps] of Object.entries(programs) as [Hook, (typeof programs)[Hook] & {}][]) {
      const attached = this.#attached.get(hook)
      if (attached === undefined) this.#attached.set(hook, new AttachedProgram(hook, steps, this.cgroup))
      else if (hook.startsWith('connect')) attached.replace(steps)
    }
  }
}
