// Decodes the fields that a file sets, by the table of fields. Defaults and rules come later.
//
// As in kube-proxy, an unknown or duplicate field is a warning, and a value of the wrong type an error.

import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml'
import type { Document, Node, Pair, YAMLMap } from 'yaml'
import { ConfigError, type FieldError } from '../lib/errors.ts'
import { nearest } from '../lib/nearest.ts'
import { decodeScalar } from './decode-scalar.ts'
import type { Field, FieldTable, LeafField } from './field-kinds.ts'
import { nameInMemory, string as stringField, uint32 as uint32Field } from './field-kinds.ts'
import { apiVersion, configurationFields, kind } from './fields.ts'

/** The values that the file sets, by their names in memory. */
export type PartialValues = Readonly<Record<string, unknown>>

export interface Decoded {
  /** null counts as not set. */
  readonly values: PartialValues
  /** The line of every path of the file. */
  readonly lines: ReadonlyMap<string, number>
  /** Unknown, duplicate and deprecated fields. */
  readonly warnings: readonly FieldError[]
}

/** Decodes YAML or JSON. Throws a ConfigError with all errors and warnings. */
export function decodeConfiguration(text: string): Decoded {
  const lineCounter = new LineCounter()
  const documents = parseAllDocuments(text, { uniqueKeys: false, prettyErrors: false, lineCounter })
  const document = 'empty' in documents ? undefined : documents[0]
  const decoder = new Decoder(document, lineCounter)
  const values = decoder.decode()
  if (decoder.errors.length > 0) throw new ConfigError([...decoder.errors, ...decoder.strict])
  if (documents.length > 1) decoder.strict.push({ path: '', message: 'only the first document of the file is used' })
  return { values, lines: decoder.lines, warnings: [...decoder.strict, ...decoder.legacy] }
}

class Decoder {
  readonly errors: FieldError[] = []
  readonly strict: FieldError[] = []
  readonly legacy: FieldError[] = []
  readonly lines = new Map<string, number>()
  readonly #document: Document.Parsed | undefined
  readonly #lineCounter: LineCounter

  constructor(document: Document.Parsed | undefined, lineCounter: LineCounter) {
    this.#document = document
    this.#lineCounter = lineCounter
  }

