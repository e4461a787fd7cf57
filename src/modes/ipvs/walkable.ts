// What the ipvs mode has in the kernel, for explain: its table, the virtual servers, the addresses of its link.

import { walkableIpvs } from '../../ipvs/walkable.ts'
import { type Template, templateKey } from '../../ipvs/walk.ts'
import type { Walkable } from '../../lib/packet-walk.ts'
import { nftFamily } from '../../nftables/language.ts'
import { readTableAndDynamicElements } from '../../nftables/read-walkable.ts'
import type { WalkableOptions } from '../contract.ts'
import { TABLE } from './plan/names.ts'
import { readIpvsMachine } from './read-machine.ts'

export function readIpvs({ family, now }: WalkableOptions): Walkable | undefined {
  const read = readTableAndDynamicElements({ family: nftFamily(family), table: TABLE }, now())
  if (read === undefined) return undefined
  const { table, dynamicElements } = read
  const { servers, addresses, persistence } = readIpvsMachine(family)
  const templates = new Map(
    persistence.map(({ protocol, client, server, destination, secondsLeft }): [string, Template] => [
      templateKey({ family, protocol, ...server }, client),
      { destination: { ...destination, weight: 1 }, expiresMs: now() + secondsLeft * 1000 },
    ]),
  )
  return walkableIpvs({ table, servers, addresses: new Set(addresses.own), templates }, dynamicElements)
}
