// Errors about fields, of the five kinds that the API has. Their texts are part of the API: people search for them, and
// programs match them.

export interface FieldProblem {
  readonly path: string
  readonly reason: ProblemReason
  readonly sentence: string
}

export type ProblemReason =
  | 'FieldValueInvalid'
  | 'FieldValueRequired'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueTooMany'
  | 'FieldValueTooLong'

export function invalidValue(path: string, value: unknown, detail: string): FieldProblem {
  return { path, reason: 'FieldValueInvalid', sentence: `Invalid value: ${formatValue(value)}: ${detail}` }
}

export function requiredValue(path: string, detail: string = ''): FieldProblem {
  return { path, reason: 'FieldValueRequired', sentence: `Required value${detail === '' ? '' : `: ${detail}`}` }
}

export function unsupportedValue(path: string, value: unknown, supported: readonly string[]): FieldProblem {
  const list = supported.map((one) => JSON.stringify(one)).join(', ')
  const sentence = `Unsupported value: ${formatValue(value)}: supported values: ${list}`
  return { path, reason: 'FieldValueNotSupported', sentence }
}

export function duplicateValue(path: string, value: unknown): FieldProblem {
  return { path, reason: 'FieldValueDuplicate', sentence: `Duplicate value: ${formatValue(value)}` }
}

export function forbiddenField(path: string, detail: string): FieldProblem {
  return { path, reason: 'FieldValueForbidden', sentence: `Forbidden: ${detail}` }
}

export function tooMany(path: string, count: number, limit: number): FieldProblem {
  return { path, reason: 'FieldValueTooMany', sentence: `Too many: ${count}: must have at most ${limit} items` }
}

export function tooLong(path: string, limit: number): FieldProblem {
  const sentence = `Too long: may not be more than ${limit} bytes`
  return { path, reason: 'FieldValueTooLong', sentence }
}

function formatValue(value: unknown): string {
  return value === undefined ? 'null' : JSON.stringify(value)
}
