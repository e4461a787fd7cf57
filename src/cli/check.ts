// `kube-proxy check`. Exit status: 0 when the proxy can run here, 1 otherwise.

import { exitStatusOf, formatReportJson, formatText } from '../diagnose/check/format.ts'
import { refusedConfiguration, runCheck } from '../diagnose/check/run-check.ts'
import type { RunOptions } from '../config/run-options.ts'
import { ConfigError, messageOf } from '../lib/errors.ts'
import { loadQuietly } from './load-options.ts'
import { gitVersion } from './version.ts'

export async function runCheckCommand(output: 'text' | 'json', given: ReadonlyMap<string, unknown>): Promise<number> {
  const report = await check(given)
  process.stdout.write(output === 'json' ? formatReportJson(report) : formatText(report))
  return exitStatusOf(report.findings)
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
