// From the command line to what the program runs with.

import { readFileSync } from 'node:fs'
import type { LoadResult } from '../config/load.ts'
import type { RunOptions } from '../config/run-options.ts'
import { configurationFromFlags, flagValues, overrideByFlags, warnOfFlags } from './apply-flags.ts'
import { modes } from '../modes/all.ts'
import { silentLogger } from '../lib/log.ts'
import type { Logging } from './logging.ts'
import { buildOrigin } from './build-info.ts'
import { textOf } from './parse-flags.ts'
import { gitVersion } from './version.ts'

type Given = ReadonlyMap<string, unknown>

/** The log, and the warnings that were logged. */
interface Warned {
  readonly logging: Logging
  readonly ofFlags: readonly string[]
  ofFile: readonly string[]
}

/** Reads the configuration, opens the log as it says, and logs warnings. Throws a ConfigError. */
export async function loadRunOptions(given: Given, logging: Logging): Promise<RunOptions> {
  const warned: Warned = { logging, ofFlags: warnOfFlags(given), ofFile: [] }
  for (const warning of warned.ofFlags) logging.log.warn(warning)
  const configFile = textOf(given, 'config')
  const fromFile = configFile === '' ? undefined : await loadFile(configFile, given, warned)
  const result = fromFile?.result ?? configurationFromFlags(given, modes)
  putIntoForce(result, warned)
  const flags = flagValues(given)
  for (const { name, value } of flags) logging.log.v(1)?.info(`FLAG: --${name}=${JSON.stringify(value)}`)
  const version = textOf(given, 'version')
  return {
    ...result.loaded,
    log: logging.log,
    logSettings: logging.settings,
    master: textOf(given, 'master'),
    manifests: textOf(given, 'manifests'),
    configFile: fromFile === undefined ? undefined : configFile,
    configurationChanges: fromFile?.changes,
    standIns: standIns(given),
    controlSocket: textOf(given, 'control-socket'),
    flowLog: textOf(given, 'flow-log'),
    flags,
    version: version.startsWith('v') ? version : gitVersion,
    warnings: () => [...warned.ofFlags, ...warned.ofFile],
    build: buildOrigin,
  }
}

/** The same for a command that only looks: nothing is logged, and warnings go to `warn`. */
export function loadQuietly(given: Given, warn: (message: string) => void = () => {}): Promise<RunOptions> {
  const settings = { format: () => '', sink: () => {}, verbosity: 0, now: () => 0 }
  return loadRunOptions(given, { log: { ...silentLogger, warn }, settings, apply: () => {} })
}

/** As if `--hostname-override` said so. */
export function withNode(given: Given, nodeName: string): Given {
  return nodeName === '' ? given : new Map([...given, ['hostname-override', nodeName]])
}

async function loadFile(
  path: string,
  given: Given,
  warned: Warned,
): Promise<{ result: LoadResult; changes: NonNullable<RunOptions['configurationChanges']> }> {
  // The YAML parser is only needed with a file.
  const [{ loadConfiguration }, { configurationChanges, unreadable }] = await Promise.all([
    import('../config/load.ts'),
    import('./config-changes.ts'),
  ])
  const text = readText(path, unreadable)
  const options = { modes, override: (config) => overrideByFlags(config, given) } satisfies Parameters<
    typeof loadConfiguration
  >[1]
  const result = loadConfiguration(text, options)
  const onAccepted = (accepted: LoadResult) => putIntoForce(accepted, warned)
  return {
    result,
    changes: (signal) => configurationChanges({ path, text, loaded: result.loaded, options, onAccepted }, signal),
  }
}

/** While everything waits: there is nothing else to do yet, and Node's other way of reading takes longer to load than this. */
function readText(path: string, unreadable: (path: string, error: unknown) => Error): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw unreadable(path, error)
  }
}

function putIntoForce({ loaded, warnings }: LoadResult, warned: Warned): void {
  const { logging } = warned
  warned.ofFile = warnings
  logging.apply(loaded.config.logging)
  for (const warning of warnings) logging.log.warn(warning)
}

function standIns(given: Given): RunOptions['standIns'] {
  if (given.get('strict-proxy-mode') === true) return 'refused'
  return given.get('userspace-fallback') === true ? 'with userspace' : 'allowed'
}
