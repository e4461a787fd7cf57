// One thread of the data path: it does what it is told, and otherwise waits for traffic.

import { Balancer, type PoolContent } from './balancer.ts'
import { ClientSources } from './client-sources.ts'
import type { Command, DoorSpec, PoolSpec, PoolState, Recalled } from './pool.ts'
import { COUNTERS, countersOf, HealthBoard } from './pool-board.ts'
import { Reactor } from './reactor.ts'
import { Relays } from './relay.ts'
import { encodeAddress, hostKey } from '../system/socket-address.ts'
import type { SourcePorts } from './source-ports.ts'
import { SpareSockets } from './spare-sockets.ts'
import { HANDED_CLIENT, TcpDoor, TcpShared } from './tcp-door.ts'
import type { Team } from './team.ts'
import { ThreadTally } from './tally.ts'
import type { TimerQueue } from './timer-queue.ts'
import { UdpDoor, type UdpLimits, udpLimits, UdpShared } from './udp-door.ts'

export interface ThreadOptions {
  readonly udpIdleMs: number
  readonly sourcePorts: SourcePorts
  readonly team: Team
  /** Where file descriptors end that connections may take. */
  readonly endFd: number
  readonly warn: (message: string) => void
  /** As many as file descriptors allow, unless given. */
  readonly udpLimits?: UdpLimits | undefined
}

interface OpenPool {
  readonly spec: PoolSpec
  readonly balancer: Balancer
  readonly counters: Float64Array
  readonly udpDoors: Set<UdpDoor>
}

/** The thread that lets TCP clients in. */
const KEEPER = 0
const FORGET_AFTER_MS = 1000

export class DataPathThread {
  readonly reactor: Reactor = new Reactor()
  readonly #team: Team
  readonly #tally: ThreadTally
  readonly #sources: ClientSources
  readonly #spares: SpareSockets
  readonly #relays: Relays
  readonly #tcp: TcpShared
  readonly #udp: UdpShared
  readonly #pools = new Map<number, OpenPool>()
  readonly #doors = new Map<number, TcpDoor | UdpDoor>()
  /** Those of which clients may still be on their way from another thread. */
  readonly #shutDoors: TimerQueue<number>

  constructor({ udpIdleMs, sourcePorts, team, endFd, warn, ...options }: ThreadOptions) {
    this.#team = team
    const tally = (this.#tally = new ThreadTally(team.index, team.size))
    const sources = (this.#sources = new ClientSources(sourcePorts, warn))
    const spares = (this.#spares = new SpareSockets(endFd))
    this.#relays = new Relays(this.reactor, { sources, team, endFd, warn, tally })
    this.#tcp = new TcpShared(this.#relays, { sources, spares, warn })
    const limits = options.udpLimits ?? udpLimits(endFd, team.size)
    this.#udp = new UdpShared(this.reactor, { idleMs: udpIdleMs, sources, spares, warn, limits, tally })
    this.#shutDoors = this.reactor.timers(FORGET_AFTER_MS, (door) => this.#doors.delete(door))
    if (team.size > 1) this.reactor.onTurn = (nowMs) => team.lookAtSelf(nowMs)
  }

  /** Does what the control side says. */
  carryOut(command: Command): void {
    switch (command.kind) {
      case 'open':
        this.#open(command.pool)
        break
      case 'update':
        this.#update(command.id, command.state)
        break
      case 'listen':
        this.#listen(command.door)
        break
      case 'shut':
        this.#shut(command.door)
        break
      case 'close':
        this.#pools.delete(command.id)
        break
      case 'tally':
        this.#tally.use(command.memory)
        break
      case 'recall':
      case 'tell when done':
        // Answered by worker.ts.
        break
    }
  }

  /** Which backend a pool remembers for a client. Of a pool with affinity, one thread knows: the keeper of its door. */
  recall(pool: number, client: string): Recalled | undefined {
    return this.#pools.get(pool)?.balancer.recall(hostKey(encodeAddress(client, 0)), this.reactor.nowMs)
  }

  /** Ends all connections and closes what it has opened. */
  dispose(): void {
    this.takeHanded()
    this.reactor.dispose()
    this.#relays.pipes.dispose()
    this.#spares.dispose()
    this.#sources.dispose()
  }

  /** Takes what other threads have handed over. All commands that were given before must have been carried out. */
  takeHanded(): void {
    for (let record; (record = this.#team.receive()) !== undefined;) this.#take(record)
  }

  #take([kind, ...words]: Int32Array): void {
    if (kind === HANDED_CLIENT) {
      const [clientFd = -1, id = -1] = words
      const door = this.#doors.get(id)
      if (door instanceof TcpDoor) door.serveHanded(clientFd)
      else this.reactor.close(clientFd)
      return
    }
    const [clientFd = -1, backendFd = -1, pool = -1, sourcePort = 0, state = 0, serial = 0] = words
    const counters = this.#pools.get(pool)?.counters ?? UNREAD_COUNTERS
    const shown = this.#sources.shownBy(backendFd, sourcePort)
    this.#relays.takeOver({ clientFd, backendFd, pool, serial, shown, counters }, state)
  }

  #open(spec: PoolSpec): void {
    const balancer = new Balancer(contentOf(spec))
    this.#pools.set(spec.id, {
      spec,
      balancer,
      counters: countersOf(spec.counters, this.#team.index),
      udpDoors: new Set(),
    })
  }

  #update(id: number, state: PoolState): void {
    const pool = this.#pools.get(id)
    if (pool === undefined) return
    pool.balancer.update(contentOf(state))
    for (const door of pool.udpDoors) door.leaveRemoved()
  }

  #shut(id: number): void {
    const door = this.#doors.get(id)
    if (door === undefined) return
    door.close()
    if (door instanceof UdpDoor) this.#pools.get(door.options.pool)?.udpDoors.delete(door)
    this.#shutDoors.start(id, this.reactor.nowMs)
  }

  #listen({ id, pool, fd, seenAs, address }: DoorSpec): void {
    const { spec, balancer, counters, udpDoors } = this.#pools.get(pool)!
    const node = encodeAddress(address, 0)
    const { index, size } = this.#team
    const common = { fd, pool, family: spec.family, balancer, counters, seenAs, node }
    const door =
      spec.protocol === 'TCP'
        ? new TcpDoor(this.#tcp, { ...common, id, isKeeper: index === KEEPER })
        : // Clients of a door are known to one thread only, so doors are spread and not clients.
          new UdpDoor(this.#udp, { ...common, isKeeper: index === id % size })
    if (door instanceof UdpDoor) udpDoors.add(door)
    this.#doors.set(id, door)
  }
}

/** A pool that was closed while one of its connections was on its way from thread to thread. */
const UNREAD_COUNTERS = new Float64Array(COUNTERS.length)

function contentOf({ backends, health, affinitySeconds }: PoolState): PoolContent {
  return {
    backends: backends.map(({ ip, port, slot, serial }) => ({
      id: `${ip} ${port}`,
      address: encodeAddress(ip, port),
      slot,
      serial,
    })),
    health: new HealthBoard(health),
    affinityMs: affinitySeconds === undefined ? undefined : affinitySeconds * 1000,
  }
}
