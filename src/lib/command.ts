// Commands as data: the same table makes the parser and the help.

import { parseArgs } from 'node:util'
import { parseDuration } from './duration.ts'
import { nearest } from './nearest.ts'
import { wrapText } from './wrap-text.ts'

/** A command line that cannot be understood. The message says what is allowed. */
export class UsageError extends Error {}

export interface Option<T> {
  readonly help: string
  readonly short?: string | undefined
  /** Stands for the value in the help; absent for a switch. */
  readonly value?: string
  /** Undefined: the option was not given. Throws a RangeError that says what the value must be. */
  readonly read: (text: string | undefined) => T
}

export type Options = Readonly<Record<string, Option<unknown>>>

export interface Command<O extends Options = Options> {
  /** Of a command in a group, with the group: `sandbox exec`. */
  readonly name: string
  /** One line, for the list of commands. */
  readonly summary: string
  readonly about: string
  /**
   * `TO` is needed, `[FROM]` is not, `a|b` is one of these words, and a last one that ends with `...` stands for any number,
   * which may follow `--`.
   */
  readonly arguments?: readonly string[]
  readonly options: O
  /** The command takes the flags of the proxy. Those listed are shown in its help. */
  readonly proxyFlags?: Readonly<Record<string, Pick<Option<unknown>, 'value' | 'help'>>>
  /** What may be typed, and a comment. */
  readonly examples?: readonly (readonly [line: string, comment?: string])[]
  /** Paragraphs below the options: exit statuses and the like. */
  readonly notes?: readonly string[]
  run(call: Call<O>): Promise<number>
}

export interface CommandGroup {
  readonly name: string
  readonly about: string
  /** The first one runs when none is named. */
  readonly commands: readonly Command[]
}

export interface Call<O extends Options = Options> {
  readonly values: { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never }
  readonly words: readonly string[]
  /** The flags of the proxy that were given, by name. */
  readonly given: ReadonlyMap<string, unknown>
  /** Everything behind the first word of the command. */
  readonly argv: readonly string[]
}

/** Checks that `run` fits the options. */
export function command<O extends Options>(spec: Command<O>): Command {
  return spec
}

export function toggle(help: string, short?: string): Option<boolean> {
  const read = (text: string | undefined) => {
    if (text === undefined || text === 'true' || text === 'false') return text === 'true'
    throw new RangeError('must be true or false')
  }
  return { help, short, read }
}

export function text(value: string, help: string): Option<string | undefined>
export function text(value: string, help: string, otherwise: string): Option<string>
export function text(value: string, help: string, otherwise?: string): Option<string | undefined> {
  return { help: withDefault(help, otherwise), value, read: (given) => given ?? otherwise }
}

export function oneOf<const T extends string>(allowed: readonly T[], help: string): Option<T | undefined>
export function oneOf<const T extends string>(allowed: readonly T[], help: string, otherwise: T): Option<T>
export function oneOf<const T extends string>(
  allowed: readonly T[],
  help: string,
  otherwise?: T,
): Option<T | undefined> {
  const read = (given: string | undefined) => {
    if (given === undefined) return otherwise
    if ((allowed as readonly string[]).includes(given)) return given as T
    throw new RangeError(`must be one of ${allowed.join(', ')}`)
  }
  return { help: withDefault(help, otherwise), value: allowed.join('|'), read }
}

/** `text|json` */
export function output<const T extends string>(allowed: readonly T[], help: string): Option<T> {
  return { ...oneOf(allowed, help, allowed[0]!), short: 'o' }
}

export function wholeNumber(help: string, range: { min: number; max: number }): Option<number | undefined> {
  const read = (given: string | undefined) => {
    if (given === undefined) return undefined
    const number = /^\d+$/.test(given) ? Number(given) : NaN
    if (number >= range.min && number <= range.max) return number
    throw new RangeError(`must be from ${range.min} to ${range.max}`)
  }
  return { help, value: 'N', read }
}

export function duration(
  help: string,
  { least, most, usual }: Readonly<Record<'least' | 'most' | 'usual', string>>,
): Option<number> {
  const range = `from ${least} to ${most}`
  return {
    value: 'DURATION',
    help: `${help} ${range.charAt(0).toUpperCase()}${range.slice(1)}. (default ${usual})`.trimStart(),
    read: (given = usual) => {
      const ms = parseDuration(given)
      if (ms !== undefined && ms >= parseDuration(least)! && ms <= parseDuration(most)!) return ms
      throw new RangeError(`must be ${range}`)
    },
  }
}

