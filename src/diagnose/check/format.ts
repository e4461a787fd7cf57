// A judgement as lines for people, and as JSON for programs. docs/reference/check.md describes both.

import { count } from '../../lib/count.ts'
import { wrapText } from '../../lib/wrap-text.ts'
import { formatJson } from '../format-json.ts'
import { type Finding, type Level, type Subject, subjects } from './finding-kinds.ts'
import type { Judgement } from './judge.ts'

export interface CheckReport extends Judgement {
  readonly version: string
  readonly nodeName: string
}

/** 0 when the proxy can run, 1 when something keeps it from that. */
export function exitStatusOf(findings: readonly Finding[]): 0 | 1 {
  return findings.some(({ level }) => level === 'problem') ? 1 : 0
}

const MARKS: Readonly<Record<Level, string>> = { ok: 'ok', note: 'note', warning: 'warning', problem: 'PROBLEM' }
const INDENT = ' '.repeat(11)
const WIDTH = 110 - INDENT.length

export function formatText({ findings, mode }: CheckReport): string {
  const lines: string[] = []
  for (const about of Object.keys(subjects) as Subject[]) {
    const own = findings.filter((each) => each.about === about)
    if (own.length === 0) continue
    lines.push(subjects[about])
    for (const [i, { level, message, todo }] of own.entries()) {
      const [first = '', ...rest] = wrapText(message, WIDTH)
      lines.push(`  ${MARKS[level].padEnd(9)}${first}`, ...rest.map((line) => INDENT + line))
      // Advice that several have in common stands below the last of them.
      if (todo !== undefined && todo !== own[i + 1]?.todo)
        lines.push(...wrapText(`-> ${todo}`, WIDTH).map((line, at) => INDENT + (at === 0 ? '' : '   ') + line))
    }
  }
  return `${lines.join('\n')}\n\n${verdict(findings, mode.chosen)}\n`
}

export function formatReportJson({ version, nodeName, mode, findings }: CheckReport): string {
  const report = {
    version,
    canRun: exitStatusOf(findings) === 0,
    nodeName,
    mode: { asked: mode.asked, chosen: mode.chosen ?? null, givenUp: mode.givenUp },
    findings: findings.map(({ code, about, level, message, todo }) => ({
      code,
      about,
      level,
      message,
      todo: todo ?? null,
    })),
  }
  return formatJson(report)
}

function verdict(findings: readonly Finding[], mode: string | undefined): string {
  const of = (level: Level) => findings.filter((each) => each.level === level).length
  const [problems, warnings] = [of('problem'), of('warning')]
  const what = problems > 0 ? 'kube-proxy cannot run here' : `kube-proxy can run here, in mode ${mode}`
  return `${what}: ${count(problems, 'problem')}, ${count(warnings, 'warning')}. Nothing was changed.`
}
