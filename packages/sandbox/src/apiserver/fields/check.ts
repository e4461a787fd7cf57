import { invalidValue } from './problem.ts'
import { labelValueProblem, qualifiedNameProblem } from './names.ts'
import type { FieldProblem } from './problem.ts'

/** A complaint about a value, when a rule of names.ts has one. */
export function check<T>(path: string, value: T, rule: (value: T) => string | undefined): FieldProblem[] {
  const problem = rule(value)
  return problem === undefined ? [] : [invalidValue(path, value, problem)]
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
