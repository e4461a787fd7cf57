// Neighbours: struct ndmsg and its attributes.

import type { Bytes } from '../../lib/ip.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'
import { bytes, nest, opt } from '../../netlink/attributes.ts'
import type { Message } from '../../netlink/message.ts'
import type { Writer } from '../../netlink/writer.ts'
import { NLM_F_DUMP, NLM_F_REQUEST } from '../../netlink/uapi/netlink.ts'
import * as uapi from './uapi/rtnetlink.ts'

/** family, padding (3), link (4), state (2), flags, type */
const NDMSG_LENGTH = 12

/** Asks for those of both IP families. */
export function writeNeighboursRequest(writer: Writer): void {
  writer.beginMessage(uapi.RTM_GETNEIGH, NLM_F_REQUEST | NLM_F_DUMP)
  for (let i = 0; i < NDMSG_LENGTH; i++) writer.u8(0)
  writer.endMessage()
}

const neighbourAttributes = nest({ address: opt(uapi.NDA_DST, bytes) })

export interface Neighbour {
  readonly link: number
  readonly address: Bytes
  /** NUD_* */
  readonly state: number
}

export function decodeNeighbour({ type, view, start, end }: Message): Neighbour | undefined {
  if (type !== uapi.RTM_NEWNEIGH || end - start < NDMSG_LENGTH) return undefined
  const { address } = neighbourAttributes.read(view, start + NDMSG_LENGTH, end) ?? {}
  if (address === undefined) return undefined
  return {
    link: view.getInt32(start + 4, LITTLE_ENDIAN),
    address,
    state: view.getUint16(start + 8, LITTLE_ENDIAN),
  }
}
