// What may come of a question: fine, not known, or a finding with the command to type next.

export interface Answer {
  readonly question: string
  /** `not known`: it could not be looked at, so nothing is claimed. */
  readonly result: 'yes' | 'no' | 'not known'
  readonly detail: string
}

export interface DoctorFinding {
  readonly code: string
  readonly what: string
  /** The command to type next. */
  readonly next: string
}

/** Undefined: the question does not arise. */
export type Verdict =
  | { readonly ok: true; readonly detail: string }
  | { readonly unknown: string }
  | DoctorFinding
  | undefined

export interface DoctorQuestion<F> {
  readonly text: string
  readonly ask: (facts: F) => Verdict
}

export interface DoctorAnswers {
  /** In order; those behind the first that fails are not asked. */
  readonly answers: readonly Answer[]
  readonly finding: DoctorFinding | null
}

export function askAll<F>(questions: readonly DoctorQuestion<F>[], facts: F): DoctorAnswers {
  const answers: Answer[] = []
  for (const { text, ask } of questions) {
    const verdict = ask(facts)
    if (verdict === undefined) continue
    if ('code' in verdict) {
      answers.push({ question: text, result: 'no', detail: verdict.what })
      return { answers, finding: verdict }
    }
    if ('unknown' in verdict) answers.push({ question: text, result: 'not known', detail: verdict.unknown })
    else answers.push({ question: text, result: 'yes', detail: verdict.detail })
  }
  return { answers, finding: null }
}

export const fine = (detail = ''): Verdict => ({ ok: true, detail })
export const unknown = (why: string): Verdict => ({ unknown: why })
export const finding = (code: string, what: string, next: string): DoctorFinding => ({ code, what, next })
