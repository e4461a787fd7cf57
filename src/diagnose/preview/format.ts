// Previews as text for people, as scripts, and as JSON.

import { scriptReaders, type DryRun, type ScriptReader } from '../../modes/dry-run.ts'
import { count } from '../../lib/count.ts'
import { formatJson } from '../format-json.ts'
import type { Paint } from '../paint.ts'
import type { Preview } from './preview-mode.ts'

/** The scripts of several previews: one program after the other, each with a heading where there are several. */
export function formatScripts(previews: readonly Preview[], only: ScriptReader | undefined): string {
  const scripts = new Map<ScriptReader, string>()
  for (const { dryRun } of previews) {
    for (const { program, text } of dryRun?.scripts ?? []) {
      if (text !== '' && (only === undefined || only === program))
        scripts.set(program, (scripts.get(program) ?? '') + text)
    }
  }
  if (scripts.size === 1) return [...scripts.values()][0]!
  return [...scripts].map(([program, text]) => `# for ${scriptReaders[program]}\n${text}`).join('\n')
}

/** How many commands there are. */
export function countCommands({ scripts }: DryRun): number {
  return scripts.reduce((sum, { text }) => sum + linesOf(text).length, 0)
}

export interface PlanText {
  readonly source: string
  readonly nodeName: string
  /** The mode whose commands are shown. */
  readonly shown: string
  readonly previews: readonly Preview[]
  /** So many commands of one program are shown. */
  readonly limit: number
}

export function formatPlan({ source, nodeName, shown, previews, limit }: PlanText, paint: Paint): string {
  const lines = [`Node ${nodeName}, from ${source}. Nothing was changed.`, '']
  const width = Math.max(...previews.map(({ mode }) => mode.length))
  for (const preview of previews) {
    const mark = preview.mode === shown ? '*' : ' '
    lines.push(`${mark} ${preview.mode.padEnd(width)}  IPv${preview.family}  ${summary(preview)}`)
  }
  lines.push(...balanceLines(previews, { shown, limit }))
  for (const { mode, family, dryRun } of previews) {
    if (mode !== shown || dryRun === undefined) continue
    for (const { program, text } of dryRun.scripts) {
      const commands = linesOf(text)
      if (commands.length === 0) continue
      lines.push('', `IPv${family}, for ${scriptReaders[program]}:`)
      for (const command of commands.slice(0, limit))
        lines.push(`  ${paint(REMOVAL.test(command) ? 'bad' : 'good', command)}`)
      if (commands.length > limit) lines.push(`  ... and ${commands.length - limit} more (--limit)`)
    }
  }
  lines.push(...leftoverLines({ shown, previews, limit }))
  const remarks = new Set(previews.flatMap(({ mode, dryRun }) => (mode === shown ? (dryRun?.remarks ?? []) : [])))
  for (const remark of remarks) lines.push('', remark)
  return `${lines.join('\n')}\n`
}

/** How endpoints are chosen, where that is not left to chance. */
function balanceLines(
  previews: readonly Preview[],
  { shown, limit }: { readonly shown: string; readonly limit: number },
): string[] {
  const found = balancesIn(previews, shown)
  if (found.length === 0) return []
  const lines = found.slice(0, limit).map(([name, balance]) => `  ${name}: ${balance}`)
  const more = found.length > limit ? [`  ... and ${found.length - limit} more (--limit)`] : []
  return ['', 'How endpoints are chosen, where not at random:', ...lines, ...more]
}

/** Of both families: they have the same annotation. */
function balancesIn(previews: readonly Preview[], shown: string): (readonly [string, string])[] {
  return [...new Map(previews.flatMap(({ mode, balances = [] }) => (mode === shown ? [...balances] : [])))]
}

/** Nothing has to be done about them. */
function leftoverLines({ shown, previews, limit }: Pick<PlanText, 'shown' | 'previews' | 'limit'>): string[] {
  return previews.flatMap(({ mode, family, dryRun }) => {
    const commands = mode === shown ? (dryRun?.scripts ?? []).flatMap(({ leftovers = '' }) => linesOf(leftovers)) : []
    if (commands.length === 0) return []
    const more = commands.length > limit ? [`  ... and ${commands.length - limit} more (--limit)`] : []
    const head = `IPv${family}, leftovers: empty sets that the proxy keeps for later, and removes with its next full comparison:`
    return ['', head, ...commands.slice(0, limit).map((command) => `  ${command}`), ...more]
  })
}

export function formatPlanJson({ source, nodeName, shown, previews }: Omit<PlanText, 'limit'>): string {
  const plans = previews.map(({ mode, family, dryRun, problem }) => ({
    mode,
    ipFamily: `IPv${family}`,
    problem: problem ?? null,
    commands: dryRun === undefined ? null : countCommands(dryRun),
    scripts: (dryRun?.scripts ?? []).map(({ program, text }) => ({ program, lines: linesOf(text) })),
    leftovers: (dryRun?.scripts ?? []).flatMap(({ leftovers = '' }) => linesOf(leftovers)),
    remarks: dryRun?.remarks ?? [],
  }))
  const balances = Object.fromEntries(balancesIn(previews, shown))
  return formatJson({ source, nodeName, mode: shown, balances, plans })
}

function summary({ dryRun, problem }: Preview): string {
  if (dryRun === undefined) return `not possible: ${problem}`
  if (countCommands(dryRun) === 0) {
    const left = dryRun.scripts.reduce((sum, { leftovers = '' }) => sum + linesOf(leftovers).length, 0)
    return `nothing to do: the kernel has all of it${left === 0 ? '' : `, and ${left} lines of leftovers`}`
  }
  const parts = dryRun.scripts.flatMap(({ program, text }) => {
    const { length } = linesOf(text)
    return length === 0 ? [] : [`${count(length, 'line')} for ${program}`]
  })
  return parts.join(', ')
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n')
}

const REMOVAL = /^(delete|flush|-[DXd] |address delete)/
