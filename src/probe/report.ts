// What a test has shown: as text, as JSON, as JUnit, and compared with an earlier one. Pure.

import { type Row, rows } from './checks.ts'
import type { Paint } from '../diagnose/paint.ts'
import { count } from '../lib/count.ts'
import type { CheckResult, Finding } from './findings.ts'
import type { Verdict } from './verdict.ts'

export interface ProxyOfNode {
  readonly node: string
  /** `kube-system/kube-proxy-x7k2p`; undefined: no such pod is on the node. */
  readonly pod: string | undefined
  readonly isOurs: boolean
}

export interface TestReport {
  readonly version: 1
  readonly nodes: readonly string[]
  readonly families: readonly number[]
  readonly tookMs: number
  readonly checks: readonly ReportedCheck[]
  readonly findings: readonly (Finding & { readonly next: string })[]
  /** What could not be tried, and why. */
  readonly notTried: readonly string[]
  readonly notes: readonly string[]
}

export interface ReportedCheck {
  readonly id: string
  readonly row: Row
  readonly node: string
  readonly verdict: Verdict['kind']
  readonly reason: string
}

export function reportedCheck({ check, verdict }: CheckResult): ReportedCheck {
  return { id: check.id, row: check.row, node: check.proxy, verdict: verdict.kind, reason: verdict.reason }
}

/** `passed`: all was tried and is as it has to be. `partly`: nothing failed, but not all was tried. */
export function outcomeOfTest({ checks, notTried }: TestReport): 'passed' | 'failed' | 'partly' {
  if (checks.some(({ verdict }) => verdict === 'fail')) return 'failed'
  return notTried.length > 0 ? 'partly' : 'passed'
}

export function nextCommand(node: string | undefined, proxies: readonly ProxyOfNode[], program: string): string {
  if (node === undefined) return `${program} test --keep   # then look at the Services of namespace kube-proxy-test`
  const proxy = proxies.find((each) => each.node === node)
  if (proxy?.pod === undefined) return `kube-proxy doctor   # on ${node}; no pod of a proxy is there`
  const [namespace, pod] = proxy.pod.split('/')
  if (proxy.isOurs) return `kubectl -n ${namespace} exec ${pod} -- /usr/local/bin/kube-proxy doctor`
  return `kubectl -n ${namespace} logs ${pod}`
}

/** Lines of what measuring checks have shown. */
export function describeMeasures(results: readonly CheckResult[]): string[] {
  const measured = results.flatMap(({ verdict }) => verdict.measured ?? [])
  const of = measured.reduce((sum, each) => sum + each.of, 0)
  if (of === 0) return []
  const failed = measured.reduce((sum, each) => sum + each.failed, 0)
  return [`With one of two endpoints refusing, ${failed} of ${of} connections failed (dead endpoint).`]
}

const MAX_COLUMNS = 8

export function formatReport(report: TestReport, paint: Paint): string {
  const { checks, findings, notTried, notes, tookMs } = report
  const failed = checks.filter(({ verdict }) => verdict === 'fail').length
  const passed = checks.filter(({ verdict }) => verdict === 'pass').length
  const seconds = `${(tookMs / 1000).toFixed(1)} s`
  const headline =
    failed > 0
      ? paint('bad', `${failed} of ${count(failed + passed, 'check')} failed`)
      : paint('good', `${count(passed, 'check')} passed`)
  return [
    formatTable(report, paint),
    '',
    `${headline}, on ${count(report.nodes.length, 'node')}, in ${seconds}.`,
    ...findings.flatMap(({ headline: what, why, next }) => [
      '',
      paint('bold', what),
      `  Why: ${why}`,
      `  Next: ${next}`,
    ]),
    ...(notTried.length === 0 ? [] : ['', 'Not tried:', ...notTried.map((line) => `  ${line}`)]),
    ...(notes.length === 0 ? [] : ['', ...notes]),
    '',
  ].join('\n')
}

