// The rules of a whole configuration. All errors are collected, each with its path in the file.

import { formatDuration } from '../lib/duration.ts'
import type { FieldError } from '../lib/errors.ts'
import { parseCidr } from '../lib/ip.ts'
import { isCidr } from './checks.ts'
import { checkFeatureGate, featureEnabled } from './feature-gates.ts'
import type { FieldTable, LeafField } from './field-kinds.ts'
import { nameInMemory } from './field-kinds.ts'
import { configurationFields } from './fields.ts'
import { type AvailableModes, blockOf, checkMode } from './modes.ts'
import type { KubeProxyConfiguration } from './types.ts'

/** All errors of a completed configuration. */
export function validateConfiguration(config: KubeProxyConfiguration, modes: AvailableModes): FieldError[] {
  const modeProblem = checkMode(config.mode, modes, config.featureGates)
  return [
    ...checkFields(configurationFields, config as unknown as Record<string, unknown>, '', config.mode),
    ...(modeProblem === undefined ? [] : [{ path: 'mode', value: config.mode, message: modeProblem }]),
    ...checkFeatureGates(config),
    ...checkPeriods(config),
    ...checkNodePortAddresses(config),
    ...checkDetectLocal(config),
    ...checkLogging(config),
    ...checkSocketBalancing(config, modes),
    ...checkBalance(config, modes),
  ]
}

/** The rules of single fields, from the table. */
function checkFields(table: FieldTable, values: Record<string, unknown>, path: string, mode: string): FieldError[] {
  return Object.entries(table).flatMap(([name, field]) => {
    const value = values[nameInMemory(name, field)]
    const fieldPath = path === '' ? name : `${path}.${name}`
    // Fields that settle() took for the active mode have no value any more.
    if (value === undefined) return []
    if (field.kind !== 'object') return checkField(field, value, fieldPath)
    if (field.onlyInMode !== undefined && field.onlyInMode !== mode) return []
    return checkFields(field.fields, value as Record<string, unknown>, fieldPath, mode)
  })
}

function checkField(field: LeafField, value: unknown, path: string): FieldError[] {
  if (field.kind === 'strings' && field.each !== undefined) {
    return checkEach(value as readonly string[], field.each, path)
  }
  const message = (field.check as ((value: unknown) => string | undefined) | undefined)?.(value)
  return message === undefined ? [] : [{ path, value: printable(field, value), message }]
}

function printable(field: LeafField, value: unknown): unknown {
  return field.kind === 'duration' || field.kind === 'duration|nanos' ? formatDuration(value as number) : value
}

function checkFeatureGates({ featureGates }: KubeProxyConfiguration): FieldError[] {
  return Object.entries(featureGates).flatMap(([name, value]) => {
    const message = checkFeatureGate(name, value)
    return message === undefined ? [] : [{ path: `featureGates.${name}`, value, message }]
  })
}

function checkPeriods({ mode, syncPeriodMs, minSyncPeriodMs }: KubeProxyConfiguration): FieldError[] {
  const block = blockOf(mode).periods
  const path = `${block}.syncPeriod`
  const minPath = `${block}.minSyncPeriod`
  if (syncPeriodMs <= 0) return [{ path, value: formatDuration(syncPeriodMs), message: 'must be greater than 0' }]
  if (minSyncPeriodMs < 0) {
    return [{ path: minPath, value: formatDuration(minSyncPeriodMs), message: 'must be greater than or equal to 0' }]
  }
  if (minSyncPeriodMs <= syncPeriodMs) return []
  const message = `must be greater than or equal to ${minPath}, which is ${formatDuration(minSyncPeriodMs)}`
  return [{ path, value: formatDuration(syncPeriodMs), message }]
}

function checkBalance({ balance, mode }: KubeProxyConfiguration, modes: AvailableModes): FieldError[] {
  const facts = modes.find(({ name }) => name === mode)
  if (balance === '' || facts === undefined || facts.balances.includes(balance)) return []
  const able = modes.filter(({ balances }) => balances.includes(balance)).map(({ name }) => name)
  // The check of the field says what is no way to choose at all.
  if (able.length === 0) return []
  return [{ path: 'balance', value: balance, message: `is not for mode ${mode}; it is for ${able.join(', ')}` }]
}

