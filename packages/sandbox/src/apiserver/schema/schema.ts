// The types of the API as data: what fields a kind has, how they are written, and how patches merge them. Everything that
// needs to know a kind's shape reads this: decoding, patches, protobuf, the OpenAPI documents.

import { messages as text } from './messages.ts'

export const scalarNames = [
  'string',
  'bool',
  'int32',
  'int64',
  'float64',
  'bytes',
  'Time',
  'MicroTime',
  'Quantity',
  'IntOrString',
  'Raw',
  'Fields',
] as const

export type Scalar = (typeof scalarNames)[number]

export type FieldType =
  | { readonly kind: 'scalar'; readonly scalar: Scalar }
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'list'; readonly of: FieldType }
  | { readonly kind: 'map'; readonly of: FieldType }

export interface Field {
  readonly name: string
  /** Its number in protobuf. */
  readonly number: number
  readonly type: FieldType
  /** Absent differs from zero. */
  readonly optional: boolean
  /** Written even when it is empty. */
  readonly always: boolean
  /** Its own fields stand in the parent's JSON. */
  readonly inline: boolean
  /** How a strategic merge patch treats it; undefined: lists are replaced, maps and messages are merged. */
  readonly patch: PatchRule | undefined
}

export interface PatchRule {
  readonly strategy: 'merge' | 'replace'
  /** The field that identifies an element of a list; undefined for a list of scalars. */
  readonly mergeKey: string | undefined
  readonly retainKeys: boolean
}

export interface Message {
  /** `core.ServiceSpec` */
  readonly name: string
  /** In the order in which the API writes them. */
  readonly fields: readonly Field[]
  /** By the name that they have in this message's JSON, those of inline messages included. */
  readonly byName: ReadonlyMap<string, Field>
  readonly byNumber: ReadonlyMap<number, Field>
}

/** The message of that name (`core.Pod`); throws when there is none. */
export function messageNamed(name: string): Message {
  const message = schema().get(name)
  if (message === undefined) throw new Error(`Cannot find the message ${name} in the API schema`)
  return message
}

export function allMessages(): Iterable<Message> {
  return schema().values()
}

let parsed: ReadonlyMap<string, Message> | undefined

/** Parsed on first use: commands that start no API server do not pay for it. */
function schema(): ReadonlyMap<string, Message> {
  parsed ??= parseSchema(text)
  return parsed
}

interface Draft extends Message {
  readonly fields: Field[]
  readonly byName: Map<string, Field>
  readonly byNumber: Map<number, Field>
}

/** Reads the notation explained in messages.ts. */
function parseSchema(source: string): ReadonlyMap<string, Message> {
  const texts = new Map(
    [...source.matchAll(/^(\S+): (.*(?:\n  .*)*)$/gm)].map(([, name = '', fields = '']) => [name, fields]),
  )
  const drafts = new Map<string, Draft>(
    [...texts.keys()].map((name) => [name, { name, fields: [], byName: new Map(), byNumber: new Map() }]),
  )
  for (const draft of drafts.values()) {
    let number = 0
    for (const fieldText of texts.get(draft.name)!.split(/,\s+/)) {
      const [, explicit, description = ''] = /^(?:(\d+) )?(.*)$/.exec(fieldText)!
      number = explicit === undefined ? number + 1 : Number(explicit)
      const field = parseField(number, description, drafts)
      draft.fields.push(field)
      draft.byNumber.set(number, field)
    }
  }
  for (const draft of drafts.values()) collectNames(draft, draft.byName)
  return drafts
}

function collectNames(message: Pick<Message, 'fields'>, into: Map<string, Field>): void {
  for (const field of message.fields) {
    if (field.inline && field.type.kind === 'message') collectNames(field.type.message, into)
    else into.set(field.name, field)
  }
}

function parseField(number: number, text: string, drafts: ReadonlyMap<string, Message>): Field {
  const [name = '', type = '', ...notes] = text.split(' ')
  const optional = type.startsWith('*')
  const parsedType = parseType(optional ? type.slice(1) : type, drafts)
  const zeroIsWritten =
    parsedType.kind === 'message' || (parsedType.kind === 'scalar' && structs.has(parsedType.scalar))
  return {
    name,
    number,
    type: parsedType,
    optional,
    always: !optional && (notes.includes('always') || (zeroIsWritten && !notes.includes('omitzero'))),
    inline: notes.includes('inline'),
    patch: parsePatchRule(notes),
  }
}

/** Scalars that are structs in Go: `omitempty` does not leave them out. */
const structs: ReadonlySet<Scalar> = new Set<Scalar>(['Time', 'MicroTime', 'Quantity', 'IntOrString', 'Raw'])

function parseType(type: string, drafts: ReadonlyMap<string, Message>): FieldType {
  if (type.startsWith('[]')) return { kind: 'list', of: parseType(type.slice(2), drafts) }
  if (type.startsWith('{}')) return { kind: 'map', of: parseType(type.slice(2), drafts) }
  const scalar = scalarNames.find((name) => name === type)
  if (scalar !== undefined) return { kind: 'scalar', scalar }
  const message = drafts.get(type)
  if (message === undefined) throw new Error(`Cannot parse the API schema: ${type} is no scalar and no message`)
  return { kind: 'message', message }
}

function parsePatchRule(notes: readonly string[]): PatchRule | undefined {
  const retainKeys = notes.includes('retainKeys')
  const merge = notes.find((note) => note === 'merge' || note.startsWith('merge='))
  if (merge !== undefined) return { strategy: 'merge', mergeKey: merge.split('=')[1], retainKeys }
  if (notes.includes('replace')) return { strategy: 'replace', mergeKey: undefined, retainKeys }
  return retainKeys ? { strategy: 'merge', mergeKey: undefined, retainKeys } : undefined
}
