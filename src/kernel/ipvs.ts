// IPVS over generic netlink: virtual servers and destinations, written and read back.

import { closeSync, openSync, readSync } from 'node:fs'
import { KernelError, UnsupportedError } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import { describeOp } from '../state/ipvs/format.ts'
import type { DestinationState, IpvsOp, ServerId, ServerState, VirtualServer } from '../state/ipvs/types.ts'
import {
  type IpvsInfo,
  type IpvsTimeouts,
  readDestination,
  readInfo,
  readServer,
  readTimeouts,
  writeDestinationsRequest,
  writeInfoRequest,
  writeOp,
  writeServersRequest,
  writeTimeouts,
  writeTimeoutsRequest,
} from '../wire/ipvs/messages.ts'
import { IPVS_GENL_NAME } from '../wire/uapi/ip_vs.ts'
import { NETLINK_GENERIC } from '../wire/uapi/netlink.ts'
import { Writer } from '../wire/writer.ts'
import { findGenericFamily } from './generic-netlink.ts'
import { errnoName } from './libc.ts'
import { NetlinkClient } from './netlink-client.ts'
import { NetlinkSocket } from './netlink-socket.ts'

/** Messages that are sent at once. The kernel answers none but the last and those that it refuses. */
const CHUNK = 1000

export class IpvsDriver {
  readonly #socket: NetlinkSocket
  readonly #client: NetlinkClient
  readonly #writer = new Writer()
  readonly #family: number
  /** The file that lists connections, of the network namespace in which the driver was opened; undefined: it has none. */
  readonly #connections: number | undefined

  /** Throws an UnsupportedError when the kernel has no IPVS. */
  constructor() {
    this.#socket = new NetlinkSocket(NETLINK_GENERIC)
    this.#client = new NetlinkClient((request, mode) => this.#socket.exchange(request, mode))
    const family = findGenericFamily(this.#client, IPVS_GENL_NAME)
    if (family === undefined) {
      this.#socket.close()
      throw new UnsupportedError('IPVS', 'the kernel module ip_vs is missing')
    }
    this.#family = family
    this.#connections = tryOpen('/proc/net/ip_vs_conn')
  }

  /**
   * Carries out the operations in order. A KernelError names the first that was refused; those after it may have been
   * carried out all the same. Returns how many bytes were sent.
   */
  apply(ops: readonly IpvsOp[]): { readonly bytes: number } {
    let bytes = 0
    for (let start = 0; start < ops.length; start += CHUNK) bytes += this.#applyChunk(ops.slice(start, start + CHUNK))
    return { bytes }
  }

  /** Every virtual server of a family with its destinations. */
  read(family: Family): ServerState[] {
    const servers = this.readServers().filter((server) => server.family === family)
    return servers.map((server) => ({ server, destinations: this.readDestinations(server) }))
  }

  readServers(): VirtualServer[] {
    this.#writer.reset()
    writeServersRequest(this.#writer, this.#family)
    return this.#client.dump('list virtual servers', this.#writer.written(), readServer)
  }

  /** The destinations of a server; none when there is no such server. */
  readDestinations(server: ServerId): DestinationState[] {
    this.#writer.reset()
    writeDestinationsRequest(this.#writer, this.#family, server)
    return this.#client.dump('list destinations', this.#writer.written(), (message) =>
      readDestination(message, server.family),
    )
  }

  /** All connections, as the kernel prints them; undefined when it does not. */
  readConnections(): string | undefined {
    return this.#connections === undefined ? undefined : readAll(this.#connections)
  }

  info(): IpvsInfo {
    this.#writer.reset()
    writeInfoRequest(this.#writer, this.#family)
    return this.#client.get('ask IPVS for its version', this.#writer.written(), readInfo)
  }

  readTimeouts(): IpvsTimeouts {
    this.#writer.reset()
    writeTimeoutsRequest(this.#writer, this.#family)
    return this.#client.get('read the timeouts of IPVS', this.#writer.written(), readTimeouts)
  }

  setTimeouts(timeouts: IpvsTimeouts): void {
    this.#writer.reset()
    writeTimeouts(this.#writer, this.#family, timeouts)
    this.#client.request('set the timeouts of IPVS', this.#writer.written())
  }

  close(): void {
    this.#socket.close()
    if (this.#connections !== undefined) closeSync(this.#connections)
  }

  #applyChunk(ops: readonly IpvsOp[]): number {
    this.#writer.reset()
    for (const [i, op] of ops.entries()) writeOp(this.#writer, this.#family, op, i === ops.length - 1)
    const messages = this.#writer.written()
    const answers = this.#client.batch(messages)
    const refused = answers.find(({ errno }) => errno !== 0)
    if (refused !== undefined) {
      throw new KernelError(describeOp(ops[refused.sequence]!), errnoName(refused.errno), refused.extack)
    }
    // Success is said, not assumed: the last message has asked for it.
    if (!answers.some(({ sequence }) => sequence === ops.length - 1)) {
      throw new KernelError('program IPVS', 'ENOMSG', 'the kernel did not answer')
    }
    return messages.length
  }
}

function tryOpen(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch {
    return undefined
  }
}

/** From the beginning to the end, in pieces as large as the kernel gives them. */
function readAll(fd: number): string {
  const pieces: Buffer[] = []
  for (let position = 0; ;) {
    const piece = Buffer.alloc(1 << 16)
    const length = readSync(fd, piece, 0, piece.length, position)
    if (length === 0) return Buffer.concat(pieces).toString('latin1')
    pieces.push(piece.subarray(0, length))
    position += length
  }
}
