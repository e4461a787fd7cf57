// What `nft -j list ruleset` prints, as tables: also those of other programs, as far as a packet's way through them can be computed.

import { ruleFromJson } from './json-rule.ts'
import { type JsonRecord, listOf, recordOf } from './json-operand.ts'
import { SetsBeingRead } from './json-set.ts'
import type { Chain, Hook, NftFamily, Rule, Table } from './types.ts'
import type { DynamicElements } from './walkable.ts'

export interface ListedTable {
  /** The family as it is listed: `inet` for one that is read for ip and for ip6. */
  readonly listed: string
  readonly table: Table
  readonly dynamicElements: DynamicElements
}

/** The tables in order; one of family inet is there for ip and for ip6. Throws when the text is not such a listing. */
export function parseListing(text: string): ListedTable[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw new Error(`Cannot read the listing of nft: ${(error as Error).message}`, { cause: error })
  }
  const objects = listOf(recordOf(json)['nftables']).map(recordOf)
  if (objects.length === 0) throw new Error('Cannot read the listing of nft: it has no "nftables"')
  return objects.flatMap((object) => {
    const { family: listed, name, comment } = recordOf(object['table'])
    if (typeof name !== 'string') return []
    const families: readonly NftFamily[] =
      listed === 'inet' ? ['ip', 'ip6'] : listed === 'ip' || listed === 'ip6' ? [listed] : []
    return families.map((family) => readTable(objects, { listed, family, name, comment }))
  })
}

interface TableToRead {
  /** As it is listed: perhaps `inet`. */
  readonly listed: unknown
  readonly family: NftFamily
  readonly name: string
  readonly comment: unknown
}

function readTable(objects: readonly JsonRecord[], { listed, family, name, comment }: TableToRead): ListedTable {
  const isOurs = (json: JsonRecord) => json['family'] === listed && json['table'] === name
  const sets = new SetsBeingRead()
  for (const object of objects) {
    if (object['set'] !== undefined && isOurs(recordOf(object['set']))) sets.add(object['set'], 'set', family)
    if (object['map'] !== undefined && isOurs(recordOf(object['map']))) sets.add(object['map'], 'map', family)
  }
  const rules = new Map<string, Rule[]>()
  for (const object of objects) {
    const rule = recordOf(object['rule'])
    if (object['rule'] === undefined || !isOurs(rule)) continue
    const chain = String(rule['chain'])
    const list = rules.get(chain)
    const read = ruleFromJson(rule, family, sets)
    if (list === undefined) rules.set(chain, [read])
    else list.push(read)
  }
  const chains = new Map<string, Chain>()
  for (const object of objects) {
    const chain = recordOf(object['chain'])
    if (object['chain'] === undefined || !isOurs(chain)) continue
    const chainName = String(chain['name'])
    chains.set(chainName, {
      name: chainName,
      comment: undefined,
      hook: hookOf(chain),
      rules: rules.get(chainName) ?? [],
    })
  }
  const table: Table = {
    family,
    name,
    comment: typeof comment === 'string' ? comment : undefined,
    sets: sets.sets,
    chains,
    elements: sets.elements,
  }
  return { listed: String(listed), table, dynamicElements: sets.dynamicElements }
}

function hookOf({ type, hook, prio, policy }: JsonRecord): Hook | undefined {
  if (typeof hook !== 'string' || typeof type !== 'string') return undefined
  return {
    type: type as Hook['type'],
    hook: hook as Hook['hook'],
    priority: Number(prio),
    ...(policy === 'drop' ? { policy } : {}),
  }
}
