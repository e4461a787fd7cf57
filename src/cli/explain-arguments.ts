// The command line of explain and doctor: their own flags and arguments apart from those of the proxy.

import { flagNamed, kindOfFlag } from './parse-flags.ts'

export interface OwnFlag {
  readonly name: string
  readonly short?: string
  readonly takesValue: boolean
}

export interface SplitArguments {
  /** Values of the command's own flags; '' for those that take none. */
  readonly own: ReadonlyMap<string, string>
  readonly positional: readonly string[]
  /** The flags of the proxy. */
  readonly flags: readonly string[]
  readonly errors: readonly string[]
}

export function splitArguments(argv: readonly string[], ownFlags: readonly OwnFlag[]): SplitArguments {
  const own = new Map<string, string>()
  const positional: string[] = []
  const flags: string[] = []
  const errors: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!
    if (!argument.startsWith('-') || argument === '-') {
      positional.push(argument)
      continue
    }
    const [, name = '', inline] = /^--?([^=]*)(?:=(.*))?$/s.exec(argument) ?? []
    const flag = ownFlags.find((each) => (argument.startsWith('--') ? each.name === name : each.short === name))
    if (flag !== undefined) {
      const value = inline ?? (flag.takesValue ? argv[++i] : '')
      if (value === undefined) errors.push(`flag needs an argument: --${flag.name}`)
      else own.set(flag.name, value)
      continue
    }
    flags.push(argument)
    const spec = flagNamed(name.replaceAll('_', '-'))
    if (inline === undefined && spec !== undefined && kindOfFlag(spec).bare === undefined && i + 1 < argv.length) {
      flags.push(argv[++i]!)
    }
  }
  return { own, positional, flags, errors }
}
