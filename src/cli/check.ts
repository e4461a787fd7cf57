// `kube-proxy check`: the command line, as a function. Exit status: 0 when the proxy can run here, 1 otherwise.

import { exitStatusOf, formatJson, formatText } from '../diagnose/check/format.ts'
import { refusedConfiguration, runCheck } from '../diagnose/check/run-check.ts'
import type { RunOptions } from '../config/run-options.ts'
import { ConfigError, messageOf } from '../lib/errors.ts'
import { silentLogger, type LogSettings } from '../lib/log.ts'
import { formatCheckHelp } from './check-help.ts'
import { loadRunOptions } from './load-options.ts'
import { parseFlags } from './parse-flags.ts'
import { gitVersion } from './version.ts'

export interface CheckArguments {
  readonly output: 'text' | 'json'
  /** The flags of the proxy. */
  readonly flags: readonly string[]
  /** What is wrong with the arguments of the command itself. */
  readonly error?: string
}

/** Runs the check and answers its exit status. */
export async function runCheckCommand(argv: readonly string[]): Promise<number> {
  const { output, flags, error } = parseCheckArguments(argv)
  const { given, errors } = parseFlags(flags)
  if (given.get('help') === true) {
    process.stdout.write(formatCheckHelp())
    return 0
  }
  const wrong = [...(error === undefined ? [] : [error]), ...errors]
  if (wrong.length > 0) {
    process.stderr.write(`${wrong.map((each) => `kube-proxy: ${each}\n`).join('')}See kube-proxy check --help\n`)
    return 1
  }
  const report = await check(given)
  process.stdout.write(output === 'json' ? formatJson(report) : formatText(report))
  return exitStatusOf(report.findings)
}

/** Takes `-o json` and `--output=json` out; the rest is for the proxy. */
export function parseCheckArguments(argv: readonly string[]): CheckArguments {
  const flags: string[] = []
  let output = 'text'
  for (let i = 0; i < argv.length; i++) {
    const [, inline] = /^(?:-o=?|--output=)(.+)$/s.exec(argv[i]!) ?? []
    if (inline !== undefined) output = inline
    else if (argv[i] === '-o' || argv[i] === '--output') output = argv[++i] ?? ''
    else flags.push(argv[i]!)
  }
  if (output === 'text' || output === 'json') return { output, flags }
  return { output: 'text', flags, error: `--output must be text or json, not ${JSON.stringify(output)}` }
}

/** What would be logged at the start becomes a part of the report. */
async function check(given: ReadonlyMap<string, unknown>): ReturnType<typeof runCheck> {
  const warnings: string[] = []
  const log = { ...silentLogger, warn: (message: string) => void warnings.push(message) }
  const settings: LogSettings = { format: () => '', sink: () => {}, verbosity: 0, now: () => 0 }
  let options: RunOptions
  try {
    options = await loadRunOptions(given, { log, settings, apply: () => {} })
  } catch (error) {
    const file = (given.get('config') as string | undefined) ?? ''
    const prefix = file === '' || !(error instanceof ConfigError) ? '' : `${file}: `
    return refusedConfiguration(prefix + messageOf(error).replaceAll('\n', '; '), gitVersion)
  }
  return runCheck(options, warnings)
}
