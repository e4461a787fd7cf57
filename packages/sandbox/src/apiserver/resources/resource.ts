// A kind as data: its names, columns and rules. The server itself has no code for single kinds.

import { nameRules, type NameRule } from '../fields/object-meta.ts'
import { ageColumn, nameColumn } from './columns.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { FieldReaders } from '../selectors/field-selector.ts'
import type { ApiObject } from '../objects/meta.ts'

export const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const
export type Verb = (typeof allVerbs)[number]

export interface Subresource {
  readonly name: string
  readonly verbs: readonly Verb[]
  /** The kind that is sent and received; the resource's own when absent. */
  readonly as?: { readonly group: string; readonly version: string; readonly kind: string }
}

export interface Column<T> {
  readonly name: string
  readonly type?: 'string' | 'integer'
  /** Marks the column with the name for kubectl. */
  readonly format?: 'name'
  /** 0: always shown; 1: with -o wide. */
  readonly priority?: 0 | 1
  cell(object: T, nowMs: number): string | number
}

/**
 * The rules are methods, so that a list of resources can be handled as resources of any object: each of them only ever
 * sees objects of its own kind.
 */
export interface Resource<T extends ApiObject = ApiObject> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly verbs: readonly Verb[]
  readonly subresources: readonly Subresource[]
  readonly message: string
  readonly nameRule: NameRule
  readonly columns: readonly Column<T>[]
  /** What it can be selected by, besides its name and namespace. */
  readonly fields: FieldReaders<T>
  /** Which changes count as a new generation. */
  readonly generation: 'of the spec' | 'of all but metadata' | 'none'
  /** A PUT to a name that does not exist creates it. */
  readonly createOnUpdate: boolean

  /** Fills in what the client left out. Runs on everything that comes in. */
  setDefaults(object: T): void
  /** The last word on a new object before it is validated. */
  prepareCreate(object: T): void
  prepareUpdate(next: T, current: T): void
  validate(object: T): FieldProblem[]
  validateUpdate(next: T, current: T): FieldProblem[]
  validateStatus(next: T, current: T): FieldProblem[]
  /** Warnings for the client of an object that is accepted. */
  warnings(object: T): string[]
  /** Another resource under which the same objects are kept, and the way there and back. */
  readonly storedAs: StoredAs<T> | undefined
}

export interface StoredAs<T extends ApiObject> {
  readonly resource: Resource
  toStored(object: T): ApiObject
  fromStored(object: ApiObject): T
}

type Special<T extends ApiObject> = Pick<Resource<T>, 'kind'> & Partial<Resource<T>>

/** A resource from what is special about it. */
export function defineResource<T extends ApiObject>(special: Special<T>): Resource<T> {
  const { group = '', kind } = special
  return {
    group,
    version: 'v1',
    plural: `${kind.toLowerCase()}s`,
    singular: kind.toLowerCase(),
    message: `${group === '' ? 'core' : group.split('.')[0]}.${kind}`,
    namespaced: true,
    nameRule: nameRules.subdomain,
    columns: [nameColumn, ageColumn],
    shortNames: [],
    categories: [],
    verbs: allVerbs,
    subresources: [],
    fields: {},
    generation: 'none',
    createOnUpdate: false,
    setDefaults: () => {},
    prepareCreate: () => {},
    prepareUpdate: () => {},
    validate: () => [],
    validateUpdate: () => [],
    validateStatus: () => [],
    warnings: () => [],
    storedAs: undefined,
    ...special,
  }
}

export const statusSubresource: Subresource = { name: 'status', verbs: ['get', 'patch', 'update'] }

export const scaleSubresource: Subresource = {
  name: 'scale',
  verbs: ['get', 'patch', 'update'],
  as: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
}

export function hasStatus(resource: Pick<Resource, 'subresources'>): boolean {
  return resource.subresources.some((subresource) => subresource.name === 'status')
}

/** `v1`, `apps/v1` */
export function apiVersionOf(resource: { readonly group: string; readonly version: string }): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
}