function withDefault(help: string, otherwise: string | undefined): string {
  return otherwise === undefined ? help : `${help} (default ${otherwise})`
}

type ParserOptions = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>

export interface ParsedCommand {
  readonly isHelp: boolean
  readonly values: Call['values']
  readonly words: readonly string[]
  /** The flags of the proxy, each as one argument. */
  readonly flags: readonly string[]
  readonly errors: readonly string[]
}

/** `proxyFlags` are those that exist, for commands that take them. */
export function parseCommand(spec: Command, argv: readonly string[], proxyFlags: ParserOptions = {}): ParsedCommand {
  const { name, options } = spec
  const given = new Map<string, string>()
  const words: string[] = []
  const flags: string[] = []
  const errors: string[] = []
  let unknownAt = -1
  for (const token of tokensOf(argv, { ...proxyFlags, ...parserOptions(options) })) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const { rawName } = token
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    const value = rawName.startsWith('--') ? token.value : token.value?.replace(/^=/, '')
    if (token.name === 'help') given.set('help', 'true')
    else if (option !== undefined && option.value !== undefined && value === undefined)
      errors.push(`--${token.name} needs a value: --${token.name} ${option.value}`)
    else if (option !== undefined) given.set(token.name, value ?? 'true')
    else if (Object.hasOwn(proxyFlags, token.name)) flags.push(value === undefined ? rawName : `${rawName}=${value}`)
    else if (token.index !== unknownAt) {
      unknownAt = token.index
      errors.push(unknownOption(spec, rawName, Object.keys(proxyFlags)))
    }
  }
  const values: Record<string, unknown> = {}
  for (const [key, option] of Object.entries(options)) {
    try {
      values[key] = option.read(given.get(key))
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      errors.push(`--${key} ${error.message}, not ${JSON.stringify(given.get(key))}`)
    }
  }
  errors.push(...complainOfWords(name, spec.arguments ?? [], words))
  return { isHelp: given.has('help'), values, words, flags, errors }
}

/** Which command of a group is meant, and the arguments without its name. `help` asks for the help of the group. */
export function chooseCommand(
  { name, commands }: CommandGroup,
  argv: readonly string[],
): { readonly command: Command; readonly argv: readonly string[]; readonly isNamed: boolean } {
  const options = Object.assign({}, ...commands.map((each) => parserOptions(each.options))) as ParserOptions
  const first = tokensOf(argv, options).find(({ kind }) => kind !== 'option')
  if (first?.kind !== 'positional') return { command: commands[0]!, argv, isNamed: false }
  if (first.value === 'help') return { command: commands[0]!, argv: ['--help'], isNamed: false }
  const found = commands.find((each) => each.name === `${name} ${first.value}`)
  if (found !== undefined) return { command: found, argv: argv.toSpliced(first.index, 1), isNamed: true }
  const names = commands.map((each) => each.name.slice(name.length + 1))
  throw new UsageError(unknownCommand(`${name} ${first.value}`, first.value, names))
}

/** `shown` is what was typed, `word` the part of it that is unknown. */
export function unknownCommand(shown: string, word: string, names: readonly string[]): string {
  const near = nearest(word, names)
  return `unknown command ${shown}${near === undefined ? `; commands: ${names.join(', ')}` : ` (is ${near} meant?)`}`
}

function tokensOf(argv: readonly string[], options: ParserOptions) {
  const end = argv.indexOf('--')
  // The flags of kube-proxy may have underscores for dashes.
  const args = argv.map((each, i) =>
    end >= 0 && i > end ? each : each.replace(/^--[^=]+/, (name) => name.replaceAll('_', '-')),
  )
  return parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true }).tokens
}

function parserOptions(options: Options): ParserOptions {
  const own = Object.entries(options).map(([name, { short, value }]) => [
    name,
    { type: value === undefined ? 'boolean' : 'string', ...(short === undefined ? {} : { short }) },
  ])
  return { ...(Object.fromEntries(own) as ParserOptions), help: { type: 'boolean', short: 'h' } }
}

