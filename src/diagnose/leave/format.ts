// What changes, as lines for people, and as JSON for programs. docs/reference/check.md describes both.

import { count } from '../../lib/count.ts'
import { wrapText } from '../../lib/wrap-text.ts'
import { formatJson } from '../format-json.ts'
import { someOf } from './change.ts'
import type { Change, Effect } from './change-kinds.ts'

export interface LeavingReport {
  readonly version: string
  readonly nodeName: string
  /** Where the Services are from. */
  readonly source: string
  readonly from: string
  readonly to: string
  /** How many Services were looked at. */
  readonly services: number
  readonly changes: readonly Change[]
}

const headings: Readonly<Record<Effect, string>> = {
  loses: 'What is lost',
  differs: 'What is different',
  gains: 'What is better',
  note: 'Good to know',
}

/** 0: nothing is lost or different. 1: something is. */
export function exitStatusOf(changes: readonly Change[]): 0 | 1 {
  return changes.some(({ effect }) => effect === 'loses' || effect === 'differs') ? 1 : 0
}

const WIDTH = 110
const INDENT = ' '.repeat(2)

export function formatText(report: LeavingReport): string {
  const { changes, from, to, nodeName, source, services } = report
  const lines = [
    `From mode ${from} to mode ${to}, on node ${nodeName}, with ${count(services, 'Service')} of ${source}.`,
  ]
  for (const effect of Object.keys(headings) as Effect[]) {
    const own = changes.filter((each) => each.effect === effect)
    if (own.length > 0) lines.push('', headings[effect])
    for (const change of own) lines.push(...formatChange(change))
  }
  return `${lines.join('\n')}\n\n${verdict(report)}\n`
}

function formatChange({ code, message, todo, services }: Change): string[] {
  const whom = services.length === 0 ? [] : [`${count(services.length, 'Service')}: ${someOf(services)}`]
  return [
    `${INDENT}${code}`,
    ...indent(message),
    ...whom.flatMap((text) => indent(text)),
    ...(todo === undefined ? [] : indent(`-> ${todo}`)),
  ]
}

function indent(text: string): string[] {
  const more = text.startsWith('-> ') ? '   ' : ''
  return wrapText(text, WIDTH - 2 * INDENT.length).map((line, i) => INDENT + INDENT + (i === 0 ? '' : more) + line)
}

export function formatLeavingJson(report: LeavingReport): string {
  const { version, nodeName, source, from, to, services, changes } = report
  return formatJson({
    version,
    nodeName,
    source,
    from,
    to,
    services,
    isSame: exitStatusOf(changes) === 0,
    changes: changes.map((change) => ({ ...change, todo: change.todo ?? null })),
  })
}

function verdict({ changes, to }: LeavingReport): string {
  const of = (effect: Effect) => changes.filter((each) => each.effect === effect).length
  const [lost, different] = [of('loses'), of('differs')]
  if (lost + different === 0) return `Mode ${to} does all of it. Nothing was changed.`
  return `${count(lost, 'thing')} lost, ${different} different in mode ${to}. Nothing was changed.`
}
