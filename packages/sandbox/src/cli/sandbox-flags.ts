// The command line behind `kube-proxy sandbox`.

import { MAX_NODES } from '../address-plan.ts'
import { nearest } from '../../../../src/lib/nearest.ts'
import { modeNames } from '../../../../src/modes/all.ts'

/** What is asked for. */
export type SandboxCommand =
  | { readonly verb: 'help' }
  | StartCommand
  | { readonly verb: 'exec'; readonly name: string | undefined; readonly place: string; readonly command: string[] }
  | { readonly verb: 'status'; readonly name: string | undefined; readonly output: 'text' | 'json' }
  | { readonly verb: 'mode'; readonly name: string | undefined; readonly node: string; readonly mode: string }
  | { readonly verb: 'api-server'; readonly name: string | undefined; readonly where: 'away' | 'back' }
  | { readonly verb: 'kubeconfig' | 'down'; readonly name: string | undefined }

export interface StartCommand {
  readonly verb: 'start'
  readonly name: string | undefined
  readonly nodes: number
  readonly mode: string
  readonly stack: 'IPv4' | 'dual'
  readonly content: 'example' | 'empty'
  readonly life: 'foreground' | 'detached'
  /** Further flags for each node's proxy. */
  readonly proxyFlags: readonly string[]
}

type Verb = SandboxCommand['verb']

interface FlagSpec {
  /** What stands for the value; absent for flags that have none. */
  readonly value?: string
  readonly help: string
  readonly verbs: readonly Verb[]
}

export const sandboxFlags: Readonly<Record<string, FlagSpec>> = {
  nodes: { value: 'N', help: 'How many nodes. Default: 2.', verbs: ['start'] },
  'proxy-mode': { value: 'MODE', help: `One of ${modeNames.join(', ')}. Default: nftables.`, verbs: ['start'] },
  'dual-stack': { help: 'IPv6 beside IPv4 for nodes, pods and services.', verbs: ['start'] },
  empty: { help: 'Start without the example.', verbs: ['start'] },
  detach: { help: 'Return when it is ready, and leave it running until `sandbox down`.', verbs: ['start'] },
  name: {
    value: 'NAME',
    help: 'Which sandbox, where there are several. Default: the one there is, or the one named sandbox.',
    verbs: ['start', 'exec', 'mode', 'api-server', 'kubeconfig', 'status', 'down'],
  },
  output: { value: 'json', help: 'Print JSON.', verbs: ['status'] },
  help: { help: 'Print this text.', verbs: ['start', 'exec', 'mode', 'api-server', 'kubeconfig', 'status', 'down'] },
}

const shorthands: Readonly<Record<string, string>> = { '-d': '--detach', '-o': '--output', '-h': '--help' }
const verbs: readonly Verb[] = ['exec', 'mode', 'api-server', 'kubeconfig', 'status', 'down']

/** Throws an Error that says what is wrong. */
export function parseSandboxArguments(argv: readonly string[]): SandboxCommand {
  const dashes = argv.indexOf('--')
  const own = dashes < 0 ? argv : argv.slice(0, dashes)
  const rest = dashes < 0 ? [] : argv.slice(dashes + 1)
  const { flags, words } = splitArguments(own)
  const verb = verbOf(words)
  if (flags.has('help') || words[0] === 'help') return { verb: 'help' }
  for (const name of flags.keys()) {
    if (!sandboxFlags[name]!.verbs.includes(verb)) throw new Error(`--${name} means nothing for sandbox ${verb}`)
  }
  const name = flags.get('name')
  if (verb === 'exec') return execCommand(name, words.slice(1), rest)
  if (verb === 'start') return startCommand(flags, rest)
  if (verb === 'api-server') return apiServerCommand(name, [...words.slice(1), ...rest])
  if (verb === 'mode') return modeCommand(name, [...words.slice(1), ...rest])
  if (words.length > 1 || rest.length > 0) throw new Error(`sandbox ${verb} takes no ${words[1] ?? rest[0]}`)
  return verb === 'status' ? { verb, name, output: outputOf(flags) } : { verb, name }
}

