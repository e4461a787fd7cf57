// IPVS over generic netlink: virtual servers and destinations, written and read back.

import { closeSync, openSync, readSync } from 'node:fs'
import { KernelError, UnsupportedError } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import { describeOp } from './format.ts'
import type { DestinationState, IpvsOp, ServerId, ServerState, VirtualServer } from './types.ts'
import {
  type IpvsInfo,
  type IpvsTimeouts,
  decodeDestination,
  decodeInfo,
  decodeServer,
  readTimeouts,
  writeDestinationsRequest,
  writeInfoRequest,
  writeOp,
  writeServersRequest,
  writeTimeouts,
  writeTimeoutsRequest,
} from './bytes/messages.ts'
import { IPVS_GENL_NAME } from './bytes/uapi.ts'
import { NETLINK_GENERIC } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { findGenericFamily } from '../netlink/generic-netlink.ts'
import { errnoName } from '../system/libc.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { NetlinkSocket } from '../netlink/socket.ts'

/** Messages that are sent at once. The kernel answers none but the last and those that it refuses. */
const CHUNK = 1000

export class IpvsDriver {
  readonly #socket: NetlinkSocket
  readonly #client: NetlinkClient
  readonly #writer = new Writer()
  readonly #family: number
  readonly #files: Readonly<Record<'connections' | 'table', ProcFile>>

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
    this.#files = { connections: new ProcFile('/proc/net/ip_vs_conn'), table: new ProcFile('/proc/net/ip_vs') }
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
    return this.#client.dump('list virtual servers', this.#writer.written(), decodeServer)
  }

  /** The destinations of a server; none when there is no such server. */
  readDestinations(server: ServerId): DestinationState[] {
    this.#writer.reset()
    writeDestinationsRequest(this.#writer, this.#family, server)
    return this.#client.dump('list destinations', this.#writer.written(), (message) =>
      decodeDestination(message, server.family),
    )
  }

  /** All connections, as the kernel prints them; undefined when it does not. */
  readConnections(): string | undefined {
    return this.#files.connections.read()
  }

  /** All virtual servers and destinations of both families, as the kernel prints them; undefined when it does not. */
  readTable(): string | undefined {
    return this.#files.table.read()
  }

  info(): IpvsInfo {
    this.#writer.reset()
    writeInfoRequest(this.#writer, this.#family)
    return this.#client.get('ask IPVS for its version', this.#writer.written(), decodeInfo)
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
    for (const file of Object.values(this.#files)) file.close()
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

/** A file under /proc/net, of the network namespace in which it was opened, read again and again. */
class ProcFile {
  readonly #fd: number | undefined
  #buffer = Buffer.alloc(1 << 16)

  constructor(path: string) {
    try {
      this.#fd = openSync(path, 'r')
    } catch {
      this.#fd = undefined
    }
  }

  /** All of it; undefined when there is no such file. The kernel gives a page at a time. */
  read(): string | undefined {
    if (this.#fd === undefined) return undefined
    let end = 0
    for (;;) {
      const length = readSync(this.#fd, this.#buffer, end, this.#buffer.length - end, end)
      if (length === 0) return this.#buffer.toString('latin1', 0, end)
      end += length
      if (end === this.#buffer.length) this.#buffer = Buffer.concat([this.#buffer, Buffer.alloc(end)])
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
  }
}
