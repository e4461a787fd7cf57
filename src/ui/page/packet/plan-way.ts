// The way of a packet, hook by hook: the rules that were said to take it, and beside them what the kernel's trace told.

import type { Explanation, ExplainedWay } from '../../../explain/explanation.ts'

export interface Band {
  readonly hook: string
  readonly steps: readonly Step[]
  /** What the trace told about chains of this hook; empty where nothing was sent. */
  readonly traced: readonly string[]
}

export interface Step {
  readonly place: string
  readonly rule: string
  readonly comment: string | null
  readonly found: readonly string[]
  /** What it does to the addresses of the packet. */
  readonly translation: string | null
}

export interface WayPlan {
  readonly bands: readonly Band[]
  readonly end: string
  readonly isGood: boolean
  /** How the answer finds back. */
  readonly back: readonly string[]
}

/** The way that the packet took, if one was sent and the trace tells; else the first. */
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

const SETS_DESTINATION = /\b(dnat|redirect|tproxy)\b|IPVS|virtual server/i
const SETS_SOURCE = /\b(masquerade|snat)\b/i
/** A mark that tells a later rule to do it is not the deed. */
const ONLY_MARKS = /meta mark set meta mark or|KUBE-MARK-MASQ|--or-mark|set-xmark/

function planBands(way: ExplainedWay, { question, sent }: Explanation): Band[] {
  const dialled = joinPort(question.destination, question.port)
  const last = way.steps.findLastIndex((step) => isTranslation(step, SETS_DESTINATION))
  const bands: { hook: string; steps: Step[]; traced: string[] }[] = []
  const placeOf: { band: number; place: string }[] = []
  for (const [i, step] of way.steps.entries()) {
    if (bands.at(-1)?.hook !== step.hook) bands.push({ hook: step.hook, steps: [], traced: [] })
    let translation: string | null = null
    if (way.outcome === 'to' && i === last) translation = `to ${dialled} becomes to ${way.destination}`
    else if (way.masqueraded && isTranslation(step, SETS_SOURCE)) {
      translation = `from ${question.source} becomes from an address of ${question.node}`
    }
    const { place, rule, comment, found } = step
    bands.at(-1)!.steps.push({ place, rule, comment, found, translation })
    placeOf.push({ band: bands.length - 1, place })
  }
  let at = 0
  for (const line of sent?.trace ?? []) {
    const [, table = '', chain = ''] = /^\S+ (\S+) (\S+)/.exec(line) ?? []
    const place = `${table} ${chain}`
    const next = placeOf.findIndex((each, i) => i >= at && each.place === place)
    if (next >= 0) at = next
    bands[placeOf[at]?.band ?? 0]?.traced.push(line)
  }
  return bands
}

function isTranslation({ rule, place }: Pick<Step, 'rule' | 'place'>, words: RegExp): boolean {
  return (words.test(rule) || words.test(place)) && !ONLY_MARKS.test(rule)
}

function endWords({ outcome, destination, masqueraded }: ExplainedWay): string {
  if (outcome === 'to')
    return `arrives at ${destination}${masqueraded ? ', masqueraded' : ', with the client’s own address'}`
  return { reject: 'is refused', drop: 'is dropped', untouched: 'is left alone: no rule of the proxy takes it' }[
    outcome
  ]
}

function planBack({ destination, masqueraded }: ExplainedWay, { question }: Explanation): string[] {
  const { source, node, port } = question
  const dialled = joinPort(question.destination, port)
  return [
    `${destination} answers ${masqueraded ? `the address of ${node} that it sees` : `${source}, the client itself`}`,
    `the connection tracker of ${node} puts it right: the answer is from ${dialled}${masqueraded ? ` to ${source}` : ''}`,
    `${source} gets an answer from the address that it dialled`,
  ]
}

/** `ip:port`, `[ip]:port`. */
export function joinPort(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`
}
