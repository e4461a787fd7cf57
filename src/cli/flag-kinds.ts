// The kinds of value that a flag takes, each with pflag's reading of the text. A reader answers the value, or throws a
// RangeError that says what is allowed.

import { appendPort } from '../config/defaults.ts'
import { parseFlowLogTarget } from '../flows/flow-log-target.ts'
import { isHostPort } from '../config/checks.ts'
import { durationForm, formatDuration, parseDuration } from '../lib/duration.ts'
import { parseIp } from '../lib/ip.ts'
import { parseQuantity } from '../lib/quantity.ts'
import type { VmodulePattern } from '../lib/log-vmodule.ts'

export interface FlagKind<T> {
  /** The word for the value in `--help`. */
  readonly word: string
  /** The value that a flag without one gets; only such flags may stand without a value. */
  readonly bare?: string
  /** `before` is the value of earlier uses of the same flag: lists and maps grow, everything else is replaced. */
  read(text: string, before: T | undefined): T
  /** The value as `--help` and /flagz print it. */
  print(value: T): string
}

function kindOf<T>(word: string, read: FlagKind<T>['read'], print: FlagKind<T>['print'] = String): FlagKind<T> {
  return { word, read, print }
}

function wrong(message: string): never {
  throw new RangeError(message)
}

const trueWords: readonly string[] = ['1', 't', 'T', 'TRUE', 'true', 'True']
const falseWords: readonly string[] = ['0', 'f', 'F', 'FALSE', 'false', 'False']

function parseBool(text: string): boolean {
  if (trueWords.includes(text)) return true
  return falseWords.includes(text) ? false : wrong('must be true or false')
}

/** Go's ParseInt with base 0: 0x, 0o and 0b, and a leading 0 for octal. */
function parseInteger(text: string, low: number, high: number): number {
  const match = /^([+-]?)(0[xX][\da-fA-F]+|0[oO]?[0-7]*|0[bB][01]+|[1-9]\d*)$/.exec(text.replace(/(?<=\w)_(?=\w)/g, ''))
  const digits = match?.[2]?.replace(/^0[oO]?(?=[0-7])/, '0o')
  const value = digits === undefined ? NaN : Number(digits) * (match?.[1] === '-' ? -1 : 1)
  return value >= low && value <= high ? value : wrong(`must be a whole number from ${low} to ${high}`)
}

const maxInt32 = 2 ** 31 - 1

export const flagKinds = {
  string: kindOf<string>(
    'string',
    (text) => text,
    (value) => value,
  ),
  bool: { ...kindOf<boolean>('bool', parseBool), bare: 'true' },
  boolOrAnnotated: {
    ...kindOf<boolean | 'annotated'>('true|annotated', (text) => (text === 'annotated' ? text : parseBool(text))),
    bare: 'true',
  },
  int32: kindOf<number>('int', (text) => parseInteger(text, -maxInt32 - 1, maxInt32)),
  level: kindOf<number>('level', (text) => parseInteger(text, 0, maxInt32)),
  uint64: kindOf<number>('int', (text) => parseInteger(text, 0, Number.MAX_SAFE_INTEGER)),
  float: kindOf<number>('number', (text) => {
    const value = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : NaN
    return Number.isFinite(value) ? value : wrong('must be a number')
  }),
  duration: kindOf<number>('duration', (text) => parseDuration(text) ?? wrong(durationForm), formatDuration),
  ip: kindOf<string>('IP', (text) => {
    return text === '' || parseIp(text) !== undefined ? text : wrong('must be an IP address')
  }),
  ipPort: kindOf<string>('IP[:port]', (text) => {
    if (text === '') return text
    const problem = isHostPort(appendPort(text, 1))
    return problem === undefined ? text : wrong(problem)
  }),
  strings: kindOf<readonly string[]>(
    'a,b,...',
    (text, before = []) => [...before, ...(text === '' ? [] : text.split(',').map((item) => item.trim()))],
    (value) => `[${value.join(',')}]`,
  ),
  bools: kindOf<Readonly<Record<string, boolean>>>(
    'name=bool,...',
    (text, before = {}) => ({ ...before, ...Object.fromEntries(pairsOf(text)) }),
    (value) =>
      Object.entries(value)
        .map(([name, on]) => `${name}=${on}`)
        .sort()
        .join(','),
  ),
  vmodule: kindOf<readonly VmodulePattern[]>(
    'pattern=N,...',
    (text, before = []) => [...before, ...text.split(',').filter(Boolean).map(parsePattern)],
    (value) => value.map(({ filePattern, verbosity }) => `${filePattern}=${verbosity}`).join(','),
  ),
  quantity: kindOf<number>('quantity', (text) => {
    return parseQuantity(text) ?? wrong('must be a quantity such as "512", "1K" or "2Ki"')
  }),
  portRange: kindOf<string>('a-b', (text) => {
    return isPortRange(text) ? text : wrong('must be a port range such as "30000-32767" or "30000+100"')
  }),
  flowLog: kindOf<string>(
    'FILE|otlp(URL)',
    (text) => {
      parseFlowLogTarget(text)
      return text
    },
    (value) => value,
  ),
  severity: kindOf<number>('severity', (text) => {
    const index = ['INFO', 'WARNING', 'ERROR', 'FATAL'].indexOf(text.toUpperCase())
    if (index >= 0) return index
    return /^[0-3]$/.test(text) ? Number(text) : wrong('must be INFO, WARNING, ERROR, FATAL or 0 to 3')
  }),
  version: {
    ...kindOf<string>('true|raw', (text) => {
      if (text === 'raw' || /^v\d/.test(text)) return text
      return String(parseBool(text))
    }),
    bare: 'true',
  },
} as const

export type FlagKindName = keyof typeof flagKinds

function pairsOf(text: string): [string, boolean][] {
  return text
    .split(',')
    .filter(Boolean)
    .map((pair) => {
      const [name, value, ...rest] = pair.split('=').map((part) => part.trim())
      if (name === undefined || value === undefined || rest.length > 0)
        return wrong('must be pairs such as "name=true"')
      try {
        return [name, parseBool(value)]
      } catch {
        return wrong(`the value of ${name} must be true or false, not ${JSON.stringify(value)}`)
      }
    })
}

function parsePattern(text: string): VmodulePattern {
  const match = /^([^=]+)=(\d+)$/.exec(text)
  if (match === null) return wrong(`${JSON.stringify(text)} does not have the pattern=N format`)
  return { filePattern: match[1]!, verbosity: parseInteger(match[2]!, 0, maxInt32) }
}

/** `a-b`, `a+n` or a single port; 0-0 and empty mean any. */
function isPortRange(text: string): boolean {
  const [, first, sign, second = first] = /^(\d+)(?:([-+])(\d+))?$/.exec(text.trim()) ?? []
  const last = Number(second) + (sign === '+' ? Number(first) : 0)
  return text.trim() === '' || (last >= Number(first) && last <= 65535)
}
