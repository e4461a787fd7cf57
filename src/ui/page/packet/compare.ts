// The prediction beside the kernel's trace.

import type { Explanation } from '../../../diagnose/explain/explanation.ts'

export interface Beside {
  readonly what: string
  readonly said: string
  readonly seen: string | null
  readonly agrees: boolean | null
}

const OUTCOMES = {
  to: 'sent to an endpoint',
  reject: 'refused',
  drop: 'dropped',
  untouched: 'passed unchanged',
  unknown: 'not in the trace',
} as const

export function planBeside({ outcome, kernel, backends, sent, agreement }: Explanation): Beside[] {
  const ways = kernel?.ways.map(({ destination }) => destination) ?? []
  const eligible = backends.filter(({ eligible }) => eligible).map(({ address, port }) => `${address}:${port}`)
  const ends = outcome === 'to' ? (ways.length > 0 ? ways : eligible) : []
  const rows: Beside[] = [
    {
      what: 'verdict',
      said: OUTCOMES[outcome],
      seen: sent === null ? null : OUTCOMES[sent.outcome],
      agrees: sent === null || sent.outcome === 'unknown' ? null : sent.outcome === outcome,
    },
  ]
  if (ends.length > 0) {
    rows.push({
      what: 'destination',
      said: ends.length === 1 ? ends[0]! : `one of ${ends.length}: ${limited(ends)}`,
      seen: sent === null ? null : (sent.destination ?? 'not in the trace'),
      agrees: sent === null || sent.destination === null ? null : ends.includes(sent.destination),
    })
  }
  if (sent !== null) {
    rows.push({ what: 'the client sees', said: answerWords(outcome), seen: sent.answer, agrees: null })
  }
  if (kernel !== null) {
    rows.push({
      what: 'rules',
      said: 'do what was decided',
      seen: agreement === 'differs' ? 'they differ: see below' : 'they do',
      agrees: agreement !== 'differs',
    })
  }
  return rows
}

function limited(ends: readonly string[]): string {
  return ends.length <= 4 ? ends.join(', ') : `${ends.slice(0, 3).join(', ')}, …`
}

function answerWords(outcome: Explanation['outcome']): string {
  return { to: 'an answer', reject: 'a refusal', drop: 'nothing', untouched: 'what lies behind the address' }[outcome]
}
