// Whether what came of a check is what had to. Pure.

import type { Check, Expected } from './checks.ts'
import { count } from '../lib/count.ts'
import type { Attempt } from './protocol.ts'

export interface Verdict {
  readonly kind: 'pass' | 'fail' | 'not tried'
  /** One sentence without its full stop; empty for what passed. */
  readonly reason: string
  /** Of a check that measures. */
  readonly measured?: { readonly failed: number; readonly of: number }
}

const PASS: Verdict = { kind: 'pass', reason: '' }

export function judge({ expected, dial, client }: Check, attempts: readonly Attempt[]): Verdict {
  const last = attempts.at(-1)
  if (last === undefined) return { kind: 'not tried', reason: 'no connection was made' }
  const isFar = dial.address.startsWith('203.0.113.') || dial.address.startsWith('2001:db8:')
  // A node without a default route cannot send to an address that leads nowhere: its proxy is not asked.
  if (last.outcome === 'no route' && isFar && client.kind === 'node')
    return { kind: 'not tried', reason: `the node has no route to ${dial.address}` }
  if (expected.kind === 'measure') {
    const failed = attempts.filter(({ outcome }) => outcome !== 'answered').length
    if (failed === attempts.length || last.outcome === 'no answer') return { kind: 'fail', reason: describe(last) }
    return { ...PASS, measured: { failed, of: attempts.length } }
  }
  const reason = complain(expected, attempts)
  return reason === undefined ? PASS : { kind: 'fail', reason }
}

function complain(expected: Exclude<Expected, { kind: 'measure' }>, attempts: readonly Attempt[]): string | undefined {
  const last = attempts.at(-1)!
  switch (expected.kind) {
    case 'nothing': {
      const answered = attempts.find(({ outcome }) => outcome === 'answered')
      return answered === undefined ? undefined : `${nameOf(answered)} answered; no endpoint may`
    }
    case 'refusal':
      if (last.outcome === 'refused') return undefined
      if (last.outcome === 'answered') return `${nameOf(last)} answered; the Service has no endpoints`
      return `${describe(last)}; it should be refused at once`
    case 'answer':
      if (last.outcome !== 'answered')
        return `${describe(last)}${attempts.length > 1 ? `, after ${count(attempts.length - 1, 'answer')}` : ''}`
      return complainOfAnswers(expected, attempts)
  }
}

function complainOfAnswers(
  { by, spread, keepsClient, status }: Extract<Expected, { kind: 'answer' }>,
  attempts: readonly Attempt[],
): string | undefined {
  const other = by === undefined ? undefined : attempts.find(({ greeting }) => !by.includes(greeting?.endpoint ?? ''))
  if (other !== undefined) return `${nameOf(other)} answered; only ${by!.join(', ')} may`
  const wrong = status === undefined ? undefined : attempts.find((each) => each.status !== status)
  if (wrong !== undefined) return `status ${wrong.status}, not ${status}`
  const masked = attempts.find(({ greeting, from }) => keepsClient === true && greeting?.client !== from)
  if (masked !== undefined) return `the endpoint sees ${masked.greeting?.client}, not the client ${masked.from}`
  const seen = new Set(attempts.map(({ greeting }) => greeting?.endpoint))
  if (spread === 'one' && seen.size > 1) return `${[...seen].join(', ')} answered; affinity asks for one`
  const missing =
    spread === 'each'
      ? (by ?? []).filter((name) => !seen.has(name))
      : typeof spread === 'object' && !seen.has(spread.includes)
        ? [spread.includes]
        : []
  if (missing.length > 0) return `none of ${attempts.length} connections went to ${missing.join(' or ')}`
  return undefined
}

function nameOf({ greeting }: Attempt): string {
  return greeting?.endpoint ?? 'something else'
}

function describe({ outcome, error }: Attempt): string {
  switch (outcome) {
    case 'refused':
      return 'refused'
    case 'no answer':
      return 'no answer'
    default:
      return error ?? outcome
  }
}
