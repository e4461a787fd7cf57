import { check } from '../fields/check.ts'
import { configKeyProblem } from '../fields/names.ts'
import { forbiddenField, invalidValue, tooLong } from '../fields/problem.ts'
import { sameJson } from '../json.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { defineResource } from './resource.ts'
import type { ConfigMap } from '../objects/small.ts'
import type { FieldProblem } from '../fields/problem.ts'

const sizeLimit = 1024 * 1024

export const configMaps = defineResource<ConfigMap>({
  kind: 'ConfigMap',
  shortNames: ['cm'],
  createOnUpdate: true,
  columns: [
    nameColumn,
    {
      name: 'Data',
      cell: ({ data, binaryData }) => String(Object.keys(data ?? {}).length + Object.keys(binaryData ?? {}).length),
    },
    ageColumn,
  ],
  validate,
  validateUpdate: (next, current) => [...validateImmutable(next, current), ...validate(next)],
})

function validate({ data = {}, binaryData = {} }: ConfigMap): FieldProblem[] {
  const size = [...Object.values(data), ...Object.values(binaryData)].reduce((sum, value) => sum + value.length, 0)
  return [
    ...Object.keys(data).flatMap((key) => check(`data[${key}]`, key, configKeyProblem)),
    ...Object.keys(binaryData).flatMap((key) => check(`binaryData[${key}]`, key, configKeyProblem)),
    ...Object.keys(binaryData)
      .filter((key) => key in data)
      .map((key) => invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData')),
    ...(size > sizeLimit ? [tooLong('', sizeLimit)] : []),
  ]
}

/** What was declared immutable stays so: config maps and secrets alike. */
export function validateImmutable<T extends Pick<ConfigMap, 'immutable' | 'data' | 'binaryData'>>(
  next: T,
  current: T,
): FieldProblem[] {
  if (current.immutable !== true) return []
  const fields = ['data', 'binaryData'] as const
  return [
    ...(next.immutable === true ? [] : [forbiddenField('immutable', 'field is immutable when `immutable` is set')]),
    ...fields
      .filter((field) => !sameJson(next[field], current[field]))
      .map((field) => forbiddenField(field, 'field is immutable when `immutable` is set')),
  ]
}
