// `kube-proxy test` and `kubectl kubeproxy test`, once the API server is known.

import { readFileSync, writeFileSync } from 'node:fs'
import { formatJson } from '../diagnose/format-json.ts'
import { paintFor } from '../diagnose/paint.ts'
import type { UpgradingClient } from '../kube/api-client.ts'
import { UsageError } from '../lib/command.ts'
import { messageOf } from '../lib/errors.ts'
import { type Row, rows } from './checks.ts'
import { NAMESPACE } from './objects.ts'
import { compareReports, formatJunit, formatReport, outcomeOfTest, parseReport } from './report.ts'
import { InterruptedError, runClusterTest } from './run-test.ts'

export interface TestValues {
  readonly image: string | undefined
  readonly nodes: string
  readonly skip: string
  readonly settle: number
  readonly outside: boolean
  readonly keep: boolean
  readonly json: string | undefined
  readonly junit: string | undefined
  readonly compare: string | undefined
}

/** `partly`: nothing failed, but not every node could be tried. */
const exitStatus = { passed: 0, failed: 2, partly: 3 } as const
const INTERRUPTED = 130
const MAX_CHANGES = 20

/** `program`: how it was called. */
export async function runTestCommand(
  options: TestValues,
  { program, client }: { readonly program: string; readonly client: UpgradingClient },
): Promise<number> {
  const { json, junit, compare } = options
  const skip = readSkipped(options.skip)
  const before = compare === undefined ? undefined : readEarlier(compare)
  const progress = openProgress()
  const stop = new AbortController()
  const onSignal = (): void => {
    if (stop.signal.aborted) {
      process.stderr.write(`\n${program}: stays behind: namespace ${NAMESPACE}; the next test removes it\n`)
      process.exit(INTERRUPTED)
    }
    stop.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
  try {
    const report = await runClusterTest({
      client,
      program,
      image: options.image,
      nodes: listOf(options.nodes),
      settleMs: options.settle,
      outside: options.outside,
      skip,
      keep: options.keep,
      signal: stop.signal,
      onProgress: (line) => progress.show(line),
    })
    progress.end()
    if (json !== undefined) write(json, formatJson(report))
    if (junit !== undefined) write(junit, formatJunit(report))
    process.stdout.write(formatReport(report, paintFor(process.stdout, process.env)))
    if (options.keep) process.stdout.write(`\nEverything is left in namespace ${NAMESPACE}.\n`)
    const changes = before === undefined ? undefined : compareReports(before, report)
    if (changes !== undefined) process.stdout.write(`\n${formatChanges(compare!, changes)}`)
    if ((changes?.length ?? 0) > 0) return exitStatus.failed
    return exitStatus[outcomeOfTest(report)]
  } catch (error) {
    if (!(error instanceof InterruptedError)) throw error
    progress.end()
    process.stderr.write(`${program}: interrupted; nothing is left in the cluster\n`)
    return INTERRUPTED
  } finally {
    progress.end()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, onSignal)
  }
}

function listOf(text: string): string[] {
  return text.split(',').flatMap((each) => (each.trim() === '' ? [] : [each.trim()]))
}

function readSkipped(text: string): Set<Row> {
  const names = listOf(text)
  const unknown = names.find((name) => !(rows as readonly string[]).includes(name))
  if (unknown !== undefined) throw new UsageError(`--skip takes ${rows.join(', ')}, not ${JSON.stringify(unknown)}`)
  return new Set(names as Row[])
}

function readEarlier(file: string): NonNullable<ReturnType<typeof parseReport>> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`Cannot compare with ${file}: ${messageOf(error)}`, { cause: error })
  }
  const report = parseReport(text)
  if (report === undefined) throw new Error(`Cannot compare with ${file}: it is no result of kube-proxy test --json`)
  return report
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw new Error(`Cannot write the result to ${file}: ${messageOf(error)}`, { cause: error })
  }
}

function formatChanges(file: string, changes: readonly string[]): string {
  if (changes.length === 0) return `As in ${file}: nothing changed.\n`
  const more = changes.length - MAX_CHANGES
  const lines = changes.slice(0, MAX_CHANGES).map((line) => `  ${line}\n`)
  return `Otherwise than in ${file}:\n${lines.join('')}${more > 0 ? `  and ${more} more\n` : ''}`
}

/** On a terminal one line that changes; elsewhere a line for each step. */
function openProgress(): { show(text: string): void; end(): void } {
  const { stderr } = process
  let last = ''
  if (!stderr.isTTY) {
    const show = (text: string): void => {
      // Counts change all the time; what is counted does not.
      const step = text.replace(/: \d.*/, '')
      if (step !== last) stderr.write(`${step}\n`)
      last = step
    }
    return { show, end: () => {} }
  }
  return {
    show(text) {
      last = text.slice(0, Math.max(20, (stderr.columns || 80) - 1))
      stderr.write(`\r\x1b[2K${last}`)
    },
    end() {
      if (last !== '') stderr.write('\r\x1b[2K')
      last = ''
    },
  }
}
