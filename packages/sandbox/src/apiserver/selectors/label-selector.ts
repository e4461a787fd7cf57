// Label selectors: as text in queries (`app=web,tier!=db,env in (a,b),!legacy`), and as objects in specs.

import { badRequest } from '../api-error.ts'
import { labelValueProblem, qualifiedNameProblem } from '../fields/names.ts'
import type { LabelSelector } from '../objects/meta.ts'

export type Labels = Readonly<Record<string, string>>

export type Requirement =
  | { readonly key: string; readonly op: 'exists' | 'absent' }
  | { readonly key: string; readonly op: 'in' | 'notIn'; readonly values: readonly string[] }
  | { readonly key: string; readonly op: 'above' | 'below'; readonly bound: number }

export function matchesLabels(requirements: readonly Requirement[], labels: Labels | undefined): boolean {
  return requirements.every((requirement) => meets(requirement, valueOf(labels, requirement.key)))
}

function valueOf(labels: Labels | undefined, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined
}

function meets(requirement: Requirement, value: string | undefined): boolean {
  switch (requirement.op) {
    case 'exists':
      return value !== undefined
    case 'absent':
      return value === undefined
    case 'in':
      return value !== undefined && requirement.values.includes(value)
    case 'notIn':
      return value === undefined || !requirement.values.includes(value)
    case 'above':
      return value !== undefined && Number.parseInt(value, 10) > requirement.bound
    case 'below':
      return value !== undefined && Number.parseInt(value, 10) < requirement.bound
  }
}

/** The selector of a query. Throws a 400 that says what is wrong. */
export function parseLabelSelector(text: string): Requirement[] {
  return splitOutsideParentheses(text)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => parseRequirement(part, text))
}

function splitOutsideParentheses(text: string): string[] {
  return text.split(/,(?![^(]*\))/)
}

const setBased = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/
const equality = /^([^\s!=<>]+)\s*(==|=|!=)\s*([^\s=!]*)$/
const comparison = /^([^\s!=<>]+)\s*([<>])\s*(-?\d+)$/
const existence = /^(!?)\s*([^\s!=<>(),]+)$/

function parseRequirement(part: string, whole: string): Requirement {
  const requirement = readRequirement(part)
  if (requirement === undefined) {
    throw badRequest(
      `unable to parse requirement: found '${part}', expected: in, notin, =, ==, !=, gt, lt (in '${whole}')`,
    )
  }
  const problem =
    qualifiedNameProblem(requirement.key) ??
    ('values' in requirement ? requirement.values.map(labelValueProblem).find((one) => one !== undefined) : undefined)
  if (problem !== undefined) throw badRequest(`unable to parse requirement: '${part}': ${problem}`)
  return requirement
}

function readRequirement(part: string): Requirement | undefined {
  let match = setBased.exec(part)
  if (match !== null) {
    const values = match[3]!.split(',').map((value) => value.trim())
    return { key: match[1]!, op: match[2] === 'in' ? 'in' : 'notIn', values }
  }
  match = equality.exec(part)
  if (match !== null) return { key: match[1]!, op: match[2] === '!=' ? 'notIn' : 'in', values: [match[3]!] }
  match = comparison.exec(part)
  if (match !== null) return { key: match[1]!, op: match[2] === '>' ? 'above' : 'below', bound: Number(match[3]) }
  match = existence.exec(part)
  return match === null ? undefined : { key: match[2]!, op: match[1] === '!' ? 'absent' : 'exists' }
}

/** A plain map, as services and replication controllers select with. */
export function fromMap(labels: Labels): Requirement[] {
  return Object.entries(labels).map(([key, value]) => ({ key, op: 'in', values: [value] }))
}

const operators = { In: 'in', NotIn: 'notIn', Exists: 'exists', DoesNotExist: 'absent' } as const

/** A selector object, as replica sets and deployments have. An empty one selects everything. */
export function fromObject(selector: LabelSelector): Requirement[] {
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values }): Requirement => {
    const op = operators[operator as keyof typeof operators]
    return op === 'in' || op === 'notIn' ? { key, op, values: values ?? [] } : { key, op: op ?? 'exists' }
  })
  return [...fromMap(selector.matchLabels ?? {}), ...expressions]
}

/** As kubectl prints it: `app=web,tier in (a,b)`. */
export function formatRequirements(requirements: readonly Requirement[]): string {
  return requirements.map(formatRequirement).join(',')
}

function formatRequirement(requirement: Requirement): string {
  switch (requirement.op) {
    case 'exists':
      return requirement.key
    case 'absent':
      return `!${requirement.key}`
    case 'in':
      if (requirement.values.length === 1) return `${requirement.key}=${requirement.values[0]}`
      return `${requirement.key} in (${[...requirement.values].sort().join(',')})`
    case 'notIn':
      if (requirement.values.length === 1) return `${requirement.key}!=${requirement.values[0]}`
      return `${requirement.key} notin (${[...requirement.values].sort().join(',')})`
    case 'above':
    case 'below':
      return `${requirement.key}${requirement.op === 'above' ? '>' : '<'}${requirement.bound}`
  }
}
