// `kube-proxy COMMAND` and `kube-proxy help`.

import {
  type Call,
  chooseCommand,
  type Command,
  type CommandGroup,
  formatCommandHelp,
  formatGroupHelp,
  parseCommand,
  unknownCommand,
  UsageError,
} from '../lib/command.ts'
import { messageOf } from '../lib/errors.ts'
import { modes } from '../modes/all.ts'
import { arrivals, askingCommands, commands, probe, sandbox } from './commands.ts'
import { allFlags } from './flags.ts'
import { loadOptional } from './load-optional.ts'
import { kindOfFlag, parseFlags } from './parse-flags.ts'

const proxyFlags = Object.fromEntries(
  allFlags.map((spec) => [
    spec.name,
    {
      type: kindOfFlag(spec).bare === undefined ? ('string' as const) : ('boolean' as const),
      ...(spec.short === undefined ? {} : { short: spec.short }),
    },
  ]),
)

/** Answers the exit status. */
export async function runCommand([word = '', ...argv]: readonly string[]): Promise<number> {
  const usageStatus = word === sandbox.name ? sandbox.usageStatus : 1
  try {
    if (word === 'help') return print(await helpOn(argv))
    if (word === sandbox.name) return await runInGroup(await sandbox.load(), argv)
    const command = commandNamed(word)
    return await run(command, argv, argv)
  } catch (error) {
    const lines = messageOf(error).split('\n')
    process.stderr.write(lines.map((line) => `kube-proxy: ${line}\n`).join(''))
    if (!(error instanceof UsageError)) return 1
    const isKnown = word === sandbox.name || commands.some(({ name }) => name === word)
    process.stderr.write(`See kube-proxy ${isKnown ? `${word} --help` : 'help'}\n`)
    return usageStatus
  }
}

/** Undefined: the command is not one of these, or it is to run here. */
async function runInSandbox(word: string, argv: readonly string[]): Promise<number | undefined> {
  const asking = askingCommands.find((name) => name === word)
  if (asking === undefined) return undefined
  return (await loadOptional(import('../../packages/sandbox/src/cli/sandbox-ask.ts')))?.runInSandbox(asking, argv)
}

async function runInGroup(group: CommandGroup, argv: readonly string[]): Promise<number> {
  const { command, argv: own, isNamed } = chooseCommand(group, argv)
  if (!isNamed && parseCommand(command, own).isHelp) return print(formatGroupHelp(group))
  return run(command, own, argv)
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

async function run(spec: Command, own: readonly string[], argv: readonly string[]): Promise<number> {
  const parsed = parseCommand(spec, own, spec.proxyFlags === undefined ? {} : proxyFlags)
  if (parsed.isHelp) return print(formatCommandHelp(spec))
  const { given, errors } = parseFlags(parsed.flags)
  const wrong = [...parsed.errors, ...errors]
  if (wrong.length > 0) throw new UsageError(wrong.join('\n'))
  const elsewhere = await runInSandbox(spec.name, argv)
  if (elsewhere !== undefined) return elsewhere
  const call: Call = { values: parsed.values, words: parsed.words, given, argv }
  return spec.run(call)
}

function commandNamed(word: string): Command {
  const found = [...commands, probe, arrivals].find(({ name }) => name === word)
  if (found !== undefined) return found
  throw new UsageError(
    unknownCommand(
      word,
      word,
      [...commands, sandbox].map(({ name }) => name),
    ),
  )
}

async function helpOn([word, ...argv]: readonly string[]): Promise<string> {
  if (word === undefined) return (await import('./help.ts')).formatHelp(modes)
  if (word !== sandbox.name) return formatCommandHelp(commandNamed(word))
  const group = await sandbox.load()
  return argv.length === 0 ? formatGroupHelp(group) : formatCommandHelp(chooseCommand(group, argv).command)
}
