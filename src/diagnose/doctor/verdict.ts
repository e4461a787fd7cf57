// What may come of a question: fine, not known, or a finding with the command to type next.

export interface Answer {
  readonly question: string
  /** `not known`: it could not be looked at, so nothing is claimed. */
  readonly result: 'yes' | 'no' | 'not known'
  readonly detail: string
  /** Of what is not known: a command that shows more. */
  readonly next?: string
}

export interface DoctorFinding {
  readonly code: string
  readonly what: string
  /** The command to type next. */
  readonly next: string
  /** Where a packet was sent of which this machine does not know the end. */
  readonly lost?: LostPacket
}

export interface LostPacket {
  /** `10.244.1.3:3000/TCP` */
  readonly endpoint: string
  /** Of the endpoint. */
  readonly node: string
}

/** Undefined: the question does not arise. */
export type Verdict =
  | { readonly ok: true; readonly detail: string }
  | { readonly unknown: string; readonly next?: string | undefined }
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
    if ('unknown' in verdict) {
      const { unknown: detail, next } = verdict
      answers.push({ question: text, result: 'not known', detail, ...(next === undefined ? {} : { next }) })
    } else answers.push({ question: text, result: 'yes', detail: verdict.detail })
  }
  return { answers, finding: null }
}

export const fine = (detail = ''): Verdict => ({ ok: true, detail })
export const unknown = (why: string, next?: string): Verdict => ({ unknown: why, next })
export const finding = (code: string, what: string, next: string): DoctorFinding => ({ code, what, next })