  decode(): PartialValues {
    for (const error of this.#document?.errors ?? []) {
      this.errors.push({ path: '', message: `not valid YAML: ${error.message}`, line: this.#lineAt(error.pos[0]) })
    }
    if (this.errors.length > 0) return {}
    const root = this.#document?.contents ?? null
    if (root !== null && !isMap(root)) {
      this.errors.push({ path: '', message: `must be a ${kind}, not ${describe(root)}`, line: this.#lineOf(root) })
      return {}
    }
    this.#checkType(root)
    return this.errors.length > 0 || root === null ? {} : this.#decodeObject(root, rootFields, '')
  }

  /** apiVersion and kind first: the other fields depend on them. */
  #checkType(root: YAMLMap | null): void {
    for (const [name, wanted] of Object.entries({ apiVersion, kind })) {
      const found = root?.get(name, true) as Node | undefined
      const value = found !== undefined && isScalar(found) ? found.value : undefined
      if (value === wanted) continue
      const line = this.#lineOf(found ?? root)
      this.errors.push(
        found === undefined
          ? { path: name, message: `Required value: must be ${wanted}` }
          : { path: name, value, message: `must be ${wanted}`, line },
      )
    }
  }

  #decodeObject(map: YAMLMap, table: FieldTable, path: string): Record<string, unknown> {
    const values: Record<string, unknown> = {}
    const seen = new Set<string>()
    for (const [name, node, at] of this.#entriesOf(map)) {
      const childPath = path === '' ? name : `${path}.${name}`
      if (seen.has(name)) this.strict.push({ path: childPath, message: 'field is given twice', line: at })
      seen.add(name)
      const field = Object.hasOwn(table, name) ? table[name] : undefined
      if (field === undefined) {
        const like = nearest(name, Object.keys(table))
        const hint = like === undefined ? '' : `; is ${like} meant?`
        this.strict.push({ path: childPath, message: `unknown field${hint}`, line: at })
        continue
      }
      const value = this.#decodeField(node, field, childPath)
      if (value === undefined) continue
      values[nameInMemory(name, field)] = value
      this.lines.set(childPath, at)
      if (field.kind !== 'object' && field.legacy !== undefined && value !== field.default) {
        this.legacy.push({ path: childPath, message: `deprecated field: ${field.legacy}`, line: at })
      }
    }
    return values
  }

  /** The value; undefined for null and after an error. */
  #decodeField(node: Node | null, field: Field, path: string): unknown {
    if (node === null || (isScalar(node) && node.value === null)) return undefined
    switch (field.kind) {
      case 'object':
        return isMap(node) ? this.#decodeObject(node, field.fields, path) : this.#reject(node, path, 'an object')
      case 'strings':
        return this.#decodeList(node, path, (item, at) => this.#decodeField(item, stringField(''), at) ?? '')
      case 'vmodule':
        return this.#decodeList(node, path, (item, at) =>
          isMap(item)
            ? { filePattern: '', verbosity: 0, ...this.#decodeObject(item, vmoduleFields, at) }
            : this.#reject(item, at, 'an object with filePattern and verbosity'),
        )
      case 'bools':
        return this.#decodeBools(node, path)
      default:
        return this.#decodeLeaf(node, field, path)
    }
  }

  #decodeLeaf(node: Node, field: LeafField, path: string): unknown {
    if (!isScalar(node)) return this.#reject(node, path, wantedOf(field))
    const result = decodeScalar(field.kind, node.value, node.type === 'PLAIN')
    if ('value' in result) return result.value
    this.errors.push({ path, value: node.value, message: result.message, line: this.#lineOf(node) })
    return undefined
  }

  #decodeList(node: Node, path: string, decodeItem: (item: Node, path: string) => unknown): unknown {
    if (!isSeq(node)) return this.#reject(node, path, 'a list')
    return node.items.map((item, i) => decodeItem(this.#resolve(item as Node), `${path}[${i}]`))
  }

  #decodeBools(node: Node, path: string): unknown {
    if (!isMap(node)) return this.#reject(node, path, 'a map of names to true or false')
    const values: [string, unknown][] = []
    for (const [name, item, at] of this.#entriesOf(node)) {
      const childPath = `${path}.${name}`
      if (values.some(([known]) => known === name)) {
        this.strict.push({ path: childPath, message: 'field is given twice', line: at })
      }
      values.push([name, this.#decodeField(item, boolField, childPath) ?? false])
      this.lines.set(childPath, at)
    }
    return Object.fromEntries(values)
  }

  /** Name, value and line of each entry, with aliases followed and `<<` merged in. */
  *#entriesOf(map: YAMLMap, within: readonly YAMLMap[] = []): Generator<[string, Node | null, number]> {
    for (const { key, value } of map.items as Pair<Node, Node | null>[]) {
      const name = isScalar(key) ? String(key.value) : String(key)
      const node = value === null ? null : this.#resolve(value)
      if (name !== '<<') yield [name, node, this.#lineOf(key) ?? 0]
      // A map that merges itself would never end.
      else if (isMap(node) && node !== map && !within.includes(node)) yield* this.#entriesOf(node, [...within, map])
    }
  }

  #resolve(node: Node): Node {
    return isAlias(node) ? (node.resolve(this.#document!) ?? node) : node
  }

  #reject(node: Node, path: string, wanted: string): undefined {
    const message = `must be ${wanted}, not ${describe(node)}`
    this.errors.push({ path, message, line: this.#lineOf(node) })
    return undefined
  }

  #lineOf(node: Node | null | undefined): number | undefined {
    return node?.range == null ? undefined : this.#lineAt(node.range[0])
  }

  #lineAt(offset: number): number {
    return this.#lineCounter.linePos(offset).line
  }
}

const boolField: Field = { kind: 'bool', help: '', default: false, zero: 'is-a-value' }
const rootFields: FieldTable = { apiVersion: stringField(''), kind: stringField(''), ...configurationFields }
const vmoduleFields: FieldTable = { filePattern: stringField(''), verbosity: uint32Field('') }

function describe(node: Node): string {
  if (isMap(node)) return 'an object'
  if (isSeq(node)) return 'a list'
  return isScalar(node) ? `the ${typeof node.value} ${JSON.stringify(node.value)}` : 'this'
}

function wantedOf(field: LeafField): string {
  const wanted: Partial<Record<LeafField['kind'], string>> = { string: 'text', bool: 'true or false' }
  return wanted[field.kind] ?? (field.kind.startsWith('duration') ? 'a duration' : 'a number')
}
