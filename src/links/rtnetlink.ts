// Links, addresses and routes of one network namespace, over rtnetlink: what the sandbox builds its network with.

import { formatCidr, formatIp, type Bytes, type Cidr, type Family } from '../lib/ip.ts'
import { KernelError, UnsupportedError } from '../lib/errors.ts'
import { writeNewAddress } from './bytes/address.ts'
import { decodeLink, writeDeleteLink, writeLinkRequest, writeLinkUp, writeNewLink, type NewLink } from './bytes/link.ts'
import { decodeRouteDestination, writeNewRoute, writeRoutesRequest } from './bytes/route.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import { NetlinkConnection } from '../netlink/connection.ts'

/** The namespace is the one that the calling thread is in when this is created. */
export class Rtnetlink implements Disposable {
  readonly #netlink = new NetlinkConnection(NETLINK_ROUTE)

  /** Creates a link and sets it up. Returns its index. */
  addLink(link: NewLink): number {
    const { type } = link.kind
    try {
      this.#netlink.request(`create ${type} link ${link.name}`, (writer) => writeNewLink(writer, link))
    } catch (error) {
      throw missingKind(error, type)
    }
    return this.#index(link.name)
  }

  /** Sets a link up. Returns its index. */
  setUp(name: string): number {
    const index = this.#index(name)
    this.#netlink.request(`set link ${name} up`, (writer) => writeLinkUp(writer, index))
    return index
  }

  /** Deletes a link; false when there is none of that name. */
  deleteLink(name: string): boolean {
    try {
      this.#netlink.request(`delete link ${name}`, (writer) => writeDeleteLink(writer, name))
      return true
    } catch (error) {
      if (error instanceof KernelError && error.errno === 'ENODEV') return false
      throw error
    }
  }

  addAddress(link: number, address: Bytes, prefix: number): void {
    const op = `add address ${formatIp(address)}/${prefix}`
    this.#netlink.request(op, (writer) => writeNewAddress(writer, { link, address, prefix, acknowledge: true }))
  }

  /** Sets the route to a range, over routers on the link or, without any, straight to the link. */
  setRoute(to: Cidr, link: number | 'unreachable', ...via: readonly Bytes[]): void {
    this.#netlink.request(`add route to ${formatCidr(to)}`, (writer) => writeNewRoute(writer, { to, link, via }))
  }

  /** The destinations of all routes, but for the default ones. */
  routeDestinations(family: Family): Cidr[] {
    return this.#netlink.dump('list routes', (writer) => writeRoutesRequest(writer, family), decodeRouteDestination)
  }

  close(): void {
    this.#netlink.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #index(name: string): number {
    return this.#netlink.get(`find link ${name}`, (writer) => writeLinkRequest(writer, name), decodeLink).index
  }
}

/** The kernel says EOPNOTSUPP for kinds of links that it has no module for. */
function missingKind(error: unknown, kind: NewLink['kind']['type']): unknown {
  if (!(error instanceof KernelError) || error.errno !== 'EOPNOTSUPP') return error
  const requires = `the kernel lacks the module ${kind} (Debian and Ubuntu: packages linux-image-* and linux-modules-extra-*)`
  return new UnsupportedError(`${kind} links`, requires, { cause: error })
}
