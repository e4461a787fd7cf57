// Messages to the parts of netfilter. Behind the header of netlink stands struct nfgenmsg: family, version, resource.

import type { Codec } from './attributes.ts'
import type { Message } from './message.ts'
import { NLM_F_REQUEST } from './uapi/netlink.ts'
import type { Writer } from './writer.ts'

export const NFGENMSG_LENGTH = 4

const NFNETLINK_V0 = 0

export interface NetfilterHeader {
  readonly subsystem: number
  readonly message: number
  /** Of enum NFPROTO_*; 0 for all, or for what has none. */
  readonly family?: number
  readonly flags?: number
  readonly resource?: number
}

/** Opens a message; close it with endMessage(). */
export function beginNetfilterMessage(
  writer: Writer,
  { subsystem, message, family = 0, flags = 0, resource = 0 }: NetfilterHeader,
): void {
  writer.beginMessage((subsystem << 8) | message, NLM_F_REQUEST | flags)
  writer.u8(family)
  writer.u8(NFNETLINK_V0)
  writer.be16(resource)
}

/** The attributes of a message that was received. */
export function decodeNetfilterMessage<T>(codec: Codec<T>, { view, start, end }: Message): T | undefined {
  return codec.read(view, start + NFGENMSG_LENGTH, end)
}
