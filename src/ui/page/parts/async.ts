// The answer to a request, as far as it has come.

export type Waited<Value> =
  | { readonly state: 'none' }
  | { readonly state: 'waiting'; readonly before: Value | null }
  | { readonly state: 'here'; readonly value: Value }
  | { readonly state: 'failed'; readonly error: string }

/** The answer, or the one before it while waiting. */
export function shown<Value>(waited: Waited<Value>): Value | null {
  if (waited.state === 'here') return waited.value
  return waited.state === 'waiting' ? waited.before : null
}
