import { duplicateValue, invalidValue, requiredValue, unsupportedValue } from './problem.ts'
import { labelValueProblem, qualifiedNameProblem } from './names.ts'
import { sameJson } from '../json.ts'
import type { FieldProblem } from './problem.ts'

/** A complaint about a value, when a rule of names.ts has one. */
export function check<T>(path: string, value: T, rule: (value: T) => string | undefined): FieldProblem[] {
  const problem = rule(value)
  return problem === undefined ? [] : [invalidValue(path, value, problem)]
}

/** The same for a value that must be there. */
export function checkRequired(
  path: string,
  value: string | undefined,
  rule: (value: string) => string | undefined,
): FieldProblem[] {
  return value === undefined || value === '' ? [requiredValue(path)] : check(path, value, rule)
}

/** The same for a value that may be left out. */
export function checkOptional<T>(
  path: string,
  value: T | undefined,
  rule: (value: T) => string | undefined,
): FieldProblem[] {
  return value === undefined ? [] : check(path, value, rule)
}

export function oneOf(path: string, value: unknown, supported: readonly string[]): FieldProblem[] {
  return supported.some((each) => each === value) ? [] : [unsupportedValue(path, value, supported)]
}

/** A complaint about the i-th value if it stands before that in the list, too. */
export function checkUnique(path: string, values: readonly (string | undefined)[], i: number): FieldProblem[] {
  return values.indexOf(values[i]) < i ? [duplicateValue(path, values[i])] : []
}

export function immutable(
  path: string,
  next: unknown,
  current: unknown,
  problem = 'field is immutable',
): FieldProblem[] {
  return sameJson(next, current) ? [] : [invalidValue(path, next, problem)]
}

export function nonNegative(path: string, value: number | undefined): FieldProblem[] {
  return value !== undefined && value < 0 ? [invalidValue(path, value, 'must be greater than or equal to 0')] : []
}

export function validateLabels(path: string, labels: Readonly<Record<string, string>> | undefined): FieldProblem[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...check(path, key, qualifiedNameProblem),
    ...check(path, value, labelValueProblem),
  ])
}
