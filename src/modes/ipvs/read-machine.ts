// What a kernel has of the ipvs mode, for those parts of the program that look and change nothing.

import { IpvsDriver, openIpvsConnections } from '../../ipvs/driver.ts'
import { parseTemplates, type PersistenceEntry } from '../../ipvs/templates.ts'
import type { ServerState } from '../../ipvs/types.ts'
import type { Family } from '../../lib/ip.ts'
import { LinkDriver } from '../../links/driver.ts'
import { LINK } from './plan/names.ts'

export interface IpvsMachine {
  readonly servers: readonly ServerState[]
  /** What persistence remembers, of both families. */
  readonly persistence: readonly PersistenceEntry[]
  readonly hasLink: boolean
  /** Those of the link, and those of all others. */
  readonly addresses: { readonly own: readonly string[]; readonly others: readonly string[] }
}

export function readIpvsMachine(family: Family): IpvsMachine {
  using link = new LinkDriver(LINK)
  const hasLink = link.exists()
  return { servers: readServers(family), persistence: readPersistence(), hasLink, addresses: link.read(family) }
}

function readPersistence(): readonly PersistenceEntry[] {
  const file = openIpvsConnections()
  const pieces: string[] = []
  file.readNow((piece) => pieces.push(piece))
  file.close()
  return parseTemplates(pieces.join(''))
}

/** None where the kernel has no IPVS. */
function readServers(family: Family): readonly ServerState[] {
  using driver = IpvsDriver.tryOpen()
  return driver?.read(family) ?? []
}
