// Checks of objects in files, with the path of each error. Wrong types and values are errors; an unknown field is a warning,
// because the API's next version may have it.

import { nearest } from '../../lib/nearest.ts'
import { isJsonObject } from '../../lib/json.ts'

export type Path = readonly (string | number)[]

export interface Complaint {
  readonly severity: 'error' | 'warning'
  readonly path: Path
  readonly message: string
}

/** Checks a value. */
export type Shape = (value: unknown, path: Path) => Complaint[]

/** Fields by name. Absent fields and null are not checked. */
export function fields(known: Readonly<Record<string, Shape>>): Shape {
  return (value, path) => {
    if (!isJsonObject(value)) return [wrong(path, `must be an object, not ${kindOf(value)}`)]
    return Object.entries(value).flatMap(([name, content]) => {
      const shape = Object.hasOwn(known, name) ? known[name] : undefined
      if (shape === undefined) return [unknownField([...path, name], nearest(name, Object.keys(known)))]
      return content === null || content === undefined ? [] : shape(content, [...path, name])
    })
  }
}

export function listOf(element: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return [wrong(path, `must be a list, not ${kindOf(value)}`)]
    return value.flatMap((one, index) => element(one, [...path, index]))
  }
}

/** Several checks, one after the other up to the first error. */
export function all(...shapes: readonly Shape[]): Shape {
  return (value, path) => {
    const complaints: Complaint[] = []
    for (const shape of shapes) {
      complaints.push(...shape(value, path))
      if (complaints.some(({ severity }) => severity === 'error')) break
    }
    return complaints
  }
}

export const anything: Shape = () => []

export const text: Shape = (value, path) =>
  typeof value === 'string' ? [] : [wrong(path, `must be a string, not ${kindOf(value)}`)]

export const boolean: Shape = (value, path) =>
  typeof value === 'boolean' ? [] : [wrong(path, `must be true or false, not ${kindOf(value)}`)]

export function textThat(isGood: (text: string) => boolean, must: string): Shape {
  return all(text, (value, path) =>
    isGood(value as string) ? [] : [wrong(path, `must be ${must}, not ${JSON.stringify(value)}`)],
  )
}

export function oneOf(...values: readonly string[]): Shape {
  return textThat((value) => values.includes(value), `one of ${values.join(', ')}`)
}

export function integer(min: number, max: number): Shape {
  return (value, path) => {
    const isGood = Number.isInteger(value) && (value as number) >= min && (value as number) <= max
    return isGood ? [] : [wrong(path, `must be a whole number from ${min} to ${max}, not ${JSON.stringify(value)}`)]
  }
}

export function wrong(path: Path, message: string): Complaint {
  return { severity: 'error', path, message }
}

function unknownField(path: Path, meant: string | undefined): Complaint {
  const hint = meant === undefined ? '' : `, perhaps ${meant} is meant`
  return { severity: 'warning', path, message: `unknown field${hint}` }
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (value === null || value === undefined) return 'empty'
  return typeof value === 'object' ? 'an object' : JSON.stringify(value)
}

/** `spec.ports[0].port` */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    const needsQuotes = !/^[A-Za-z_][\w-]*$/.test(step)
    return needsQuotes ? `${text}[${JSON.stringify(step)}]` : text === '' ? step : `${text}.${step}`
  }, '')
}
