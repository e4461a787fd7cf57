// Finding the families of generic netlink.

import { KernelError } from '../lib/errors.ts'
import { decodeFamilyId, writeFamilyRequest } from './generic-messages.ts'
import { Writer } from './writer.ts'
import type { NetlinkClient } from './client.ts'

/** The number of a family; undefined when the kernel has none of that name. It loads the module first, where it can. */
export function findGenericFamily(client: NetlinkClient, name: string): number | undefined {
  const writer = new Writer()
  writeFamilyRequest(writer, name)
  try {
    return client.get(`find netlink family ${name}`, writer.written(), decodeFamilyId)
  } catch (error) {
    if (error instanceof KernelError && error.errno === 'ENOENT') return undefined
    throw error
  }
}
