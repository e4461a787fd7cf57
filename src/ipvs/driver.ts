// IPVS over generic netlink: virtual servers and destinations, written and read back.

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
  decodeTimeouts,
  writeDestinationsRequest,
  writeInfoRequest,
  writeOp,
  writeServersRequest,
  writeTimeouts,
  writeTimeoutsRequest,
} from './bytes/messages.ts'
import { IPVS_GENL_NAME } from './bytes/uapi.ts'
import { NETLINK_GENERIC } from '../netlink/uapi/netlink.ts'
import type { Writer } from '../netlink/writer.ts'
import { findGenericFamily } from '../netlink/generic-netlink.ts'
import { errnoName } from '../system/libc.ts'
import { NetlinkConnection } from '../netlink/connection.ts'
import { ProcFile } from '../system/proc-file.ts'

/** All virtual servers and destinations of both families, as the kernel prints them. */
export function openIpvsTable(): ProcFile {
  return new ProcFile('/proc/net/ip_vs')
}

/** All connections, and what persistence remembers. */
export function openIpvsConnections(): ProcFile {
  return new ProcFile('/proc/net/ip_vs_conn')
}

/** Messages that are sent at once. The kernel answers none but the last and those that it refuses. */
const CHUNK = 1000

export class IpvsDriver implements Disposable {
  readonly #netlink = new NetlinkConnection(NETLINK_GENERIC)
  readonly #family: number
  readonly #connections: ProcFile

  /** Throws an UnsupportedError when the kernel has no IPVS. */
  constructor() {
    const family = findGenericFamily(this.#netlink, IPVS_GENL_NAME)
    if (family === undefined) {
      this.#netlink.close()
      throw new UnsupportedError('IPVS', 'the kernel module ip_vs is missing')
    }
    this.#family = family
    this.#connections = openIpvsConnections()
  }

  /** Undefined when the kernel has no IPVS. */
  static tryOpen(): IpvsDriver | undefined {
    try {
      return new IpvsDriver()
    } catch (error) {
      if (error instanceof UnsupportedError) return undefined
      throw error
    }
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
    const write = (writer: Writer) => writeServersRequest(writer, this.#family)
    return this.#netlink.dump('list virtual servers', write, decodeServer)
  }

  /** The destinations of a server; none when there is no such server. */
  readDestinations(server: ServerId): DestinationState[] {
    const write = (writer: Writer) => writeDestinationsRequest(writer, this.#family, server)
    return this.#netlink.dump('list destinations', write, (message) => decodeDestination(message, server.family))
  }

  /** All connections, as the kernel prints them, piece by piece while other work goes on. False: it does not print them. */
  readConnections(each: (piece: string) => void): Promise<boolean> {
    return this.#connections.read(each)
  }

  info(): IpvsInfo {
    return this.#netlink.get('ask IPVS for its version', (to) => writeInfoRequest(to, this.#family), decodeInfo)
  }

  readTimeouts(): IpvsTimeouts {
    return this.#netlink.get(
      'read the timeouts of IPVS',
      (to) => writeTimeoutsRequest(to, this.#family),
      decodeTimeouts,
    )
  }

  setTimeouts(timeouts: IpvsTimeouts): void {
    this.#netlink.request('set the timeouts of IPVS', (writer) => writeTimeouts(writer, this.#family, timeouts))
  }

  close(): void {
    this.#netlink.close()
    this.#connections.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #applyChunk(ops: readonly IpvsOp[]): number {
    const { bytes, answers } = this.#netlink.batch((writer) => {
      for (const [i, op] of ops.entries()) writeOp(writer, this.#family, op, i === ops.length - 1)
    })
    const refused = answers.find(({ errno }) => errno !== 0)
    if (refused !== undefined) {
      throw new KernelError(describeOp(ops[refused.sequence]!), errnoName(refused.errno), refused.extack)
    }
    // Success is said, not assumed: the last message has asked for it.
    if (!answers.some(({ sequence }) => sequence === ops.length - 1)) {
      throw new KernelError('program IPVS', 'ENOMSG', 'the kernel did not answer')
    }
    return bytes
  }
}
