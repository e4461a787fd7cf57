// Sets and maps of nft's JSON, named and anonymous.

import { type Bytes, asBytes } from '../lib/ip.ts'
import { FIELD_BYTES } from './fields.ts'
import { type Json, type JsonOperand, listOf, type OperandType, operandsOf, rangeOf, recordOf } from './json-operand.ts'
import { type Element, elementKey, type FieldType, type NftFamily, type NftSet } from './types.ts'
import type { DynamicElement } from './walk.ts'
import { makeSet } from './make-set.ts'

/** A list of elements that stands in a rule, or in a set. */
type Data = NftSet['data']

export class SetsBeingRead {
  readonly sets = new Map<string, NftSet>()
  readonly elements = new Map<string, ReadonlyMap<string, Element>>()
  readonly dynamicElements = new Map<string, Map<Bytes, DynamicElement>>()

  /** The name of the set that is meant: `@name`, or elements that stand in the rule. Undefined when it cannot be read. */
  named(json: Json, operands: readonly JsonOperand[], data: Data): string | undefined {
    if (typeof json === 'string' && json.startsWith('@')) return json.slice(1)
    const list = recordOf(json)['set']
    return Array.isArray(list) ? anonymousSet(this, list, operands, data) : undefined
  }

  add(json: Json, kind: 'set' | 'map', family: NftFamily): void {
    const { name, type, map, flags, elem, timeout, size, comment } = recordOf(json)
    const key = fieldTypes(type, family)
    const data: Data = kind === 'set' ? undefined : map === 'verdict' ? 'verdict' : fieldTypes(map, family)
    const words = listOf(flags)
    const set: NftSet = {
      name: String(name),
      key: key ?? [],
      data,
      interval: words.includes('interval'),
      dynamic: words.includes('dynamic') || words.includes('timeout'),
      timeoutMs: typeof timeout === 'number' ? timeout * 1000 : undefined,
      size: typeof size === 'number' ? size : undefined,
      comment: typeof comment === 'string' ? comment : undefined,
    }
    this.sets.set(set.name, set)
    this.addElements(set, listOf(elem))
  }

  addElements(set: NftSet, list: readonly Json[]): void {
    const elements = new Map<string, Element>()
    const dynamic = new Map<Bytes, DynamicElement>()
    for (const json of list) {
      const read = readElement(set, json)
      if (read === undefined) continue
      const { element, expires } = read
      elements.set(elementKey(element), element)
      if (set.dynamic)
        dynamic.set(element.key, {
          data: element.data ?? asBytes(''),
          expiresMs: (expires ?? Infinity) * 1000,
        })
    }
    if (set.dynamic) this.dynamicElements.set(set.name, dynamic)
    else if (elements.size > 0) this.elements.set(set.name, elements)
  }
}

export function anonymousSet(
  sets: SetsBeingRead,
  list: readonly Json[],
  operands: readonly JsonOperand[],
  data?: Data,
): string | undefined {
  const key = operands.map(({ type }) => type)
  if (!key.every(isFieldType)) return undefined
  const name = `__${data === undefined ? 'set' : 'map'}${sets.sets.size}`
  const interval = JSON.stringify(list).includes('"prefix"') || JSON.stringify(list).includes('"range"')
  const set = makeSet(name, key, { data, interval })
  sets.sets.set(name, set)
  sets.addElements(set, list)
  return name
}

function readElement(set: NftSet, json: Json): { element: Element; expires: number | undefined } | undefined {
  const [keyJson, dataJson] = set.data !== undefined && Array.isArray(json) ? json : [json, undefined]
  const wrapped = recordOf(recordOf(keyJson)['elem'])
  const expires = wrapped['expires']
  const key = readFields(set.key, wrapped['val'] ?? keyJson)
  if (key === undefined) return undefined
  const element: Element = {
    key: key[0],
    ...(set.interval ? { keyEnd: key[1] } : {}),
    ...readData(set, dataJson),
  }
  return { element, expires: typeof expires === 'number' ? expires : undefined }
}

function readData({ data }: NftSet, json: Json): Partial<Element> {
  if (data === undefined) return {}
  if (data !== 'verdict') {
    const read = readFields(data, json)
    return read === undefined ? {} : { data: read[0] }
  }
  const [code] = typeof json === 'string' ? [json] : Object.keys(recordOf(json))
  if (code === 'jump' || code === 'goto') {
    return { verdict: { code, chain: String(recordOf(recordOf(json)[code])['target']) } }
  }
  return code === 'accept' || code === 'drop' || code === 'return' ? { ends: code } : {}
}

function readFields(types: readonly FieldType[], json: Json): readonly [Bytes, Bytes] | undefined {
  const concat = recordOf(json)['concat']
  const parts = Array.isArray(concat) ? concat : [json]
  if (parts.length !== types.length || types.length === 0) return undefined
  let [from, to] = ['', '']
  for (const [i, type] of types.entries()) {
    const range = rangeOf(type, parts[i])
    if (range === undefined) return undefined
    from += range[0].padEnd(FIELD_BYTES[type], '\0')
    to += range[1].padEnd(FIELD_BYTES[type], '\0')
  }
  return [asBytes(from), asBytes(to)]
}

const FIELDS: readonly string[] = ['ipv4_addr', 'ipv6_addr', 'inet_proto', 'inet_service', 'integer']

function isFieldType(type: OperandType): type is FieldType {
  return FIELDS.includes(type)
}

/** `ipv4_addr`, a list of those, or an example: `{ typeof: { payload: ... } }`. Undefined when one is not known. */
function fieldTypes(json: Json, family: NftFamily): readonly FieldType[] | undefined {
  const example = recordOf(json)['typeof']
  if (example !== undefined) {
    const types = operandsOf(example, family)?.map(({ type }) => type)
    return types?.every(isFieldType) === true ? types : undefined
  }
  const names = Array.isArray(json) ? json.map(String) : [String(json)]
  return names.every((name) => FIELDS.includes(name)) ? (names as FieldType[]) : undefined
}
