// `kube-proxy check`, and with `--from` what another mode changes.

import { exitStatusOf, formatReportJson, formatText } from '../diagnose/check/format.ts'
import { refusedConfiguration, runCheck } from '../diagnose/check/run-check.ts'
import type { RunOptions } from '../config/run-options.ts'
import {
  exitStatusOf as exitStatusOfLeaving,
  formatLeavingJson,
  formatText as formatLeaving,
} from '../diagnose/leave/format.ts'
import { type Leaving, runLeaving } from '../diagnose/leave/run-leaving.ts'
import { UsageError } from '../lib/command.ts'
import { ConfigError, messageOf } from '../lib/errors.ts'
import { loadQuietly } from './load-options.ts'
import { gitVersion } from './version.ts'

/** 0 when the proxy can run here, 1 otherwise. */
export async function runCheckCommand(output: 'text' | 'json', given: ReadonlyMap<string, unknown>): Promise<number> {
  const report = await check(given)
  process.stdout.write(output === 'json' ? formatReportJson(report) : formatText(report))
  return exitStatusOf(report.findings)
}

/** 0 when nothing is lost or different, 1 when something is, 2 when it cannot be said. */
export async function runLeavingCommand(
  leaving: Leaving,
  output: 'text' | 'json',
  given: ReadonlyMap<string, unknown>,
): Promise<number> {
  try {
    if (leaving.from === leaving.to) throw new UsageError(`--from and --to are both ${leaving.to}`)
    // What is set is for the new mode, which may have what the default mode has not.
    const asked = given.has('proxy-mode') ? given : new Map([...given, ['proxy-mode', leaving.to]])
    const report = await runLeaving(leaving, await loadQuietly(asked, () => {}))
    process.stdout.write(output === 'json' ? formatLeavingJson(report) : formatLeaving(report))
    return exitStatusOfLeaving(report.changes)
  } catch (error) {
    process.stderr.write(`kube-proxy: ${messageOf(error)}\n`)
    return 2
  }
}

/** What a start would log as warnings becomes a part of the report. */
async function check(given: ReadonlyMap<string, unknown>): ReturnType<typeof runCheck> {
  const warnings: string[] = []
  let options: RunOptions
  try {
    options = await loadQuietly(given, (message) => warnings.push(message))
  } catch (error) {
    const file = (given.get('config') as string | undefined) ?? ''
    const prefix = file === '' || !(error instanceof ConfigError) ? '' : `${file}: `
    return refusedConfiguration(prefix + messageOf(error).replaceAll('\n', '; '), gitVersion)
  }
  return runCheck(options, warnings)
}
