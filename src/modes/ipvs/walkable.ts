// What the ipvs mode has in the kernel, for explain: its table, the virtual servers, the addresses of its link.

import { IpvsDriver } from '../../ipvs/driver.ts'
import { walkableIpvs } from '../../ipvs/walkable.ts'
import { UnsupportedError } from '../../lib/errors.ts'
import type { Family } from '../../lib/ip.ts'
import type { Walkable } from '../../lib/packet-walk.ts'
import { LinkDriver } from '../../links/driver.ts'
import { nftFamily } from '../../nftables/language.ts'
import { readTableAndLearned } from '../../nftables/read-walkable.ts'
import type { WalkableOptions } from '../contract.ts'
import { LINK, TABLE } from './plan/names.ts'

export function readIpvs({ family, now }: WalkableOptions): Walkable | undefined {
  const read = readTableAndLearned({ family: nftFamily(family), table: TABLE }, now())
  if (read === undefined) return undefined
  const { table, learned } = read
  const addresses = readAddresses(family)
  return walkableIpvs({ table, servers: readServers(family), addresses, templates: new Map() }, learned)
}

function readServers(family: Family): ReturnType<IpvsDriver['read']> {
  let driver: IpvsDriver
  try {
    driver = new IpvsDriver()
  } catch (error) {
    if (error instanceof UnsupportedError) return []
    throw error
  }
  try {
    return driver.read(family)
  } finally {
    driver.close()
  }
}

function readAddresses(family: Family): ReadonlySet<string> {
  const link = new LinkDriver(LINK)
  try {
    return new Set(link.exists() ? link.read(family).own : [])
  } finally {
    link.close()
  }
}
