// The canonical text of a table, in nft's language: what golden files hold and what a person compares.

import { asBytes } from '../lib/ip.ts'
import { describeRule } from './describe-rule.ts'
import { formatFields } from './fields.ts'
import type { Chain, Element, FieldType, NftSet, Table } from './types.ts'

/** The whole table: sets, then chains, each in order of their names; elements in order of their keys. */
export function formatTable(table: Table): string {
  const comment = table.comment === undefined ? [] : [`  comment ${JSON.stringify(table.comment)}`]
  const sets = sortedValues(table.sets).map((set) => formatSet(set, table.elements.get(set.name)))
  const chains = sortedValues(table.chains).map(formatChain)
  return `table ${table.family} ${table.name} {\n${[...comment, ...sets, ...chains].join('\n\n')}\n}\n`
}

export function formatSet(set: NftSet, elements: ReadonlyMap<string, Element> | undefined): string {
  const isMap = set.data !== undefined
  const lines = formatSetDefinition(set)
  if (elements !== undefined && elements.size > 0) lines.push(elementLines(set, elements))
  return block(`${isMap ? 'map' : 'set'} ${set.name}`, lines)
}

/** What a set is, without its elements. */
export function formatSetDefinition(set: NftSet): string[] {
  const lines = [typeLine(set)]
  const flags = [
    ...(set.interval ? ['interval'] : []),
    ...(set.dynamic ? ['dynamic'] : []),
    ...(set.dynamic && set.timeless !== true ? ['timeout'] : []),
  ]
  if (flags.length > 0) lines.push(`flags ${flags.join(',')}`)
  if (set.size !== undefined) lines.push(`size ${set.size}`)
  if (set.comment !== undefined) lines.push(`comment ${JSON.stringify(set.comment)}`)
  return lines
}

/** `10.0.0.1 . tcp . 80`, `10.0.0.0-10.0.0.255`, `10.0.0.1 . tcp . 80 : goto chain`. */
export function formatElement(set: NftSet, element: Element): string {
  const key = formatFields(set.key, element.key)
  const range = element.keyEnd === undefined ? key : formatRange(set, element.key, element.keyEnd)
  if (element.verdict !== undefined) return `${range} : ${element.verdict.code} ${element.verdict.chain}`
  if (element.ends !== undefined) return `${range} : ${element.ends}`
  if (element.data === undefined || set.data === undefined || set.data === 'verdict') return range
  return `${range} : ${formatFields(set.data, element.data)}`
}

export function formatChain(chain: Chain): string {
  const hook = chain.hook
  const lines =
    hook === undefined ? [] : [`type ${hook.type} hook ${hook.hook} priority ${hook.priority}; policy accept;`]
  for (const rule of chain.rules) {
    const text = describeRule(rule)
    lines.push(rule.comment === undefined ? text : `${text} comment ${JSON.stringify(rule.comment)}`)
  }
  return block(`chain ${chain.name}`, lines)
}

function formatRange(set: NftSet, from: string, to: string): string {
  const first = formatFields(set.key, asBytes(from)).split(' . ')
  const last = formatFields(set.key, asBytes(to)).split(' . ')
  return first.map((field, i) => (field === last[i] ? field : `${field}-${last[i]}`)).join(' . ')
}

function elementLines(set: NftSet, elements: ReadonlyMap<string, Element>): string {
  const sorted = Array.from(elements).sort(([a], [b]) => (a < b ? -1 : 1))
  return `elements = {\n${sorted.map(([, element]) => `      ${formatElement(set, element)},`).join('\n')}\n    }`
}

/** nft has no name for a plain number, but knows the type of what yields one. */
function typeLine({ key, data }: NftSet): string {
  const byExample = key.includes('integer')
  const text = (types: readonly FieldType[]) => types.map((type) => (byExample ? EXAMPLES[type] : type)).join(' . ')
  const value = data === undefined ? '' : ` : ${data === 'verdict' ? 'verdict' : text(data)}`
  return `${byExample ? 'typeof' : 'type'} ${text(key)}${value}`
}

const EXAMPLES: Readonly<Record<FieldType, string>> = {
  ipv4_addr: 'ip daddr',
  ipv6_addr: 'ip6 daddr',
  inet_proto: 'meta l4proto',
  inet_service: 'th dport',
  integer: 'numgen random mod 2',
}

function block(head: string, lines: readonly string[]): string {
  return `  ${head} {\n${lines.map((line) => `    ${line}\n`).join('')}  }`
}

function sortedValues<T>(map: ReadonlyMap<string, T>): T[] {
  return Array.from(map)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, value]) => value)
}
