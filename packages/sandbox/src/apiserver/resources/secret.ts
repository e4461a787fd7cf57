import { Buffer } from 'node:buffer'
import { check, immutable } from '../fields/check.ts'
import { configKeyProblem } from '../fields/names.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { validateImmutable } from './config-map.ts'
import { defineResource } from './resource.ts'
import type { Secret } from '../objects/small.ts'
import type { FieldProblem } from '../fields/problem.ts'

export const secrets = defineResource<Secret>({
  kind: 'Secret',
  createOnUpdate: true,
  columns: [
    nameColumn,
    { name: 'Type', cell: ({ type }) => type ?? '' },
    { name: 'Data', cell: ({ data }) => String(Object.keys(data ?? {}).length) },
    ageColumn,
  ],
  fields: { type: ({ type }) => type ?? '' },
  setDefaults(secret) {
    secret.type ??= 'Opaque'
    if (secret.stringData === undefined) return
    const data = (secret.data ??= {})
    for (const [key, value] of Object.entries(secret.stringData)) data[key] = Buffer.from(value).toString('base64')
    delete secret.stringData
  },
  validate,
  validateUpdate: (next, current) => [
    ...immutable('type', next.type, current.type),
    ...validateImmutable(next, current),
    ...validate(next),
  ],
})

function validate({ data = {} }: Secret): FieldProblem[] {
  return Object.keys(data).flatMap((key) => check(`data[${key}]`, key, configKeyProblem))
}
