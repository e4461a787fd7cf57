// Questions to the running proxy, by name, with answers in JSON, over a unix socket that only root can open.
//
// To answer a question, add a Question to the list in src/compose/questions.ts:
//
//     { name: 'state', what: 'the objects and decisions of the proxy', answer: (query) => ({ ... }) }
//
// To ask one, from any command of this program (client.ts):
//
//     const state = await ask<StateAnswer>('state', { socket, query: { service: 'default/web' } })
//
// `socket` is what --control-socket says; empty means the proxy of this network namespace (path.ts). From a shell:
//
//     curl --unix-socket /run/kube-proxy-ts/net-4026531840.sock http://proxy/v1/state
//
// An answer is any value that JSON can express. Iterables that are not lists are written as lists, one element at a time,
// so that a large answer neither stands in memory as a whole nor stops the proxy from its work.

/** Thrown by a question that cannot be answered as it was asked: the message says what is allowed. */
export class QuestionError extends Error {}

export interface QuestionClient {
  /** Fires when its connection ends: it has gone, or died. A connection may ask again and again. */
  readonly signal: AbortSignal
}

export interface Question {
  readonly name: string
  /** One line for people. */
  readonly what: string
  /** Throws a QuestionError for arguments that make no sense. */
  answer(query: URLSearchParams, client: QuestionClient): unknown
}

/** The prefix of every path: a question that changes its meaning gets a new one. */
export const PREFIX = '/v1/'

/** The first argument of that name; undefined when it is absent or empty. */
export function argument(query: URLSearchParams, name: string): string | undefined {
  return query.get(name) || undefined
}

/** Refuses arguments that the question does not know: a misspelt one would be ignored. */
export function allowArguments(query: URLSearchParams, ...names: string[]): void {
  for (const name of query.keys()) {
    if (names.includes(name)) continue
    const allowed = names.length === 0 ? 'it takes none' : `must be one of ${names.join(', ')}`
    throw new QuestionError(`Cannot use the argument ${JSON.stringify(name)}: ${allowed}`)
  }
}
