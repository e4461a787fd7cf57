// Finding the families of generic netlink.

import { KernelError } from '../lib/errors.ts'
import { decodeFamilyId, writeFamilyRequest } from './generic-messages.ts'
import type { NetlinkConnection } from './connection.ts'

/** The number of a family; undefined when the kernel has none of that name. It loads the module first, where it can. */
export function findGenericFamily(netlink: NetlinkConnection, name: string): number | undefined {
  try {
    return netlink.get(`find netlink family ${name}`, (writer) => writeFamilyRequest(writer, name), decodeFamilyId)
  } catch (error) {
    if (error instanceof KernelError && error.errno === 'ENOENT') return undefined
    throw error
  }
}
