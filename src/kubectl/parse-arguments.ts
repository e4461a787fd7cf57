// The command line of kubectl-kubeproxy: options of its own, and words that go to the proxy of a node as they are.

import { UsageError } from '../lib/command.ts'

export interface PluginOptions {
  readonly kubeconfig: string
  readonly context: string
  /** Where the proxies' pods are. */
  readonly namespace: string
  readonly node: string | undefined
  /** For nodes that run another kube-proxy. */
  readonly image: string | undefined
  readonly file: string | undefined
  readonly timeoutMs: number
  readonly isHelp: boolean
}

export interface ParsedArguments {
  readonly command: string | undefined
  readonly options: PluginOptions
  /** Of the command, in their order. */
  readonly words: readonly string[]
}

const OWN = ['kubeconfig', 'context', 'namespace', 'node', 'image', 'file', 'timeout'] as const
const SHORT: Readonly<Record<string, (typeof OWN)[number]>> = { n: 'namespace', f: 'file' }

/** What is behind `--` goes to the proxy, whatever it is called. */
export function parseArguments(argv: readonly string[]): ParsedArguments {
  const values = new Map<string, string>()
  const rest: string[] = []
  let isHelp = false
  for (let i = 0; i < argv.length; i++) {
    const each = argv[i]!
    if (each === '--') {
      rest.push(...argv.slice(i + 1))
      break
    }
    const [, long, short, inline] = /^(?:--([a-z-]+)|-([a-z]))(?:=(.*))?$/s.exec(each) ?? []
    const name = long ?? SHORT[short ?? '']
    if (each === '--help' || each === '-h') isHelp = true
    else if (name !== undefined && (OWN as readonly string[]).includes(name)) {
      const value = inline ?? argv[++i]
      if (value === undefined || value === '') throw new UsageError(`--${name} needs a value`)
      values.set(name, value)
    } else rest.push(each)
  }
  const [command, ...words] = rest
  if (command?.startsWith('-') === true) throw new UsageError(`unknown option ${command}; the command comes first`)
  const timeout = values.get('timeout') ?? '30'
  const seconds = /^\d+(\.\d+)?s?$/.test(timeout) ? parseFloat(timeout) : NaN
  if (!(seconds > 0)) throw new UsageError(`--timeout must be a number of seconds, not ${JSON.stringify(timeout)}`)
  return {
    command,
    words,
    options: {
      kubeconfig: values.get('kubeconfig') ?? '',
      context: values.get('context') ?? '',
      namespace: values.get('namespace') ?? 'kube-system',
      node: values.get('node'),
      image: values.get('image'),
      file: values.get('file'),
      timeoutMs: seconds * 1000,
      isHelp,
    },
  }
}
