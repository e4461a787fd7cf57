// The commands of the generic netlink family IPVS.

import type { Family } from '../../lib/ip.ts'
import type { DestinationState, IpvsOp, ServerId, VirtualServer } from '../types.ts'
import { attr, type Infer, ne32, nest, opt } from '../../netlink/attributes.ts'
import { beginGenericMessage, decodeGenericMessage } from '../../netlink/generic-messages.ts'
import type { Message } from '../../netlink/message.ts'
import * as uapi from './uapi.ts'
import { NLM_F_ACK, NLM_F_DUMP } from '../../netlink/uapi/netlink.ts'
import type { Writer } from '../../netlink/writer.ts'
import {
  attributesOfDestination,
  destinationAttributes,
  destinationFromAttributes,
  destinationIdAttributes,
} from './destination.ts'
import { attributesOfServer, serverAttributes, serverFromAttributes, serverIdAttributes } from './server.ts'

const aboutServer = nest({ server: attr(uapi.IPVS_CMD_ATTR_SERVICE, serverAttributes) })
const aboutDestination = nest({
  server: attr(uapi.IPVS_CMD_ATTR_SERVICE, serverAttributes),
  destination: attr(uapi.IPVS_CMD_ATTR_DEST, destinationAttributes),
})
const destinationOnly = nest({ destination: attr(uapi.IPVS_CMD_ATTR_DEST, destinationAttributes) })

const timeoutAttributes = nest({
  tcpSeconds: opt(uapi.IPVS_CMD_ATTR_TIMEOUT_TCP, ne32),
  tcpFinSeconds: opt(uapi.IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, ne32),
  udpSeconds: opt(uapi.IPVS_CMD_ATTR_TIMEOUT_UDP, ne32),
})

/** How long the kernel remembers idle connections. Absent, or 0: as it is. */
export type IpvsTimeouts = Infer<typeof timeoutAttributes>

const infoAttributes = nest({
  version: attr(uapi.IPVS_INFO_ATTR_VERSION, ne32),
  tableSize: attr(uapi.IPVS_INFO_ATTR_CONN_TAB_SIZE, ne32),
})

export type IpvsInfo = Infer<typeof infoAttributes>

/**
 * Writes an operation as one message. Only one that asks for it is acknowledged; a refusal is answered in any case.
 * `family` is the number of the generic netlink family.
 */
export function writeOp(writer: Writer, family: number, op: IpvsOp, acknowledge: boolean): void {
  beginGenericMessage(writer, {
    family,
    command: COMMANDS[op.op],
    version: uapi.IPVS_GENL_VERSION,
    flags: acknowledge ? NLM_F_ACK : 0,
  })
  switch (op.op) {
    case 'addServer':
    case 'setServer':
      aboutServer.write(writer, { server: attributesOfServer(op.server) })
      break
    case 'deleteServer':
      aboutServer.write(writer, { server: serverIdAttributes(op.server) })
      break
    case 'addDestination':
    case 'setDestination':
      aboutDestination.write(writer, {
        server: serverIdAttributes(op.server),
        destination: attributesOfDestination(op.destination, op.server.family),
      })
      break
    case 'deleteDestination':
      aboutDestination.write(writer, {
        server: serverIdAttributes(op.server),
        destination: destinationIdAttributes(op.destination, op.server.family),
      })
      break
  }
  writer.endMessage()
}

const COMMANDS: Readonly<Record<IpvsOp['op'], number>> = {
  addServer: uapi.IPVS_CMD_NEW_SERVICE,
  setServer: uapi.IPVS_CMD_SET_SERVICE,
  deleteServer: uapi.IPVS_CMD_DEL_SERVICE,
  addDestination: uapi.IPVS_CMD_NEW_DEST,
  setDestination: uapi.IPVS_CMD_SET_DEST,
  deleteDestination: uapi.IPVS_CMD_DEL_DEST,
}

export function writeServersRequest(writer: Writer, family: number): void {
  begin(writer, family, uapi.IPVS_CMD_GET_SERVICE, NLM_F_DUMP)
  writer.endMessage()
}

export function decodeServer(message: Message): VirtualServer | undefined {
  const attributes = decodeGenericMessage(aboutServer, message)?.server
  return attributes === undefined ? undefined : serverFromAttributes(attributes)
}

export function writeDestinationsRequest(writer: Writer, family: number, server: ServerId): void {
  begin(writer, family, uapi.IPVS_CMD_GET_DEST, NLM_F_DUMP)
  aboutServer.write(writer, { server: serverIdAttributes(server) })
  writer.endMessage()
}

export function decodeDestination(message: Message, family: Family): DestinationState | undefined {
  const attributes = decodeGenericMessage(destinationOnly, message)?.destination
  return attributes === undefined ? undefined : destinationFromAttributes(attributes, family)
}

export function writeTimeouts(writer: Writer, family: number, timeouts: IpvsTimeouts): void {
  begin(writer, family, uapi.IPVS_CMD_SET_CONFIG, NLM_F_ACK)
  timeoutAttributes.write(writer, timeouts)
  writer.endMessage()
}

export function writeTimeoutsRequest(writer: Writer, family: number): void {
  begin(writer, family, uapi.IPVS_CMD_GET_CONFIG)
  writer.endMessage()
}

export function decodeTimeouts(message: Message): IpvsTimeouts | undefined {
  return decodeGenericMessage(timeoutAttributes, message)
}

export function writeInfoRequest(writer: Writer, family: number): void {
  begin(writer, family, uapi.IPVS_CMD_GET_INFO)
  writer.endMessage()
}

export function decodeInfo(message: Message): IpvsInfo | undefined {
  return decodeGenericMessage(infoAttributes, message)
}

function begin(writer: Writer, family: number, command: number, flags = 0): void {
  beginGenericMessage(writer, { family, command, version: uapi.IPVS_GENL_VERSION, flags })
}
