// Which backend a client gets: its own when it has one, otherwise that of its hash or the next in turn, if it has not failed lately.

import { AffinityTable } from './affinity-table.ts'
import { jhash, scaleHash } from '../lib/jhash.ts'
import { HASH_SEED } from '../lib/maglev.ts'
import type { AffinityEntry, HashBy } from './pool.ts'
import type { HealthBoard } from './pool-board.ts'
import { hostBytes, type HostKey, portOf } from '../system/socket-address.ts'

export interface PoolBackend {
  /** `ip:port` */
  readonly id: string
  /** A socket address. */
  readonly address: Uint8Array
  /** Its place on the health board. */
  readonly slot: number
  /** No other backend ever has it. */
  readonly serial: number
}

export interface PoolContent {
  readonly backends: readonly PoolBackend[]
  /** Whose turn it is, one after the other, where some weigh more than others. */
  readonly turns?: readonly PoolBackend[] | undefined
  /** A hash of the client says whose turn it is; absent: they take turns. */
  readonly hashBy?: HashBy | undefined
  readonly health: HealthBoard
  /** undefined: no session affinity. */
  readonly affinityMs: number | undefined
}

export class Balancer {
  #content: PoolContent
  #byId: ReadonlyMap<string, PoolBackend>
  #affinity: AffinityTable | undefined

  constructor(content: PoolContent) {
    this.#content = content
    this.#byId = indexOf(content.backends)
    this.#affinity = content.affinityMs === undefined ? undefined : new AffinityTable(content.affinityMs)
  }

  /** Whether the same client is to get the same backend. */
  get isSticky(): boolean {
    return this.#affinity !== undefined
  }

  update(content: PoolContent): void {
    this.#content = content
    this.#byId = indexOf(content.backends)
    const { affinityMs } = content
    if (affinityMs === undefined) this.#affinity = undefined
    else if (this.#affinity === undefined) this.#affinity = new AffinityTable(affinityMs)
    else this.#affinity.timeoutMs = affinityMs
  }

  /**
   * The backend for a client; undefined when the list is empty. Makes the affinity entry at once: a client may begin several
   * connections at the same time. `address`: of the client, as a socket address.
   */
  pick(client: HostKey, nowMs: number, address: Uint8Array): PoolBackend | undefined {
    const known = this.#affinity?.find(client, nowMs)
    const own = known === undefined ? undefined : this.#byId.get(known)
    if (own !== undefined) return own
    const chosen = this.#next(nowMs, address)
    if (chosen !== undefined) this.remember(chosen, client, nowMs)
    return chosen
  }

  /** The client's affinity entry. Reading does not renew it. */
  findAffinity(client: HostKey, nowMs: number): AffinityEntry | undefined {
    const found = this.#affinity?.findAffinity(client, nowMs)
    return found !== undefined && this.#byId.has(found.backend) ? found : undefined
  }

  /** The backend of this name, while it is in the list. */
  find(id: string): PoolBackend | undefined {
    return this.#byId.get(id)
  }

  /** Makes or renews the affinity entry. */
  remember(backend: PoolBackend, client: HostKey, nowMs: number): void {
    this.#affinity?.remember(client, backend.id, nowMs)
  }

  /** The backend answered. */
  worked(backend: PoolBackend): void {
    if (this.has(backend)) this.#content.health.forgive(backend.slot)
  }

  /** The backend did not answer: it rests for a while, and the client's affinity to it ends. */
  failed(backend: PoolBackend, client: HostKey, nowMs: number, triedMs: number = nowMs): void {
    if (this.has(backend)) this.#content.health.failed(backend.slot, nowMs, triedMs)
    // Another connection of the client may have a newer entry.
    if (this.#affinity?.find(client, nowMs) === backend.id) this.#affinity.forget(client)
  }

  /** Whether it has not been removed. The slot of one that was may belong to another by now. */
  has({ id, slot }: PoolBackend): boolean {
    return this.#byId.get(id)?.slot === slot
  }

  #next(nowMs: number, address: Uint8Array): PoolBackend | undefined {
    const { backends, turns = backends, health, hashBy } = this.#content
    let hashed = hashBy === undefined ? 0 : hashedTurn(address, hashBy, turns.length)
    const turn = hashBy === undefined ? () => health.nextTurn() : () => hashed++
    for (let tries = turns.length; tries > 0; tries--) {
      const candidate = turns[turn() % turns.length]!
      if (health.mayTry(candidate.slot, nowMs)) return candidate
    }
    // All of them have failed lately: better one of these than none.
    return turns[turn() % turns.length]
  }
}

function hashedTurn(address: Uint8Array, hashBy: HashBy, turns: number): number {
  const port = portOf(address)
  const words = hashBy === 'client' ? '' : String.fromCharCode(port >> 8, port & 255, 0, 0)
  return scaleHash(jhash(hostBytes(address) + words, HASH_SEED), turns)
}

function indexOf(backends: readonly PoolBackend[]): ReadonlyMap<string, PoolBackend> {
  return new Map(backends.map((backend) => [backend.id, backend]))
}
