// At most so many connections to a Service, or from one of its clients.
//
//     service.kube-proxy-ts.io/connection-limits: "2000, 100 per client, 50/s, 10/s per client, drop"
//
// Open ones and new ones per second, for each service port, IP family and node by itself. What is over a limit is refused, or
// dropped.

import type { Refuse } from './annotations.ts'

export const LIMITS_ANNOTATION = 'service.kube-proxy-ts.io/connection-limits'

/** How much is allowed; absent: any number. */
export interface Limits {
  readonly open?: number
  readonly openPerClient?: number
  readonly perSecond?: number
  readonly perSecondPerClient?: number
  /** What becomes of a connection over a limit. */
  readonly over: 'refuse' | 'drop'
}

type LimitName = Exclude<keyof Limits, 'over'>

const MOST_OPEN = 1_000_000
/** The largest number that every mode can say, if not exactly. */
const MOST_PER_SECOND = 100_000
const ALLOWED =
  `must be "N", "N per client", "N/s" or "N/s per client", each once, with "refuse" or "drop"; ` +
  `N from 1 to ${MOST_OPEN}, per second to ${MOST_PER_SECOND}`

export function parseLimits(text: string, refuse: Refuse): Limits | undefined {
  const limits: Partial<Record<LimitName, number>> = {}
  let over: Limits['over'] | undefined
  for (const part of text.split(',').map((each) => each.trim())) {
    if ((part === 'refuse' || part === 'drop') && over === undefined) {
      over = part
      continue
    }
    const limit = parseLimit(part)
    if (limit === undefined || limits[limit.name] !== undefined) refuse(part, ALLOWED)
    else limits[limit.name] = limit.most
  }
  if (Object.keys(limits).length > 0) return { ...limits, over: over ?? 'refuse' }
  if (over !== undefined) refuse(text, 'names no limit')
  return undefined
}

function parseLimit(text: string): { name: LimitName; most: number } | undefined {
  const [, number, perSecond, perClient] = /^(\d{1,7})(\/s)?( per client)?$/.exec(text) ?? []
  const most = Number(number ?? 0)
  if (most < 1 || most > (perSecond === undefined ? MOST_OPEN : MOST_PER_SECOND)) return undefined
  const name: LimitName = perSecond === undefined ? 'open' : 'perSecond'
  return { name: perClient === undefined ? name : `${name}PerClient`, most }
}

export function sameLimits(a: Limits | undefined, b: Limits | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return NAMES.every((name) => a[name] === b[name]) && a.over === b.over
}

const NAMES = ['open', 'openPerClient', 'perSecond', 'perSecondPerClient'] as const satisfies readonly LimitName[]

/** For people: `at most 100 connections per client and 50 new ones per second; more are refused`. */
export function describeLimits(limits: Limits): string {
  const { open, openPerClient, perSecond, perSecondPerClient, over } = limits
  const parts = [
    open === undefined ? [] : `${open} open connections`,
    openPerClient === undefined ? [] : `${openPerClient} open connections per client`,
    perSecond === undefined ? [] : `${perSecond} new ones per second`,
    perSecondPerClient === undefined ? [] : `${perSecondPerClient} new ones per second and client`,
  ].flat()
  return `at most ${parts.join(', ')}; what is over is ${over === 'refuse' ? 'refused' : 'dropped'}`
}

/** For the owner of a Service that asks for it. */
export const LIMITS_HAVE_NO_EFFECT = `annotation ${LIMITS_ANNOTATION} has no effect: the mode of this node has no limits`
