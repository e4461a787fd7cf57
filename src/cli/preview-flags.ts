// The command lines of `kube-proxy plan` and `kube-proxy render`: a few flags of their own, and those of the proxy.

import { modeNames } from '../modes/all.ts'
import { scriptReaders, type ScriptReader } from '../modes/rehearsal.ts'

/** The flags of a command, taken out; the rest is for the proxy. */
export interface OwnFlags {
  readonly own: ReadonlyMap<string, string>
  readonly rest: readonly string[]
}

/** Takes `--name=value` and `--name value` out for these names; `-o` is `--output`. */
export function takeFlags(argv: readonly string[], names: readonly string[]): OwnFlags {
  const own = new Map<string, string>()
  const rest: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i]!.replace(/^-o(?==|$)/, '--output').replace(/^-o(?=.)/, '--output=')
    const [, name = '', value] = /^--([\w-]+)(?:=(.*))?$/s.exec(arg) ?? []
    if (!names.includes(name)) rest.push(argv[i]!)
    else own.set(name, value ?? argv[++i] ?? '')
  }
  return { own, rest }
}

/** Throws a RangeError that names the flag, its value and what is allowed. */
export function oneOf<T extends string>(own: OwnFlags['own'], name: string, allowed: readonly T[]): T | undefined {
  const value = own.get(name)
  if (value === undefined || (allowed as readonly string[]).includes(value)) return value as T | undefined
  throw new RangeError(`--${name} must be ${allowed.join(', ')}, not ${JSON.stringify(value)}`)
}

export const familyNames = ['4', '6'] as const
export const programNames = Object.keys(scriptReaders) as ScriptReader[]
export { modeNames }

/** A whole number from 1 on. */
export function countOf(own: OwnFlags['own'], name: string, otherwise: number): number {
  const text = own.get(name)
  if (text === undefined) return otherwise
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new RangeError(`--${name} must be a whole number from 1 on, not ${JSON.stringify(text)}`)
}
