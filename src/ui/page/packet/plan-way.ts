// The way of a packet, hook by hook: the predicted rules, and beside them the kernel's trace.

import type { Explanation, ExplainedWay } from '../../../diagnose/explain/explanation.ts'
import { joinHostPort } from '../../../lib/ip.ts'

export interface Band {
  readonly hook: string
  readonly steps: readonly Step[]
  /** Other lines of the trace for this hook: policies, rules that were not predicted. */
  readonly traced: readonly string[]
}

export interface Step {
  readonly place: string
  readonly rule: string
  readonly comment: string | null
  readonly found: readonly string[]
  /** How it changes the addresses of the packet. */
  readonly translation: string | null
  /** The trace of this rule, without its text; null: not in the trace. */
  readonly traced: string | null
}

export interface WayPlan {
  readonly bands: readonly Band[]
  readonly end: string
  readonly isGood: boolean
  /** The way of the answer. */
  readonly back: readonly string[]
}

/** The way that the packet took, if it was sent and traced; else the first. */
export function chooseWay({ kernel, sent }: Explanation): number {
  const ways = kernel?.ways ?? []
  const taken = ways.findIndex(({ destination }) => sent !== null && destination === sent.destination)
  return Math.max(0, taken)
}

export function planWay(explanation: Explanation, index: number): WayPlan | null {
  const way = explanation.kernel?.ways[index]
  if (way === undefined) return null
  return {
    bands: planBands(way, explanation),
    end: endWords(way),
    isGood: way.outcome === 'to',
    back: way.outcome === 'to' ? planBack(way, explanation) : [],
  }
}

const SETS_DESTINATION = /\b(dnat|redirect|tproxy)( ip6?)? to\b|-j (DNAT|REDIRECT)\b|^redirect\b|IPVS|virtual server/
const SETS_SOURCE = /\bmasquerade\b|\bsnat( ip6?)? to\b|-j (MASQUERADE|SNAT)\b/
/** Rules that only set a mark for a later rule do not translate. */
const ONLY_MARKS = /meta mark set meta mark or|KUBE-MARK-MASQ|--or-mark|set-xmark/

function planBands(way: ExplainedWay, { question, sent }: Explanation): Band[] {
  const dialled = joinHostPort(question.destination, question.port)
  const { steps, outcome, destination, masqueraded } = way
  const last = steps.findLastIndex((step) => isTranslation(step, SETS_DESTINATION))
  const { ofStep, others } = matchTrace(steps, sent?.trace ?? [])
  const bands: { hook: string; steps: Step[]; traced: string[] }[] = []
  for (const [i, step] of steps.entries()) {
    if (bands.at(-1)?.hook !== step.hook) bands.push({ hook: step.hook, steps: [], traced: [] })
    let translation: string | null = null
    if (outcome === 'to' && i === last) translation = `destination ${dialled} becomes ${destination}`
    else if (masqueraded && isTranslation(step, SETS_SOURCE)) {
      translation = `source ${question.source} becomes an address of ${question.node}`
    }
    const { place, rule, comment, found } = step
    bands.at(-1)!.steps.push({ place, rule, comment, found, translation, traced: ofStep.get(i) ?? null })
    bands.at(-1)!.traced.push(...(others.get(i) ?? []))
  }
  return bands
}

/** Assigns lines of the trace to steps; the others to the step before them. */
function matchTrace(
  steps: ExplainedWay['steps'],
  trace: readonly string[],
): { ofStep: Map<number, string>; others: Map<number, string[]> } {
  const ofStep = new Map<number, string>()
  const others = new Map<number, string[]>()
  let at = 0
  for (const line of trace) {
    const [, table = '', chain = '', rest = ''] = /^\S+ (\S+) (\S+) ?(.*)$/.exec(line) ?? []
    const place = `${table} ${chain}`
    const isRule = rest.startsWith('rule ')
    const next = steps.findIndex((step, i) => i >= at && step.place === place && (!isRule || !ofStep.has(i)))
    if (isRule && next >= 0) {
      ofStep.set(next, /\((verdict [^()]*)\)$/.exec(rest)?.[1] ?? rest)
      at = next
      continue
    }
    others.set(at, [...(others.get(at) ?? []), line])
  }
  return { ofStep, others }
}

function isTranslation({ rule, place }: Pick<Step, 'rule' | 'place'>, words: RegExp): boolean {
  return (words.test(rule) || words.test(place)) && !ONLY_MARKS.test(rule)
}

function endWords({ outcome, destination, masqueraded }: ExplainedWay): string {
  if (outcome === 'to')
    return `arrives at ${destination}${masqueraded ? ', masqueraded' : ', with the client’s own address'}`
  return { reject: 'is refused', drop: 'is dropped', untouched: 'passes unchanged: no rule of the proxy matches' }[
    outcome
  ]
}

function planBack({ destination, masqueraded }: ExplainedWay, { question }: Explanation): string[] {
  const { source, node, port } = question
  const dialled = joinHostPort(question.destination, port)
  return [
    `${destination} answers ${masqueraded ? `the address of ${node} that it sees` : `${source}, the client itself`}`,
    `the connection tracker of ${node} puts it right: the answer is from ${dialled}${masqueraded ? ` to ${source}` : ''}`,
    `${source} gets an answer from the address that it dialled`,
  ]
}
