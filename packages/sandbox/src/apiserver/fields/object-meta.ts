// metadata, which all kinds share.

import { dnsLabelProblem, dnsSubdomainProblem, qualifiedNameProblem } from './names.ts'
import { check, immutable, nonNegative, validateLabels } from './check.ts'
import { forbiddenField, invalidValue, requiredValue, tooLong } from './problem.ts'
import type { ObjectMeta, OwnerReference } from '../objects/meta.ts'
import type { FieldProblem } from './problem.ts'

export type NameRule = (name: string) => string | undefined

export interface MetaRules {
  readonly namespaced: boolean
  readonly name: NameRule
}

/** What a name may be in a path: nothing that would change the path's meaning. */
export function pathSegmentProblem(name: string): string | undefined {
  if (name === '.' || name === '..') return `may not be '${name}'`
  const bad = ['/', '%'].find((character) => name.includes(character))
  return bad === undefined ? undefined : `may not contain '${bad}'`
}

const annotationBytes = 256 * 1024

export function validateObjectMeta(meta: ObjectMeta, rules: MetaRules): FieldProblem[] {
  return [
    ...validateGenerateName(meta.generateName, rules.name),
    ...(meta.name === '' || meta.name === undefined
      ? [requiredValue('metadata.name', 'name or generateName is required')]
      : check('metadata.name', meta.name, rules.name)),
    ...validateNamespace(meta.namespace ?? '', rules.namespaced),
    ...nonNegative('metadata.generation', meta.generation),
    ...validateMutableMeta(meta),
    ...(meta.finalizers ?? []).flatMap((name) => check('metadata.finalizers', name, qualifiedNameProblem)),
  ]
}

/** A prefix may end in what a whole name may not end in. */
function validateGenerateName(prefix: string | undefined, rule: NameRule): FieldProblem[] {
  if (prefix === undefined || prefix === '') return []
  const problem = rule(`${prefix}a`)
  return problem === undefined ? [] : [invalidValue('metadata.generateName', prefix, problem)]
}

function validateNamespace(namespace: string, namespaced: boolean): FieldProblem[] {
  if (!namespaced) return namespace === '' ? [] : [forbiddenField('metadata.namespace', 'not allowed on this type')]
  if (namespace === '') return [requiredValue('metadata.namespace')]
  return check('metadata.namespace', namespace, dnsLabelProblem)
}

function validateMutableMeta(meta: ObjectMeta): FieldProblem[] {
  return [
    ...validateLabels('metadata.labels', meta.labels),
    ...validateAnnotations(meta.annotations),
    ...validateOwners(meta.ownerReferences ?? []),
  ]
}

function validateAnnotations(annotations: Readonly<Record<string, string>> | undefined): FieldProblem[] {
  let size = 0
  const problems = Object.entries(annotations ?? {}).flatMap(([key, value]) => {
    size += key.length + value.length
    return check('metadata.annotations', key, (name) => qualifiedNameProblem(name.toLowerCase()))
  })
  return size > annotationBytes ? [...problems, tooLong('metadata.annotations', annotationBytes)] : problems
}

const ownerFields = ['apiVersion', 'kind', 'name', 'uid'] as const

function validateOwners(owners: readonly OwnerReference[]): FieldProblem[] {
  const path = 'metadata.ownerReferences'
  const problems = owners.flatMap((owner) =>
    ownerFields
      .filter((field) => owner[field] === '')
      .map((field) =>
        invalidValue(`${path}.${field}`, '', `${field === 'apiVersion' ? 'version' : field} must not be empty`),
      ),
  )
  const controllers = owners.filter((owner) => owner.controller === true)
  if (controllers.length < 2) return problems
  const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controllers.map((owner) => `${owner.kind}/${owner.name}`).join(' and ')}`
  return [...problems, invalidValue(path, owners, detail)]
}

const immutableFields = [
  'name',
  'namespace',
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const

export function validateObjectMetaUpdate(next: ObjectMeta, current: ObjectMeta): FieldProblem[] {
  const added = (next.finalizers ?? []).filter((name) => !(current.finalizers ?? []).includes(name))
  return [
    ...(current.deletionTimestamp !== undefined && added.length > 0
      ? [
          forbiddenField(
            'metadata.finalizers',
            `no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`,
          ),
        ]
      : []),
    ...immutableFields.flatMap((field) => immutable(`metadata.${field}`, next[field], current[field])),
    ...validateMutableMeta(next),
  ]
}

export const nameRules = {
  label: dnsLabelProblem,
  subdomain: dnsSubdomainProblem,
  pathSegment: pathSegmentProblem,
} as const
