// One thread of the data path: it does what it is told, and otherwise waits for traffic.

import { Balancer, type PoolContent } from './balancer.ts'
import { ClientSources } from './client-sources.ts'
import type { Command, DoorSpec, PoolSpec, PoolState } from './pool.ts'
import { countersOf, HealthBoard } from './pool-board.ts'
import { Reactor } from './reactor.ts'
import { Relays } from './relay.ts'
import { encodeAddress } from '../wire/socket-address.ts'
import type { SourcePorts } from './source-ports.ts'
import { TcpDoor, TcpShared } from './tcp-door.ts'
import { UdpDoor, UdpShared } from './udp-door.ts'

export interface ThreadOptions {
  /** Which of the threads this is, from 0. */
  readonly index: number
  readonly udpIdleMs: number
  readonly sourcePorts: SourcePorts
  readonly warn: (message: string) => void
}

interface OpenPool {
  readonly spec: PoolSpec
  readonly balancer: Balancer
  readonly counters: Float64Array
}

export class DataPathThread {
  readonly reactor: Reactor = new Reactor()
  readonly #index: number
  readonly #tcp: TcpShared
  readonly #udp: UdpShared
  readonly #pools = new Map<number, OpenPool>()
  readonly #doors = new Map<number, TcpDoor | UdpDoor>()

  constructor({ index, udpIdleMs, sourcePorts, warn }: ThreadOptions) {
    this.#index = index
    const sources = new ClientSources(sourcePorts, warn)
    this.#tcp = new TcpShared(new Relays(this.reactor, sources), sources, warn)
    this.#udp = new UdpShared(this.reactor, { idleMs: udpIdleMs, sources, warn })
  }

  carryOut(command: Command): void {
    switch (command.kind) {
      case 'open':
        this.#open(command.pool)
        break
      case 'update':
        this.#pools.get(command.id)?.balancer.update(contentOf(command.state))
        break
      case 'listen':
        this.#listen(command.door)
        break
      case 'shut':
        this.#doors.get(command.door)?.close()
        this.#doors.delete(command.door)
        break
      case 'close':
        this.#pools.delete(command.id)
        break
    }
  }

  #open(spec: PoolSpec): void {
    const balancer = new Balancer(contentOf(spec))
    this.#pools.set(spec.id, { spec, balancer, counters: countersOf(spec.counters, this.#index) })
  }

  #listen({ id, pool, fd, seenAs, address }: DoorSpec): void {
    const { spec, balancer, counters } = this.#pools.get(pool)!
    const options = { fd, family: spec.family, balancer, counters, seenAs, node: encodeAddress(address, 0) }
    const isTcp = spec.protocol === 'TCP'
    this.#doors.set(id, isTcp ? new TcpDoor(this.#tcp, options) : new UdpDoor(this.#udp, options))
  }
}

function contentOf({ backends, health, affinitySeconds }: PoolState): PoolContent {
  return {
    backends: backends.map(({ ip, port, slot }) => ({ id: `${ip} ${port}`, address: encodeAddress(ip, port), slot })),
    health: new HealthBoard(health),
    affinityMs: affinitySeconds === undefined ? undefined : affinitySeconds * 1000,
  }
}
