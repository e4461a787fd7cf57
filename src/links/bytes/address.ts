// Addresses of links: struct ifaddrmsg and its attributes.

import { familyOf } from '../../lib/ip.ts'
import type { Bytes } from '../../lib/ip.ts'
import { IFA_ADDRESS, IFA_F_NODAD, IFA_LOCAL, RTM_NEWADDR } from './uapi/if_link.ts'
import { NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST } from '../../netlink/uapi/netlink.ts'
import { ADDRESS_FAMILY } from './address-family.ts'
import type { Writer } from '../../netlink/writer.ts'

export interface NewAddress {
  /** The index of the link. */
  readonly link: number
  readonly address: Bytes
  /** How many bits of it all neighbours share. */
  readonly prefix: number
}

/** Adds an address that is usable at once: nobody is asked whether another host has it. */
export function writeNewAddress(writer: Writer, { link, address, prefix }: NewAddress): void {
  writer.beginMessage(RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)
  const family = familyOf(address)
  writer.u8(ADDRESS_FAMILY[family])
  writer.u8(prefix)
  writer.u8(family === 6 ? IFA_F_NODAD : 0)
  writer.u8(0)
  writer.ne32(link)
  for (const type of [IFA_LOCAL, IFA_ADDRESS]) {
    writer.begin(type)
    writer.raw(address)
    writer.end()
  }
  writer.endMessage()
}
