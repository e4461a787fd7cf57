// Label and field selectors, as far as a proxy uses them.

import type { ApiObject } from './objects.ts'

export type Selector = (object: ApiObject) => boolean

/** `a`, `!a`, `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, joined by commas. */
export function parseLabelSelector(text: string): Selector {
  const requirements = splitTopLevel(text).map(parseLabelRequirement)
  return (object) => requirements.every((matches) => matches(object.metadata.labels ?? {}))
}

function parseLabelRequirement(text: string): (labels: Record<string, string>) => boolean {
  const set = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(text)
  if (set !== null) {
    const [, key = '', operator, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    return operator === 'in'
      ? (labels) => labels[key] !== undefined && values.includes(labels[key])
      : (labels) => labels[key] === undefined || !values.includes(labels[key])
  }
  const [, key = '', operator, value = ''] = /^([^=!]+)(!=|==|=)(.*)$/.exec(text) ?? []
  if (operator === '!=') return (labels) => labels[key] !== value
  if (operator !== undefined) return (labels) => labels[key] === value
  return text.startsWith('!') ? (labels) => !(text.slice(1) in labels) : (labels) => text in labels
}

/** `spec.clusterIP!=None`, `metadata.name=x`. Undefined when a field is not in the list of supported ones. */
export function parseFieldSelector(text: string, supported: readonly string[]): Selector | undefined {
  const requirements: Selector[] = []
  for (const part of splitTopLevel(text)) {
    const [, path = '', operator, value = ''] = /^([^=!]+)(!=|==|=)(.*)$/.exec(part) ?? []
    if (!supported.includes(path)) return undefined
    requirements.push((object) => (fieldOf(object, path) === value) !== (operator === '!='))
  }
  return (object) => requirements.every((matches) => matches(object))
}

function fieldOf(object: ApiObject, path: string): string {
  let value: unknown = object
  for (const name of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[name]
  return typeof value === 'string' ? value : ''
}

function splitTopLevel(text: string): string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
