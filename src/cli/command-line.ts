// The command line, as a function. Exit status, as kube-proxy's: 0 when all went well, 1 otherwise.

import { writeFileSync } from 'node:fs'
import { ConfigError, messageOf } from '../lib/errors.ts'
import type { RunOptions } from '../config/run-options.ts'
import { modes } from '../modes/all.ts'
import { parseFlags } from './parse-flags.ts'
import { formatVersion } from './version.ts'

const exitStatus = { ok: 0, failure: 1 } as const

/** Runs the program and answers its exit status. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  // kube-proxy forgives an empty argument, which templates leave behind.
  if (/^[^-]/.test(argv[0] ?? '')) return (await import('./run-command.ts')).runCommand(argv)
  const { given, errors } = parseFlags(argv)
  if (given.get('help') === true) {
    const { formatHelp } = await import('./help.ts')
    process.stdout.write(formatHelp(modes))
    return exitStatus.ok
  }
  if (errors.length > 0) return refuse(errors)
  const version = formatVersion(given.get('version') as string | undefined)
  if (version !== undefined) {
    process.stdout.write(version)
    return exitStatus.ok
  }
  return run(given)
}

async function run(given: ReadonlyMap<string, unknown>): Promise<number> {
  const [{ openLogging }, { surviveClosedStreams }, { loadRunOptions }] = await Promise.all([
    import('./logging.ts'),
    import('../lib/log-sinks.ts'),
    import('./load-options.ts'),
  ])
  surviveClosedStreams()
  const logging = openLogging(given)
  // At -v=4 an error comes with the place that it was thrown at.
  const explain = (error: unknown) => {
    if (error instanceof Error) logging.log.v(4)?.info('Stack of the error', { stack: error.stack })
  }
  process.on('uncaughtException', (error) => {
    logging.log.error(error, 'Unexpected error')
    explain(error)
    process.exit(exitStatus.failure)
  })
  let options: RunOptions
  try {
    options = await loadRunOptions(given, logging)
  } catch (error) {
    explain(error)
    if (!(error instanceof ConfigError)) return refuse([messageOf(error)])
    return refuse(error.message.split('\n'), given.get('config') as string | undefined)
  }
  try {
    await execute(given, options)
    return exitStatus.ok
  } catch (error) {
    logging.log.error(error, 'Error running kube-proxy')
    explain(error)
    return exitStatus.failure
  }
}

/** What the flags ask for. The code of each command is loaded when it is asked for. */
async function execute(given: ReadonlyMap<string, unknown>, options: RunOptions): Promise<void> {
  const writeConfigTo = given.get('write-config-to')
  if (typeof writeConfigTo === 'string' && writeConfigTo !== '') return writeConfiguration(writeConfigTo, options)
  if (given.get('cleanup') === true || given.get('cleanup-iptables') === true) {
    return (await import('../compose/cleanup.ts')).runCleanup(options)
  }
  if (given.get('cleanup-leftovers') === true) {
    return (await import('../compose/cleanup.ts')).runLeftoverCleanup(options)
  }
  if (given.get('init-only') === true) return (await import('../compose/init-only.ts')).runInitOnly(options)
  // First of all, and before the rest is loaded: the operator sees at once that it has started.
  options.log.info('Version info', { version: options.version, node: process.version })
  return (await import('../compose/run.ts')).runProxy(options, async (running) => {
    const { judgeRunning } = await import('../diagnose/check/judge-running.ts')
    return judgeRunning(running, options.warnings())
  })
}

async function writeConfiguration(file: string, { config, log }: RunOptions): Promise<void> {
  const { encodeConfiguration } = await import('../config/encode.ts')
  try {
    writeFileSync(file, encodeConfiguration(config))
  } catch (error) {
    throw new Error(`Cannot write the configuration to ${file}: ${messageOf(error)}`, { cause: error })
  }
  log.info('Wrote configuration', { file })
}

/** Says what is wrong with the command line, or with the file. */
function refuse(errors: readonly string[], file: string = ''): number {
  const prefix = file === '' ? 'kube-proxy: ' : `kube-proxy: Cannot use the configuration file ${file}: `
  const text =
    errors.length === 1
      ? `${prefix}${errors[0]}\n`
      : `${prefix}${errors.length} errors:\n${errors.map((error) => `  ${error}\n`).join('')}`
  process.stderr.write(`${text}See kube-proxy --help\n`)
  return exitStatus.failure
}
