// Finding the families of generic netlink.

import { KernelError } from '../lib/errors.ts'
import { readFamilyId, writeFamilyRequest } from '../wire/generic-netlink.ts'
import { Writer } from '../wire/writer.ts'
import type { NetlinkClient } from './netlink-client.ts'

/** The number of a family; undefined when the kernel has none of that name. It loads the module first, where it can. */
export function findGenericFamily(client: NetlinkClient, name: string): number | undefined {
  const writer = new Writer()
  writeFamilyRequest(writer, name)
  try {
    return client.get(`find netlink family ${name}`, writer.written(), readFamilyId)
  } catch (error) {
    if (error instanceof KernelError && error.errno === 'ENOENT') return undefined
    throw error
  }
}
