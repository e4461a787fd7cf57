// Generic netlink: one netlink protocol for many parts of the kernel, each of which is a family with a number that is given
// when it is loaded. The header is struct genlmsghdr of linux/genetlink.h.

import { attr, cstring, nest, opt, type Codec } from './attributes.ts'
import type { Message } from './message.ts'
import { CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME, CTRL_CMD_GETFAMILY, GENL_ID_CTRL } from './uapi/genetlink.ts'
import { NLM_F_REQUEST } from './uapi/netlink.ts'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import type { Writer } from './writer.ts'

const GENL_HEADER = 4

export interface GenericCommand {
  /** The family's number. */
  readonly family: number
  readonly command: number
  readonly version: number
  readonly flags?: number
}

/** Opens a message; what follows are the attributes. */
export function beginGenericMessage(writer: Writer, { family, command, version, flags = 0 }: GenericCommand): void {
  writer.beginMessage(family, NLM_F_REQUEST | flags)
  writer.u8(command)
  writer.u8(version)
  writer.ne16(0)
}

/** The attributes of a message that was received. */
export function decodeGenericMessage<T>(codec: Codec<T>, { view, start, end }: Message): T | undefined {
  return codec.read(view, start + GENL_HEADER, end)
}

export const ne16: Codec<number> = {
  write: (writer, value) => writer.ne16(value),
  read: (view, start, end) => (end - start >= 2 ? view.getUint16(start, LITTLE_ENDIAN) : undefined),
}

const familyAttributes = nest({ name: attr(CTRL_ATTR_FAMILY_NAME, cstring), id: opt(CTRL_ATTR_FAMILY_ID, ne16) })

/** Asks for the number of a family. The kernel answers ENOENT when it has none of that name and cannot load one. */
export function writeFamilyRequest(writer: Writer, name: string): void {
  beginGenericMessage(writer, { family: GENL_ID_CTRL, command: CTRL_CMD_GETFAMILY, version: 1 })
  familyAttributes.write(writer, { name })
  writer.endMessage()
}

export function decodeFamilyId(message: Message): number | undefined {
  return decodeGenericMessage(familyAttributes, message)?.id
}