function unknownOption(
  { name, options, arguments: words = [] }: Command,
  option: string,
  flags: readonly string[],
): string {
  const own = Object.keys(options)
  const near = option.startsWith('--') ? nearest(option.slice(2), [...own, ...flags]) : undefined
  if (near !== undefined) return `unknown option ${option} (is --${near} meant?)`
  const more = [
    ...(flags.length === 0 ? [] : ['the flags of the proxy']),
    ...words.filter((word) => word.startsWith('[-- ')).map((word) => word.slice(1, -1)),
  ]
  return `unknown option ${option}; ${name} takes ${[...own.map((each) => `--${each}`), ...more].join(', ')}`
}

function complainOfWords(name: string, allowed: readonly string[], words: readonly string[]): string[] {
  const usage = allowed.join(' ')
  const missing = allowed.filter((each) => !each.startsWith('[')).slice(words.length)
  if (missing.length > 0) return [`${name} needs ${missing.join(' ')}: kube-proxy ${name} ${usage}`]
  const isOpen = allowed.at(-1)?.endsWith('...]') === true
  const more = isOpen ? [] : words.slice(allowed.length)
  const wrong = words.filter((word, i) => /^[a-z]/.test(allowed[i] ?? '') && !allowed[i]!.split('|').includes(word))
  return [...more, ...wrong].map(
    (word) => `${name} takes ${usage === '' ? 'no arguments' : usage}, but was given ${JSON.stringify(word)}`,
  )
}

const WIDTH = 120
/** The text beside a name that is longer begins on the next line. */
const WIDEST_OPTION = 32
const WIDEST_LINE = 64

/** `program`: how it is called. */
export function formatCommandHelp(spec: Omit<Command, 'run'>, program = 'kube-proxy'): string {
  const { about, options, proxyFlags = {}, examples = [], notes = [] } = spec
  const commented = examples.map(([line, comment]) => [
    `${program} ${line}`,
    comment === undefined ? '' : `# ${comment}`,
  ])
  return formatSections(about, [
    ['Usage', [`${program} ${usageOf(spec)}${spec.proxyFlags === undefined ? '' : ' [flags of the proxy]'}`]],
    ['Examples', formatPairs(commented, WIDEST_LINE)],
    [
      'Options',
      formatPairs([
        ...Object.entries({ ...options, ...proxyFlags }).map(describeOption),
        ['-h, --help', 'Print this text.'],
      ]),
    ],
    ...notes.map((note) => ['', wrapText(note, WIDTH)] as const),
  ])
}

export function formatGroupHelp({ about, commands }: CommandGroup): string {
  const options = Object.assign({}, ...commands.map((each) => each.options)) as Options
  return formatSections(about, [
    [
      'Commands',
      formatPairs(
        commands.map((each) => [`kube-proxy ${usageOf(each).replace(' [options]', '')}`, each.summary]),
        WIDEST_LINE,
      ),
    ],
    ['Options', formatPairs([...Object.entries(options).map(describeOption), ['-h, --help', 'Print this text.']])],
  ])
}

function formatSections(about: string, sections: readonly (readonly [string, readonly string[]])[]): string {
  const parts = sections
    .filter(([, lines]) => lines.length > 0)
    .map(([title, lines]) =>
      title === '' ? lines.join('\n') : `${title}:\n${lines.map((line) => `  ${line}`.trimEnd()).join('\n')}`,
    )
  return `${[wrapText(about, WIDTH).join('\n'), ...parts].join('\n\n')}\n`
}

function usageOf({ name, arguments: words = [] }: Omit<Command, 'run'>): string {
  return `${[name, ...words].join(' ')} [options]`
}

function describeOption([name, { short, value, help }]: readonly [string, Omit<Option<unknown>, 'read'>]): string[] {
  return [`${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`, help]
}

/** Two columns. */
export function formatPairs(pairs: readonly (readonly string[])[], widest = WIDEST_OPTION): string[] {
  const width = Math.max(0, ...pairs.map(([left = '']) => left.length).filter((length) => length <= widest)) + 2
  return pairs.flatMap(([left = '', right = '']) => {
    const lines = wrapText(right, WIDTH - 2 - width)
    if (left.length > width - 2) return right === '' ? [left] : [left, ...lines.map((line) => ' '.repeat(width) + line)]
    return lines.map((line, i) => (i === 0 ? left : '').padEnd(width) + line)
  })
}
