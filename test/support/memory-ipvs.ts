// IPVS and a link as the kernel would have them, in memory: strict, and with connections that a test opens and closes.

import { KernelError } from '../../src/lib/errors.ts'
import type { Family } from '../../src/lib/ip.ts'
import { ipFamily } from '../../src/lib/ip.ts'
import {
  destinationKey,
  serverKey,
  type Destination,
  type DestinationState,
  type IpvsOp,
  type PlannedServer,
  type ServerId,
  type ServerState,
  type VirtualServer,
} from '../../src/ipvs/types.ts'
import type { LinkOp } from '../../src/links/types.ts'

interface Entry {
  server: VirtualServer
  readonly destinations: Map<string, DestinationState>
}

export class MemoryIpvs {
  readonly #servers = new Map<string, Entry>()
  /** The content of /proc/net/ip_vs_conn. */
  connections: string | undefined
  applied: IpvsOp[] = []
  failNext = false
  /** Schedulers that this kernel does not have. */
  lacks: readonly string[] = []
  /** How often connections were listed. */
  connectionLooks = 0
  duringConnectionRead: (() => void | Promise<void>) | undefined
  /** What else happens while the table is read. */
  duringTableRead: (() => void | Promise<void>) | undefined

  apply(ops: readonly IpvsOp[]): { bytes: number } {
    if (this.failNext) {
      this.failNext = false
      throw new KernelError('program IPVS', 'EBUSY')
    }
    for (const op of ops) this.#apply(op)
    this.applied.push(...ops)
    return { bytes: ops.length * 100 }
  }

  /** What was applied since the last call, in words. */
  takeApplied(): string[] {
    return this.applied
      .splice(0)
      .map((op) =>
        'destination' in op
          ? `${op.op} ${op.destination.address}${'weight' in op.destination && op.op !== 'deleteDestination' ? ` ${op.destination.weight}` : ''}`
          : op.op,
      )
  }

  read(family: Family): ServerState[] {
    return Array.from(this.#servers.values(), ({ server, destinations }) => ({
      server,
      destinations: [...destinations.values()],
    })).filter(({ server }) => server.family === family)
  }

  readDestinations(server: ServerId): DestinationState[] {
    return [...this.#find(server).destinations.values()]
  }

  async readConnections(each: (piece: string) => void): Promise<boolean> {
    this.connectionLooks++
    await this.duringConnectionRead?.()
    if (this.connections !== undefined) each(this.connections)
    return this.connections !== undefined
  }

  /** /proc/net/ip_vs. */
  readonly tableFile = {
    read: async (each: (piece: string) => void): Promise<boolean> => {
      each(this.#table())
      await this.duringTableRead?.()
      return true
    },
    readNow: (each: (piece: string) => void): boolean => {
      each(this.#table())
      return true
    },
  }

  /** As /proc/net/ip_vs has it, as far as it is counted. */
  #table(): string {
    return Array.from(
      this.#servers.values(),
      ({ server, destinations }) =>
        `${server.protocol}  ${procAddress(server.address)}:0050 rr\n` +
        Array.from(destinations.values(), ({ address }) => `  -> ${procAddress(address)}:0050      Masq\n`).join(''),
    ).join('')
  }

  /** What a person would see: destinations with weight 0 apart. */
  plan(): PlannedServer[] {
    return Array.from(this.#servers.values(), ({ server, destinations }) => ({
      server,
      destinations: [...destinations.values()].filter(({ weight }) => weight > 0),
    }))
  }

  /** Changes what the kernel counts for a destination, in every server that has it. */
  count(address: string, counts: Partial<DestinationState>): void {
    for (const { destinations } of this.#servers.values()) {
      for (const [key, state] of destinations) {
        if (state.address === address) destinations.set(key, { ...state, ...counts })
      }
    }
  }

  close(): void {}

  #apply(op: IpvsOp): void {
    const key = serverKey(op.server)
    switch (op.op) {
      case 'addServer':
        if (this.lacks.includes(op.server.scheduler)) throw new KernelError('add server', 'ENOENT')
        if (this.#servers.has(key)) throw new KernelError('add server', 'EEXIST')
        this.#servers.set(key, { server: op.server, destinations: new Map() })
        break
      case 'setServer':
        if (this.lacks.includes(op.server.scheduler)) throw new KernelError('set server', 'ENOENT')
        this.#find(op.server).server = op.server
        break
      case 'deleteServer':
        this.#find(op.server)
        this.#servers.delete(key)
        break
      case 'addDestination':
        if (this.#has(op)) throw new KernelError('add destination', 'EEXIST')
        this.#put(op.server, { ...unused, ...op.destination })
        break
      case 'setDestination':
        this.#put(op.server, { ...this.#destination(op), weight: op.destination.weight })
        break
      case 'deleteDestination':
        this.#destination(op)
        this.#find(op.server).destinations.delete(destinationKey(op.destination))
        break
    }
  }

  #put(server: ServerId, state: DestinationState): void {
    this.#find(server).destinations.set(destinationKey(state), state)
  }

  #has({ server, destination }: { server: ServerId; destination: Pick<Destination, 'address' | 'port'> }): boolean {
    return this.#find(server).destinations.has(destinationKey(destination))
  }

  #destination(op: { server: ServerId; destination: Pick<Destination, 'address' | 'port'> }): DestinationState {
    const state = this.#find(op.server).destinations.get(destinationKey(op.destination))
    if (state === undefined) throw new KernelError('find destination', 'ENOENT')
    return state
  }

  #find(server: ServerId): Entry {
    const entry = this.#servers.get(serverKey(server))
    if (entry === undefined) throw new KernelError('find server', 'ESRCH')
    return entry
  }
}

function procAddress(address: string): string {
  return address.includes(':') ? `[${address}]` : '0A000001'
}

/** The state of a destination that no packet has met. */
export const unused = {
  isNat: true,
  activeConnections: 0,
  inactiveConnections: 0,
  connections: 0n,
  packetsIn: 0n,
  packetsOut: 0n,
  bytesIn: 0n,
  bytesOut: 0n,
} as const

export class MemoryLink {
  readonly own = new Set<string>()
  others: string[]
  ensured = 0

  constructor(others: string[]) {
    this.others = others
  }

  ensure(): void {
    this.ensured++
  }

  read(family: Family): { own: string[]; others: string[] } {
    const ofFamily = (address: string) => ipFamily(address) === family
    return { own: [...this.own].filter(ofFamily), others: this.others.filter(ofFamily) }
  }

  apply(ops: readonly LinkOp[]): { bytes: number } {
    for (const { op, address } of ops) {
      if (op === 'addAddress') this.own.add(address)
      else this.own.delete(address)
    }
    return { bytes: ops.length * 40 }
  }

  close(): void {}
}
