// Field selectors: `metadata.name=web,status.phase!=Running`. Which fields can be selected by is the resource's to say.

import { badRequest } from '../api-error.ts'

export interface FieldRequirement {
  readonly field: string
  readonly equals: boolean
  readonly value: string
}

export function parseFieldSelector(text: string): FieldRequirement[] {
  return text
    .split(/(?<!\\),/)
    .filter((part) => part !== '')
    .map(parseRequirement)
}

function parseRequirement(part: string): FieldRequirement {
  const match = /^((?:\\.|[^=!\\])+)(!=|==|=)((?:\\.|[^=\\])*)$/s.exec(part)
  if (match === null) throw badRequest(`invalid selector: '${part}'; can't understand '${part}'`)
  return { field: unescape(match[1]!), equals: match[2] !== '!=', value: unescape(match[3]!) }
}

function unescape(text: string): string {
  return text.replace(/\\([\\,=])/g, '$1')
}

interface FieldReader<T> {
  read(object: T): string
}

/** By the field's name. The readers count as methods, so that they can be kept in a table of all resources. */
export type FieldReaders<T> = Readonly<Record<string, FieldReader<T>['read']>>

/** A test for objects. Throws a 400 for a field that cannot be selected by. */
export function compileFieldSelector<T>(
  requirements: readonly FieldRequirement[],
  fields: FieldReaders<T>,
): (object: T) => boolean {
  const tests = requirements.map(({ field, equals, value }) => {
    const read = Object.hasOwn(fields, field) ? fields[field] : undefined
    if (read === undefined) throw badRequest(`field label not supported: ${field}`)
    return (object: T) => (read(object) === value) === equals
  })
  return (object) => tests.every((test) => test(object))
}