function splitArguments(argv: readonly string[]): { flags: Map<string, string>; words: string[] } {
  const flags = new Map<string, string>()
  const words: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const argument = shorthands[argv[i]!] ?? argv[i]!
    if (!argument.startsWith('-')) {
      words.push(argument)
      continue
    }
    const [, name = '', inline] = /^--?([^=]+)(?:=([\s\S]*))?$/.exec(argument) ?? []
    const spec = Object.hasOwn(sandboxFlags, name) ? sandboxFlags[name]! : unknownFlag(argument, name)
    const value = inline ?? (spec.value === undefined ? 'true' : argv[++i])
    if (value === undefined) throw new Error(`--${name} needs a value: --${name}=${spec.value}`)
    if (spec.value !== undefined || value !== 'false') flags.set(name, value)
  }
  return { flags, words }
}

function unknownFlag(argument: string, name: string): never {
  const meant = nearest(name, Object.keys(sandboxFlags))
  const hint = meant === undefined ? '; flags of the proxies follow a --' : `, perhaps --${meant} is meant`
  throw new Error(`unknown flag ${argument.replace(/=.*/s, '')}${hint}`)
}

function verbOf([word]: readonly string[]): Exclude<Verb, 'help'> {
  if (word === undefined || word === 'up' || word === 'help') return 'start'
  if ((verbs as readonly string[]).includes(word)) return word as Exclude<Verb, 'help'>
  const meant = nearest(word, verbs)
  const hint = meant === undefined ? '' : `, perhaps ${meant} is meant`
  throw new Error(`unknown command sandbox ${word}${hint}`)
}

function startCommand(flags: ReadonlyMap<string, string>, proxyFlags: readonly string[]): StartCommand {
  const nodes = Number(flags.get('nodes') ?? '2')
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES) {
    throw new Error(`--nodes must be from 1 to ${MAX_NODES}, not ${JSON.stringify(flags.get('nodes'))}`)
  }
  const mode = flags.get('proxy-mode') ?? 'nftables'
  mustBeMode('--proxy-mode', mode)
  return {
    verb: 'start',
    name: flags.get('name'),
    nodes,
    mode,
    stack: flags.has('dual-stack') ? 'dual' : 'IPv4',
    content: flags.has('empty') ? 'empty' : 'example',
    life: flags.has('detach') ? 'detached' : 'foreground',
    proxyFlags,
  }
}

function execCommand(name: string | undefined, words: readonly string[], rest: readonly string[]): SandboxCommand {
  const [place, ...unseparated] = words
  if (place === undefined) throw new Error('sandbox exec needs a pod or a node: sandbox exec node-1 -- ip address')
  return { verb: 'exec', name, place, command: [...unseparated, ...rest] }
}

function modeCommand(name: string | undefined, [node, mode, ...more]: readonly string[]): SandboxCommand {
  if (node === undefined || mode === undefined || more.length > 0) {
    throw new Error('sandbox mode needs a node and a mode: sandbox mode node-1 iptables')
  }
  mustBeMode('the mode', mode)
  return { verb: 'mode', name, node, mode }
}

function apiServerCommand(name: string | undefined, [where, ...more]: readonly string[]): SandboxCommand {
  if ((where !== 'away' && where !== 'back') || more.length > 0) {
    throw new Error('sandbox api-server needs to know where it is: sandbox api-server away, sandbox api-server back')
  }
  return { verb: 'api-server', name, where }
}

function mustBeMode(what: string, mode: string): void {
  if (modeNames.includes(mode)) return
  throw new Error(`${what} must be one of ${modeNames.join(', ')}, not ${JSON.stringify(mode)}`)
}

function outputOf(flags: ReadonlyMap<string, string>): 'text' | 'json' {
  const output = flags.get('output') ?? 'text'
  if (output !== 'text' && output !== 'json') throw new Error(`--output must be json, not ${JSON.stringify(output)}`)
  return output
}