/** A line for each kind of check, a column for each node; of many nodes, those where something failed. */
function formatTable({ nodes, checks }: TestReport, paint: Paint): string {
  const failing = nodes.filter((node) => checks.some((check) => check.node === node && check.verdict === 'fail'))
  const shown = nodes.length <= MAX_COLUMNS ? nodes : failing.slice(0, MAX_COLUMNS)
  const others = nodes.filter((node) => !shown.includes(node))
  const columns = [...shown.map((node) => [node]), ...(others.length > 0 ? [others] : [])]
  const titles = [...shown, ...(others.length > 0 ? [`${others.length} ${shown.length > 0 ? 'others' : 'nodes'}`] : [])]
  const widths = titles.map((title) => Math.max(title.length, 12))
  const first = Math.max(...rows.map((row) => row.length))
  const lines = rows
    .filter((row) => checks.some((check) => check.row === row))
    .map((row) => {
      const cells = columns.map((names, i) => {
        const [text, how] = cellOf(checks.filter((check) => check.row === row && names.includes(check.node)))
        return paint(how, text.padEnd(widths[i]!))
      })
      return `${row.padEnd(first)}  ${cells.join('  ')}`.trimEnd()
    })
  const head = `${''.padEnd(first)}  ${titles.map((title, i) => title.padEnd(widths[i]!)).join('  ')}`.trimEnd()
  return [paint('bold', head), ...lines].join('\n')
}

function cellOf(checks: readonly ReportedCheck[]): [string, 'good' | 'bad' | 'dim'] {
  const tried = checks.filter(({ verdict }) => verdict !== 'not tried')
  const failed = tried.filter(({ verdict }) => verdict === 'fail').length
  if (tried.length === 0) return ['-', 'dim']
  return failed === 0 ? [`ok ${tried.length}`, 'good'] : [`FAIL ${failed}/${tried.length}`, 'bad']
}

/** One suite for each kind of check. */
export function formatJunit({ checks, tookMs }: TestReport): string {
  const suites = rows
    .map((row) => [row, checks.filter((check) => check.row === row)] as const)
    .filter(([, cases]) => cases.length > 0)
  const counts = (cases: readonly ReportedCheck[]): string => {
    const of = (kind: Verdict['kind']) => cases.filter(({ verdict }) => verdict === kind).length
    return `tests="${cases.length}" failures="${of('fail')}" errors="0" skipped="${of('not tried')}"`
  }
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="kube-proxy test" ${counts(checks)} time="${(tookMs / 1000).toFixed(3)}">`,
    ...suites.flatMap(([row, cases]) => [
      `  <testsuite name="${escapeXml(row)}" ${counts(cases)}>`,
      ...cases.map(formatCase),
      '  </testsuite>',
    ]),
    '</testsuites>',
    '',
  ].join('\n')
}

function formatCase({ id, row, verdict, reason }: ReportedCheck): string {
  const head = `    <testcase classname="${escapeXml(row)}" name="${escapeXml(id)}"`
  if (verdict === 'pass') return `${head}/>`
  const tag = verdict === 'fail' ? 'failure' : 'skipped'
  return `${head}><${tag} message="${escapeXml(reason)}"/></testcase>`
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

function escapeXml(text: string): string {
  // What XML 1.0 cannot hold even when escaped goes.
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '').replace(/[&<>"']/g, (each) => entities[each]!)
}

/** What is otherwise than in an earlier test, a sentence each. */
export function compareReports(before: TestReport, now: TestReport): string[] {
  const old = new Map(before.checks.map((check) => [check.id, check]))
  const changed = now.checks.flatMap(({ id, verdict, reason }) => {
    const was = old.get(id)
    if (was === undefined) return [`new: ${id}: ${verdict}`]
    if (was.verdict === verdict) return []
    return [`${was.verdict}, now ${verdict}: ${id}${reason === '' ? '' : `: ${reason}`}`]
  })
  const present = new Set(now.checks.map(({ id }) => id))
  const gone = before.checks.filter(({ id }) => !present.has(id)).map(({ id }) => `no longer tried: ${id}`)
  return [...changed, ...gone]
}

/** Undefined when the text is no report of this version. */
export function parseReport(text: string): TestReport | undefined {
  try {
    const report = JSON.parse(text) as Partial<TestReport>
    const isOne = report.version === 1 && Array.isArray(report.checks)
    return isOne ? (report as TestReport) : undefined
  } catch {
    return undefined
  }
}
