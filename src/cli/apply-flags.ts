// Flags -> configuration: as the whole configuration without --config, as the few that outrank a file with it.

import { ConfigError, type FieldError } from '../lib/errors.ts'
import { completeConfiguration } from '../config/complete.ts'
import { appendPort, applyDefaults, healthzPort, metricsPort } from '../config/defaults.ts'
import { warnOfFeatureGate } from '../config/feature-gates.ts'
import type { LoadResult } from '../config/load.ts'
import type { AvailableModes } from '../config/modes.ts'
import { settle } from '../config/settle.ts'
import type { KubeProxyConfiguration } from '../config/types.ts'
import { validateConfiguration } from '../config/validate.ts'
import { valueAt } from '../config/value-at.ts'
import { writePath, type Draft, type FlagSpec } from './flag-spec.ts'
import { allFlags, hasPeriodsOfIpvs } from './flags.ts'
import { flagNamed, invalidArgument, kindOfFlag } from './parse-flags.ts'
import type { FlagValue } from '../config/run-options.ts'

type Given = ReadonlyMap<string, unknown>

/** The configuration that results from flags alone. Throws a ConfigError that names the flags. */
export function configurationFromFlags(given: Given, modes: AvailableModes): LoadResult {
  const completed = completeConfiguration(withPorts(applyTo(settle(applyDefaults({})), given, () => true)), modes)
  const errors = validateConfiguration(completed.config, modes)
  if (errors.length > 0) throw new ConfigError(errors.map((error) => namingFlag(error, given)))
  const minSyncFlag = hasPeriodsOfIpvs(completed.config) ? 'ipvs-min-sync-period' : 'iptables-min-sync-period'
  return {
    loaded: {
      config: completed.config,
      mode: completed.mode,
      minSyncPeriod: given.has(minSyncFlag) ? 'given' : 'defaulted',
    },
    warnings: Object.entries(completed.config.featureGates).flatMap(([name, on]) => warnOfFeatureGate(name, on) ?? []),
  }
}

/** Addresses given without a port get the default one; an empty address, which turns a server off, stays. */
function withPorts(config: KubeProxyConfiguration): KubeProxyConfiguration {
  return {
    ...config,
    healthzBindAddress: appendPort(config.healthzBindAddress, healthzPort),
    metricsBindAddress: appendPort(config.metricsBindAddress, metricsPort),
  }
}

/** Applies the flags that are effective beside a configuration file. */
export function overrideByFlags(config: KubeProxyConfiguration, given: Given): KubeProxyConfiguration {
  return applyTo(config, given, (spec) => spec.withConfig === 'outranks')
}

function applyTo(
  config: KubeProxyConfiguration,
  given: Given,
  isApplied: (spec: FlagSpec) => boolean,
): KubeProxyConfiguration {
  const draft = structuredClone(config) as Draft
  // In the table's order, which is not the command line's: some flags ask what others have set.
  for (const spec of [...allFlags].sort((a, b) => applyOrder(a) - applyOrder(b))) {
    if (!given.has(spec.name) || !isApplied(spec)) continue
    const value = given.get(spec.name)
    try {
      applyFlag(draft, spec, value, given)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      const text = kindOfFlag(spec).print(value)
      throw new ConfigError([{ path: '', message: invalidArgument(text, `--${spec.name}`, error.message) }], {
        cause: error,
      })
    }
  }
  return draft
}

/** Simple settings, the mode among them, are in place before flags that look at them. */
function applyOrder(spec: FlagSpec): number {
  return spec.field === undefined ? 1 : 0
}

function applyFlag(draft: Draft, spec: FlagSpec, value: unknown, given: Given): void {
  // An address given as nothing at all leaves the default, as in kube-proxy.
  if ((spec.kind === 'ip' || spec.kind === 'ipPort') && value === '') return
  if (spec.field !== undefined) writePath(draft, spec.field, value)
  ;(spec.apply as ((draft: Draft, value: unknown, given: Given) => void) | undefined)?.(draft, value, given)
}

/** Warnings about flags that have no effect, are old, or are outranked by a configuration file. */
export function warnOfFlags(given: Given): string[] {
  const ignored = given.has('config')
    ? [...given.keys()].filter((name) => isIgnoredWithConfig(flagNamed(name))).map((name) => `--${name}`)
    : []
  const warnings = [...given.keys()].flatMap((name) => {
    const warning = flagNamed(name)?.warning
    return warning === undefined ? [] : [`Flag --${name} is deprecated: ${warning}`]
  })
  if (given.get('logtostderr') !== false) {
    for (const name of ['log-dir', 'log-file']) {
      if (given.has(name)) warnings.push(`Flag --${name} has no effect without --logtostderr=false`)
    }
  }
  if (ignored.length === 0) return warnings
  return [...warnings, `These flags are ignored because --config is given: ${ignored.join(', ')}`]
}

function isIgnoredWithConfig(spec: FlagSpec | undefined): boolean {
  return spec !== undefined && (spec.field !== undefined || spec.apply !== undefined) && spec.withConfig === undefined
}

/** Every flag with the value that it has, for /flagz and for the log. */
export function flagValues(given: Given): FlagValue[] {
  const defaults = settle(applyDefaults({}))
  return allFlags.map((spec) => ({
    name: spec.name,
    value: given.has(spec.name) ? kindOfFlag(spec).print(given.get(spec.name)) : printDefault(spec, defaults),
  }))
}

/** A flag's default, as pflag prints it; empty when it is empty. */
export function printDefault(spec: FlagSpec, defaults: KubeProxyConfiguration = settle(applyDefaults({}))): string {
  const value = spec.field === undefined ? spec.default : valueAt(defaults, spec.field)
  return value === undefined || value === null ? printZero(spec) : kindOfFlag(spec).print(value)
}

function printZero({ kind }: FlagSpec): string {
  if (kind === 'bool') return 'false'
  return kind === 'int32' ? '0' : kind === 'duration' ? '0s' : ''
}

/** Replaces the field's path by the flag that set it. */
function namingFlag(error: FieldError, given: Given): FieldError {
  const path = error.path.replace(/\[\d+\]$/, '')
  const spec = allFlags.find((each) => given.has(each.name) && pathsOf(each).some((own) => covers(own, path)))
  return spec === undefined ? error : { ...error, path: `--${spec.name}` }
}

function pathsOf(spec: FlagSpec): string[] {
  return [...(spec.field === undefined ? [] : [spec.field.replace(/Ms$/, '')]), ...(spec.errorPaths ?? [])]
}

function covers(own: string, path: string): boolean {
  return path === own || path.startsWith(`${own}.`)
}
