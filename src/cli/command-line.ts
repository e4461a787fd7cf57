// The command line, as a function. Exit status, as kube-proxy's: 0 when all went well, 1 otherwise.

import { writeFileSync } from 'node:fs'
import { ConfigError, messageOf } from '../lib/errors.ts'
import type { RunOptions } from '../config/run-options.ts'
import { modes } from '../modes/all.ts'
import { loadOptional } from './load-optional.ts'
import { parseFlags } from './parse-flags.ts'
import { formatVersion } from './version.ts'

const exitStatus = { ok: 0, failure: 1 } as const

/** Runs the program and answers its exit status. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  if (argv[0] === 'sandbox') return runSandbox(argv.slice(1))
  if (argv[0] === 'check') return (await import('./check.ts')).runCheckCommand(argv.slice(1))
  if (argv[0] === 'doctor' || argv[0] === 'explain' || argv[0] === 'top') return runAsking(argv[0], argv.slice(1))
  if (argv[0] === 'ui') return runUi(argv.slice(1))
  if (argv[0] === 'plan') return (await import('./preview.ts')).runPlanCommand(argv.slice(1))
  if (argv[0] === 'render') return (await import('./preview.ts')).runRenderCommand(argv.slice(1))
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

/** The sandbox is for people who try things; an image for nodes may leave its folder out. */
async function runSandbox(argv: readonly string[]): Promise<number> {
  const command = await loadOptional(import('../../packages/sandbox/src/cli/sandbox.ts'))
  if (command !== undefined) return command.runSandboxCommand(argv)
  process.stderr.write('kube-proxy: Cannot run a sandbox: this installation was made without it; a checkout has it\n')
  return exitStatus.failure
}

/** Of the proxy of this node or, on a machine that runs a sandbox instead, of a node of it. */
async function runAsking(command: 'doctor' | 'explain' | 'top', argv: readonly string[]): Promise<number> {
  const sandbox = await loadOptional(import('../../packages/sandbox/src/cli/sandbox-ask.ts'))
  const status = await sandbox?.runInSandbox(command, argv)
  if (status !== undefined) return status
  switch (command) {
    case 'doctor':
      return (await import('./doctor.ts')).runDoctorCommand(argv)
    case 'explain':
      return (await import('./explain.ts')).runExplainCommand(argv)
    case 'top':
      return (await import('./top.ts')).runTopCommand(argv)
  }
}

/** Nor does a node need the page, unless it was asked for. */
async function runUi(argv: readonly string[]): Promise<number> {
  const command = await loadOptional(import('./ui.ts'))
  if (command !== undefined) return command.runUiCommand(argv)
  process.stderr.write('kube-proxy: Cannot show a page: this installation was made without it; a checkout has it\n')
  return exitStatus.failure
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
