// One thread of the data path: it does what it is told, and otherwise waits for traffic.

import { Balancer, type PoolContent } from './balancer.ts'
import type { Command, PoolSpec, PoolState } from './pool.ts'
import { countersOf, HealthBoard } from './pool-board.ts'
import { Reactor } from './reactor.ts'
import { Relays } from './relay.ts'
import { encodeAddress } from './socket-address.ts'
import { TcpPool, TcpShared } from './tcp-pool.ts'
import { UdpPool, UdpShared } from './udp-pool.ts'

export interface ThreadOptions {
  /** Which of the threads this is, from 0. */
  readonly index: number
  readonly udpIdleMs: number
  readonly warn: (message: string) => void
}

interface OpenPool {
  readonly balancer: Balancer
  readonly pool: TcpPool | UdpPool
}

export class DataPathThread {
  readonly reactor: Reactor = new Reactor()
  readonly #index: number
  readonly #tcp: TcpShared
  readonly #udp: UdpShared
  readonly #pools = new Map<number, OpenPool>()

  constructor({ index, udpIdleMs, warn }: ThreadOptions) {
    this.#index = index
    this.#tcp = new TcpShared(new Relays(this.reactor), warn)
    this.#udp = new UdpShared(this.reactor, { idleMs: udpIdleMs, warn })
  }

  carryOut(command: Command): void {
    switch (command.kind) {
      case 'open':
        this.#open(command.pool)
        break
      case 'update':
        this.#pools.get(command.id)?.balancer.update(contentOf(command.state))
        break
      case 'close':
        this.#pools.get(command.id)?.pool.close()
        this.#pools.delete(command.id)
        break
    }
  }

  #open(spec: PoolSpec): void {
    const balancer = new Balancer(contentOf(spec))
    const { fd, family } = spec
    const options = { fd, family, balancer, counters: countersOf(spec.counters, this.#index) }
    const pool = spec.protocol === 'TCP' ? new TcpPool(this.#tcp, options) : new UdpPool(this.#udp, options)
    this.#pools.set(spec.id, { balancer, pool })
  }
}

function contentOf({ backends, health, affinitySeconds }: PoolState): PoolContent {
  return {
    backends: backends.map(({ ip, port, slot }) => ({ id: `${ip} ${port}`, address: encodeAddress(ip, port), slot })),
    health: new HealthBoard(health),
    affinityMs: affinitySeconds === undefined ? undefined : affinitySeconds * 1000,
  }
}
