// What the ipvs mode has in the kernel, for explain: its table, the virtual servers, the addresses of its link.

import { walkableIpvs } from '../../ipvs/walkable.ts'
import type { Walkable } from '../../lib/packet-walk.ts'
import { nftFamily } from '../../nftables/language.ts'
import { readTableAndLearned } from '../../nftables/read-walkable.ts'
import type { WalkableOptions } from '../contract.ts'
import { TABLE } from './plan/names.ts'
import { readIpvsMachine } from './read-machine.ts'

export function readIpvs({ family, now }: WalkableOptions): Walkable | undefined {
  const read = readTableAndLearned({ family: nftFamily(family), table: TABLE }, now())
  if (read === undefined) return undefined
  const { table, learned } = read
  const { servers, addresses } = readIpvsMachine(family)
  return walkableIpvs({ table, servers, addresses: new Set(addresses.own), templates: new Map() }, learned)
}
