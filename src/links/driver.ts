// A link of ours and its addresses, over rtnetlink.

import { KernelError, UnsupportedError } from '../lib/errors.ts'
import { type Family, familyOf, formatIp, ipFamily, parseIp } from '../lib/ip.ts'
import type { LinkOp } from './types.ts'
import { decodeAddress, writeAddressesRequest, writeDeleteAddress, writeNewAddress } from './bytes/address.ts'
import { type Link, type NewLink, decodeLink, writeDeleteLink, writeLinkRequest, writeNewLink } from './bytes/link.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import type { Writer } from '../netlink/writer.ts'
import { errnoName } from '../system/libc.ts'
import { NetlinkConnection } from '../netlink/connection.ts'

/** Messages that are sent at once. */
const CHUNK = 500

/** What an operation may be refused with when it is done already. */
const DONE: Readonly<Record<LinkOp['op'], string>> = { addAddress: 'EEXIST', deleteAddress: 'EADDRNOTAVAIL' }

export class LinkDriver implements Disposable {
  readonly name: string
  readonly #netlink = new NetlinkConnection(NETLINK_ROUTE)
  #index: number | undefined
  /** The addresses that the link has, as far as this driver knows. */
  readonly #known = new Set<string>()

  constructor(name: string) {
    this.name = name
  }

  /** Creates the link, a dummy that is never up, unless it is there. */
  ensure(): void {
    const link = this.#find() ?? this.#create()
    this.#index = link.index
  }

  exists(): boolean {
    this.#index = this.#find()?.index
    return this.#index !== undefined
  }

  /** Whether the link should have an address, by what was read and done last. */
  expects(address: string): boolean {
    return this.#known.has(address)
  }

  /** The number of the link; undefined before ensure() or exists(). */
  get index(): number | undefined {
    return this.#index
  }

  /** Deletes the link with its addresses; harmless when there is none. */
  delete(): void {
    if (this.#find() === undefined) return
    this.#netlink.request(`delete link ${this.name}`, (writer) => writeDeleteLink(writer, this.name))
    this.#index = undefined
  }

  /** The addresses of a family: those of this link, which it is expected to have from now on, and those of all others. */
  read(family: Family): { readonly own: string[]; readonly others: string[] } {
    const { own, others } = this.#list(family)
    for (const address of this.#known) if (ipFamily(address) === family) this.#known.delete(address)
    for (const address of own) this.#known.add(address)
    return { own, others }
  }

  /** The addresses of all other links. What this link should have stays as it is known: a watcher asks, and compares. */
  readOthers(family: Family): string[] {
    return this.#list(family).others
  }

  /** Returns how many bytes were sent. What is done already is done. */
  apply(ops: readonly LinkOp[]): { readonly bytes: number } {
    let bytes = 0
    for (let start = 0; start < ops.length; start += CHUNK) bytes += this.#applyChunk(ops.slice(start, start + CHUNK))
    return { bytes }
  }

  close(): void {
    this.#netlink.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #applyChunk(ops: readonly LinkOp[]): number {
    if (this.#index === undefined) this.ensure()
    for (const op of ops) {
      if (op.op === 'addAddress') this.#known.add(op.address)
      else this.#known.delete(op.address)
    }
    const { bytes, answers } = this.#netlink.batch((writer) => {
      for (const [i, op] of ops.entries()) writeLinkOp(writer, this.#index!, op, i === ops.length - 1)
    })
    for (const { sequence, errno, extack } of answers) {
      const op = ops[sequence]!
      if (errno === 0 || errnoName(errno) === DONE[op.op]) continue
      const what = op.op === 'addAddress' ? 'add address' : 'delete address'
      throw new KernelError(`${what} ${op.address} (link ${this.name})`, errnoName(errno), extack)
    }
    return bytes
  }

  #list(family: Family): { readonly own: string[]; readonly others: string[] } {
    const write = (writer: Writer) => writeAddressesRequest(writer, family)
    const addresses = this.#netlink.dump('list addresses', write, decodeAddress)
    const own: string[] = []
    const others: string[] = []
    for (const { link, address } of addresses) (link === this.#index ? own : others).push(formatIp(address))
    return { own, others }
  }

  #find(): Link | undefined {
    try {
      return this.#netlink.get(`find link ${this.name}`, (writer) => writeLinkRequest(writer, this.name), decodeLink)
    } catch (error) {
      if (error instanceof KernelError && error.errno === 'ENODEV') return undefined
      throw error
    }
  }

  #create(): Link {
    const link: NewLink = { name: this.name, kind: { type: 'dummy' } }
    try {
      this.#netlink.request(`create link ${this.name}`, (writer) => writeNewLink(writer, link))
    } catch (error) {
      if (!(error instanceof KernelError) || error.errno === 'EEXIST') throw error
      const isMissing = error.errno === 'EOPNOTSUPP'
      if (isMissing) throw new UnsupportedError('dummy links', 'the kernel module dummy is missing', { cause: error })
      throw error
    }
    const created = this.#find()
    if (created === undefined) throw new KernelError(`create link ${this.name}`, 'ENODEV')
    return created
  }
}

function writeLinkOp(writer: Writer, link: number, op: LinkOp, acknowledge: boolean): void {
  const address = parseIp(op.address)
  if (address === undefined) throw new TypeError(`Cannot encode ${JSON.stringify(op.address)}: not an IP address`)
  const request = { link, address, prefix: familyOf(address) === 4 ? 32 : 128, acknowledge }
  if (op.op === 'addAddress') writeNewAddress(writer, request)
  else writeDeleteAddress(writer, request)
}
