// argv -> flags, in pflag's syntax: --x=y, --x y, --bool, --bool=false, -v=4, -v 4, -v4, underscores for dashes, --.

import { nearest } from '../lib/nearest.ts'
import { flagKinds, type FlagKind } from './flag-kinds.ts'
import type { FlagSpec } from './flag-spec.ts'
import { allFlags } from './flags.ts'

export interface ParsedFlags {
  /** The values of the flags that were given, by name. */
  readonly given: ReadonlyMap<string, unknown>
  /** Everything that is wrong with the command line; empty when it can be used. */
  readonly errors: readonly string[]
}

const byName: ReadonlyMap<string, FlagSpec> = new Map(allFlags.map((spec) => [spec.name, spec]))
const byShort: ReadonlyMap<string, FlagSpec> = new Map(
  allFlags.flatMap((spec) => (spec.short === undefined ? [] : [[spec.short, spec] as const])),
)

/** The flag of a name. */
export function flagNamed(name: string): FlagSpec | undefined {
  return byName.get(name)
}

/** The text that a flag was given; empty when it was not. */
export function textOf(given: ReadonlyMap<string, unknown>, name: string): string {
  return (given.get(name) as string | undefined) ?? ''
}

/** The kind of a flag, with its value's type forgotten. */
export function kindOfFlag(spec: FlagSpec): FlagKind<unknown> {
  return flagKinds[spec.kind]
}

/** Reads a command line, without the program's name. */
export function parseFlags(argv: readonly string[]): ParsedFlags {
  const reader = new ArgvReader(argv)
  reader.parseAll()
  return { given: reader.given, errors: reader.errors }
}

class ArgvReader {
  readonly given = new Map<string, unknown>()
  readonly errors: string[] = []
  readonly #argv: readonly string[]
  #next = 0

  constructor(argv: readonly string[]) {
    this.#argv = argv
  }

  parseAll(): void {
    let flagsEnded = false
    while (this.#next < this.#argv.length) {
      const argument = this.#argv[this.#next++]!
      if (flagsEnded || !argument.startsWith('-') || argument === '-') this.#rejectArgument(argument)
      else if (argument === '--') flagsEnded = true
      else if (argument.startsWith('--')) this.#readLong(argument)
      else this.#readShort(argument)
    }
  }

  #rejectArgument(argument: string): void {
    // kube-proxy forgives empty arguments, which templates leave behind.
    if (argument !== '') this.errors.push(`kube-proxy takes no arguments, but was given ${JSON.stringify(argument)}`)
  }

  #readLong(argument: string): void {
    const [written, value] = splitOnce(argument.slice(2))
    const name = written.replaceAll('_', '-')
    const spec = byName.get(name)
    if (spec !== undefined) return this.#use(spec, `--${name}`, value)
    if (name === '' || name.startsWith('-')) {
      this.errors.push(`bad flag syntax: ${argument}`)
      return
    }
    const like = nearest(name, byName.keys())
    this.errors.push(`unknown flag: --${written}${like === undefined ? '' : ` (is --${like} meant?)`}`)
    // What follows may be its value rather than an argument: one error for one mistake.
    if (value === undefined && this.#argv[this.#next]?.startsWith('-') === false) this.#next++
  }

  /** -v=4, -v 4, -v4, and several switches in one: -hv4. */
  #readShort(argument: string): void {
    for (let i = 1; i < argument.length; i++) {
      const spec = byShort.get(argument[i]!)
      if (spec === undefined) {
        const name = splitOnce(argument.slice(1))[0].replaceAll('_', '-')
        const hint = byName.has(name) ? ` (is --${name} meant?)` : ''
        this.errors.push(`unknown shorthand flag: '${argument[i]}' in ${argument}${hint}`)
        return
      }
      const label = `-${spec.short}, --${spec.name}`
      const rest = argument.slice(i + 1)
      if (rest.startsWith('=')) return this.#use(spec, label, rest.slice(1))
      if (kindOfFlag(spec).bare === undefined) return this.#use(spec, label, rest === '' ? undefined : rest)
      this.#use(spec, label, undefined)
    }
  }

  #use(spec: FlagSpec, label: string, value: string | undefined): void {
    const kind = kindOfFlag(spec)
    const text = value ?? kind.bare ?? this.#argv[this.#next++]
    if (text === undefined) {
      this.errors.push(`flag needs an argument: ${label}`)
      return
    }
    try {
      this.given.set(spec.name, kind.read(text, this.given.get(spec.name)))
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      this.errors.push(invalidArgument(text, label, error.message))
    }
  }
}

/** pflag's words for a value that a flag does not take. */
export function invalidArgument(text: string, label: string, reason: string): string {
  return `invalid argument ${JSON.stringify(text)} for ${JSON.stringify(label)} flag: ${reason}`
}

function splitOnce(text: string): [string, string | undefined] {
  const equals = text.indexOf('=')
  return equals < 0 ? [text, undefined] : [text.slice(0, equals), text.slice(equals + 1)]
}
