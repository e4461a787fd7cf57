// The picture of a packet's way, before it has a format: where it comes from, the hooks with what it meets there, its ends.

import { joinHostPort } from '../../lib/ip.ts'
import { phrase } from './compare.ts'
import type { Explanation } from './explanation.ts'

export interface Picture {
  readonly title: string
  readonly start: string
  readonly hooks: readonly Band[]
  readonly ends: readonly End[]
}

/** A hook, or the decision where no kernel was looked at. */
export interface Band {
  readonly name: string
  readonly lines: readonly string[]
}

export interface End {
  readonly text: string
  readonly kind: 'good' | 'bad' | 'off'
}

/** More ends than this are counted. */
const MOST_ENDS = 12

export function planPicture(explanation: Explanation): Picture {
  const { question, headline } = explanation
  const { from, source, destination, port, protocol } = question
  const named = from.includes(source) ? from : `${from} (${source})`
  return {
    title: headline,
    start: `${named} to ${joinHostPort(destination, port)}/${protocol}`,
    hooks: hooksOf(explanation),
    ends: limited(endsOf(explanation)),
  }
}

function hooksOf(explanation: Explanation): Band[] {
  const way = explanation.kernel?.ways[0]
  if (way === undefined) return [decisionBand(explanation)]
  const bands: { name: string; lines: string[] }[] = []
  for (const { hook, place, rule, found } of way.steps) {
    const last = bands.at(-1)
    const lines = [`${place}: ${rule}`, ...found.map((each) => `  ${each}`)]
    if (last?.name === hook) last.lines.push(...lines)
    else bands.push({ name: hook, lines })
  }
  return bands
}

function decisionBand({ frontend, policy, masquerade, because }: Explanation): Band {
  return {
    name: 'decided',
    lines: [
      frontend === null ? 'no frontend takes it' : `${frontend.kind} of ${frontend.servicePort}`,
      ...(policy === null ? [] : [policy.why]),
      ...(masquerade === null ? [] : [masquerade.masquerade === true ? 'masqueraded' : 'source kept']),
      because,
    ],
  }
}

function endsOf({ kernel, backends, outcome }: Explanation): End[] {
  if (kernel !== null && kernel.ways.length > 0) {
    return kernel.ways.map((way): End =>
      way.outcome === 'to'
        ? { text: `${way.destination}${way.masqueraded ? ', masqueraded' : ''}`, kind: 'good' }
        : { text: phrase(way.outcome), kind: 'bad' },
    )
  }
  if (outcome !== 'to') return [{ text: phrase(outcome), kind: 'bad' }]
  return backends.map(({ address, port, eligible, why }): End => {
    const text = joinHostPort(address, port)
    return eligible ? { text, kind: 'good' } : { text: `${text}: ${why}`, kind: 'off' }
  })
}

function limited(ends: readonly End[]): End[] {
  if (ends.length <= MOST_ENDS) return [...ends]
  return [...ends.slice(0, MOST_ENDS - 1), { text: `and ${ends.length - MOST_ENDS + 1} others`, kind: 'off' }]
}
