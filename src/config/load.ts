// Loads a configuration file: decodes, fills in defaults, applies flags, validates.

import { ConfigError, formatFieldError, type FieldError } from '../lib/errors.ts'
import { completeConfiguration } from './complete.ts'
import { decodeConfiguration } from './decode.ts'
import { applyDefaults } from './defaults.ts'
import { warnOfFeatureGate } from './feature-gates.ts'
import { type AvailableModes, blockOf } from './modes.ts'
import { settle } from './settle.ts'
import type { KubeProxyConfiguration, LoadedConfiguration } from './types.ts'
import { validateConfiguration } from './validate.ts'

export interface LoadOptions {
  readonly modes: AvailableModes
  /** Applies the flags that outrank the file. */
  readonly override?: (config: KubeProxyConfiguration) => KubeProxyConfiguration
}

export interface LoadResult {
  readonly loaded: LoadedConfiguration
  readonly warnings: readonly string[]
}

/** Throws a ConfigError with all errors. */
export function loadConfiguration(text: string, { modes, override }: LoadOptions): LoadResult {
  const { values, lines, warnings } = decodeConfiguration(text)
  const settled = settle(applyDefaults(values))
  const minSyncPeriodPath = `${blockOf(settled.mode).periods}.minSyncPeriod`
  const completed = completeConfiguration(override?.(settled) ?? settled, modes)
  const errors = validateConfiguration(completed.config, modes)
  if (errors.length > 0) throw new ConfigError(errors.map((error) => withLine(error, lines)))
  return {
    loaded: {
      config: completed.config,
      mode: completed.mode,
      // Zero means the default here: Go writes 0s for what was never set.
      minSyncPeriod: lines.has(minSyncPeriodPath) && isSet(values, minSyncPeriodPath) ? 'given' : 'defaulted',
    },
    warnings: [
      ...warnings.map(lenientWarning),
      ...Object.entries(completed.config.featureGates).flatMap(([name, on]) => warnOfFeatureGate(name, on) ?? []),
    ],
  }
}

function isSet(values: Readonly<Record<string, unknown>>, path: string): boolean {
  const [block, name] = path.split('.') as [string, string]
  return (values[block] as Record<string, unknown>)[`${name}Ms`] !== 0
}

function lenientWarning(warning: FieldError): string {
  return `Configuration file: ${formatFieldError(warning)}`
}

/** Adds the line of the field, or of the nearest part of its path in the file. */
function withLine(error: FieldError, lines: ReadonlyMap<string, number>): FieldError {
  let path = error.path
  while (path !== '' && !lines.has(path)) path = path.replace(/(^|\.)[^.[]*$|\[\d+\]$/, '')
  return { ...error, line: lines.get(path) }
}
