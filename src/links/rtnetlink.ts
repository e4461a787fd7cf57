// Links, addresses and routes of one network namespace, over rtnetlink: what the sandbox builds its network with.

import { formatCidr, formatIp, type Bytes, type Cidr, type Family } from '../lib/ip.ts'
import { KernelError, UnsupportedError } from '../lib/errors.ts'
import { writeNewAddress } from './bytes/address.ts'
import { decodeLink, writeDeleteLink, writeLinkRequest, writeLinkUp, writeNewLink, type NewLink } from './bytes/link.ts'
import { decodeRouteDestination, writeNewRoute, writeRoutesRequest } from './bytes/route.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { NetlinkSocket } from '../netlink/socket.ts'

/** The namespace is the one that the calling thread is in when this is created. */
export class Rtnetlink implements Disposable {
  readonly #socket = new NetlinkSocket(NETLINK_ROUTE)
  readonly #client = new NetlinkClient((request, mode) => this.#socket.exchange(request, mode))
  readonly #writer = new Writer()

  /** Creates a link and sets it up. Returns its index. */
  addLink(link: NewLink): number {
    const { type } = link.kind
    try {
      this.#request(`create ${type} link ${link.name}`, (writer) => writeNewLink(writer, link))
    } catch (error) {
      throw missingKind(error, type)
    }
    return this.#index(link.name)
  }

  /** Sets a link up. Returns its index. */
  setUp(name: string): number {
    const index = this.#index(name)
    this.#request(`set link ${name} up`, (writer) => writeLinkUp(writer, index))
    return index
  }

  /** Deletes a link; false when there is none of that name. */
  deleteLink(name: string): boolean {
    try {
      this.#request(`delete link ${name}`, (writer) => writeDeleteLink(writer, name))
      return true
    } catch (error) {
      if (error instanceof KernelError && error.errno === 'ENODEV') return false
      throw error
    }
  }

  addAddress(link: number, address: Bytes, prefix: number): void {
    const op = `add address ${formatIp(address)}/${prefix}`
    this.#request(op, (writer) => writeNewAddress(writer, { link, address, prefix, acknowledge: true }))
  }

  /** Sets the route to a range, over routers on the link or, without any, straight to the link. */
  setRoute(to: Cidr, link: number | 'unreachable', ...via: readonly Bytes[]): void {
    this.#request(`add route to ${formatCidr(to)}`, (writer) => writeNewRoute(writer, { to, link, via }))
  }

  /** The destinations of all routes, but for the default ones. */
  routeDestinations(family: Family): Cidr[] {
    this.#writer.reset()
    writeRoutesRequest(this.#writer, family)
    return this.#client.dump('list routes', this.#writer.written(), decodeRouteDestination)
  }

  close(): void {
    this.#socket.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #index(name: string): number {
    this.#writer.reset()
    writeLinkRequest(this.#writer, name)
    return this.#client.get(`find link ${name}`, this.#writer.written(), decodeLink).index
  }

  #request(op: string, write: (writer: Writer) => void): void {
    this.#writer.reset()
    write(this.#writer)
    this.#client.request(op, this.#writer.written())
  }
}

/** The kernel says EOPNOTSUPP for kinds of links that it has no module for. */
function missingKind(error: unknown, kind: NewLink['kind']['type']): unknown {
  if (!(error instanceof KernelError) || error.errno !== 'EOPNOTSUPP') return error
  const requires = `the kernel lacks the module ${kind} (Debian and Ubuntu: packages linux-image-* and linux-modules-extra-*)`
  return new UnsupportedError(`${kind} links`, requires, { cause: error })
}