/** A process that connects does not know how a mode weighs or counts endpoints. */
function checkSocketBalancing({ socketBalancing, mode }: KubeProxyConfiguration, modes: AvailableModes): FieldError[] {
  const facts = modes.find(({ name }) => name === mode)
  if (socketBalancing === '' || facts === undefined || facts.choosesAtRandom) return []
  const able = modes.filter(({ choosesAtRandom }) => choosesAtRandom).map(({ name }) => name)
  const message = `must be empty in mode ${mode}, which has its own way to choose; it is for ${able.join(' and ')}`
  return [{ path: 'socketBalancing', value: socketBalancing, message }]
}

const nodePortKeywords: readonly string[] = ['primary', 'localhost', 'all']

function checkNodePortAddresses({ nodePortAddresses }: KubeProxyConfiguration): FieldError[] {
  return nodePortAddresses.flatMap((value, i) => {
    const path = `nodePortAddresses[${i}]`
    if (nodePortKeywords.includes(value)) {
      return nodePortAddresses.indexOf(value) < i ? [{ path, message: `Duplicate value: "${value}"` }] : []
    }
    return isCidr(value) === undefined
      ? []
      : [{ path, value, message: "must be a CIDR or one of the keywords 'primary', 'localhost', 'all'" }]
  })
}

function checkDetectLocal({ detectLocalMode, detectLocal }: KubeProxyConfiguration): FieldError[] {
  const empty = (name: 'bridgeInterface' | 'interfaceNamePrefix'): FieldError[] =>
    detectLocal[name] === ''
      ? [
          {
            path: `detectLocal.${name}`,
            value: '',
            message: `must not be empty when detectLocalMode is ${detectLocalMode}`,
          },
        ]
      : []
  switch (detectLocalMode) {
    case 'BridgeInterface':
      return empty('bridgeInterface')
    case 'InterfaceNamePrefix':
      return empty('interfaceNamePrefix')
    case 'ClusterCIDR':
      return checkClusterCidrs(detectLocal.clusterCIDRs)
    default:
      return []
  }
}

function checkClusterCidrs(cidrs: readonly string[]): FieldError[] {
  const path = 'clusterCIDR'
  const pair = 'must be either a single CIDR or a dual-stack pair of CIDRs (e.g. 10.100.0.0/16,fde4:8dba:82e1::/48)'
  if (cidrs.length > 2) return [{ path, value: cidrs.join(','), message: pair }]
  const errors = checkEach(cidrs, isCidr, path)
  if (errors.length > 0 || cidrs.length < 2) return errors
  const families = new Set(cidrs.map((cidr) => parseCidr(cidr)?.family))
  return families.size === 2 ? [] : [{ path, value: cidrs.join(','), message: pair }]
}

function checkEach(
  values: readonly string[],
  check: (value: string) => string | undefined,
  path: string,
): FieldError[] {
  return values.flatMap((value, i) => {
    const message = check(value)
    return message === undefined ? [] : [{ path: `${path}[${i}]`, value, message }]
  })
}

function checkLogging({ logging, featureGates }: KubeProxyConfiguration): FieldError[] {
  const errors: FieldError[] = []
  if (logging.vmodule.length > 0 && logging.format !== 'text') {
    errors.push({ path: 'logging.vmodule', message: 'Forbidden: only supported for the text log format' })
  }
  logging.vmodule.forEach(({ filePattern, verbosity }, i) => {
    const path = `logging.vmodule[${i}]`
    if (filePattern === '') errors.push({ path, message: 'Required value: the file pattern must not be empty' })
    if (/[=,]/.test(filePattern)) {
      errors.push({ path, value: filePattern, message: 'the file pattern must not contain an equal sign or a comma' })
    }
    if (verbosity > 2 ** 31 - 1) errors.push({ path, value: verbosity, message: `must be at most ${2 ** 31 - 1}` })
  })
  if (featureEnabled(featureGates, 'LoggingAlphaOptions')) return errors
  for (const format of ['text', 'json'] as const) {
    const { splitStream, infoBufferSize } = logging.options[format]
    const message = 'Forbidden: needs the feature gate LoggingAlphaOptions'
    if (splitStream) errors.push({ path: `logging.options.${format}.splitStream`, message })
    if (infoBufferSize !== 0) errors.push({ path: `logging.options.${format}.infoBufferSize`, message })
  }
  return errors
}
