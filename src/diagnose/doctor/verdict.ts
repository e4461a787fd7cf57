// What may come of a question: fine, not known, or a finding with the command to type next.

export interface Answer {
  readonly question: string
  /** `not known`: it could not be looked at, so nothing is claimed. */
  readonly result: 'yes' | 'no' | 'not known'
  readonly detail: string
}

export interface Finding {
  readonly code: string
  readonly what: string
  /** The command to type next. */
  readonly next: string
}

/** Undefined: the question does not arise. */
export type Verdict =
  | { readonly ok: true; readonly detail: string }
  | { readonly unknown: string }
  | Finding
  | undefined

export interface Question<F> {
  readonly text: string
  readonly ask: (facts: F) => Verdict
}

export interface Asked {
  /** In order; those behind the first that fails are not asked. */
  readonly answers: readonly Answer[]
  readonly finding: Finding | null
}

export function askAll<F>(questions: readonly Question<F>[], facts: F): Asked {
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
export const finding = (code: string, what: string, next: string): Finding => ({ code, what, next })
