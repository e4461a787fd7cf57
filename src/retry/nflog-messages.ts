// Messages of nfnetlink_log: the kernel sends copies of packets to the program that is bound to a group.
// net/netfilter/nfnetlink_log.c

import { type Bytes, asBytes } from '../lib/ip.ts'
import { attr, be32, bytes, nest, opt, u8 } from '../netlink/attributes.ts'
import type { MessageWord } from '../netlink/debug.ts'
import type { Message } from '../netlink/message.ts'
import { beginNetfilterMessage, decodeNetfilterMessage, NFGENMSG_LENGTH } from '../netlink/nfnetlink.ts'
import { NLM_F_ACK } from '../netlink/uapi/netlink.ts'
import { NFNL_SUBSYS_ULOG } from '../netlink/uapi/nfnetlink.ts'
import type { Writer } from '../netlink/writer.ts'
import {
  NFULA_CFG_CMD,
  NFULA_CFG_MODE,
  NFULA_CFG_NLBUFSIZ,
  NFULA_CFG_QTHRESH,
  NFULA_CFG_TIMEOUT,
  NFULA_PAYLOAD,
  NFULNL_CFG_CMD_BIND,
  NFULNL_COPY_PACKET,
  NFULNL_MSG_CONFIG,
  NFULNL_MSG_PACKET,
} from './nflog-uapi.ts'

const configAttributes = nest({
  command: opt(NFULA_CFG_CMD, u8),
  /** struct nfulnl_msg_config_mode: how many bytes of a packet (4 bytes), what is copied (1), padding (1). */
  mode: opt(NFULA_CFG_MODE, bytes),
  bufferBytes: opt(NFULA_CFG_NLBUFSIZ, be32),
  /** Hundredths of a second. */
  timeout: opt(NFULA_CFG_TIMEOUT, be32),
  threshold: opt(NFULA_CFG_QTHRESH, be32),
})

const packetAttributes = nest({ payload: attr(NFULA_PAYLOAD, bytes) })

/** Binds the socket that sends it to a group. The kernel refuses with EBUSY when another program is. */
export function writeBind(writer: Writer, group: number): void {
  writeConfig(writer, group, { command: NFULNL_CFG_CMD_BIND })
}

/** So many bytes of each packet, each packet at once. The kernel's own buffer is small: one packet fits, or a few. */
export function writeDelivery(writer: Writer, group: number, snaplen: number): void {
  const mode = String.fromCharCode(0, 0, snaplen >> 8, snaplen & 0xff, NFULNL_COPY_PACKET, 0)
  writeConfig(writer, group, { mode: asBytes(mode), bufferBytes: BUFFER_BYTES, timeout: 1, threshold: 1 })
}

const BUFFER_BYTES = 4096

function writeConfig(writer: Writer, group: number, attributes: Parameters<typeof configAttributes.write>[1]): void {
  beginNetfilterMessage(writer, {
    subsystem: NFNL_SUBSYS_ULOG,
    message: NFULNL_MSG_CONFIG,
    flags: NLM_F_ACK,
    resource: group,
  })
  configAttributes.write(writer, attributes)
  writer.endMessage()
}

/** The first bytes of a packet, from its IP header on; undefined when the message is about something else. */
export function decodeLoggedPacket(message: Message): Bytes | undefined {
  if (message.type !== ((NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_PACKET)) return undefined
  return decodeNetfilterMessage(packetAttributes, message)?.payload
}

/** For KUBE_PROXY_NLDEBUG=1. */
export function nflogVocabulary(type: number): MessageWord | undefined {
  if (type >> 8 !== NFNL_SUBSYS_ULOG) return undefined
  const isPacket = (type & 0xff) === NFULNL_MSG_PACKET
  return {
    name: isPacket ? 'loggedPacket' : 'logConfig',
    attributes: isPacket ? packetAttributes : configAttributes,
    headerLength: NFGENMSG_LENGTH,
  }
}
