// `kube-proxy explain`: the command line, as a function.

import { explain, prepare, type KernelState } from '../diagnose/explain/explain.ts'
import type { Explanation } from '../diagnose/explain/explanation.ts'
import { formatJson } from '../diagnose/explain/format-json.ts'
import { formatText } from '../diagnose/explain/format-text.ts'
import type { Known } from '../diagnose/explain/known.ts'
import { paintFor } from '../diagnose/explain/paint.ts'
import { FRONTEND_KINDS, isFrontendKind, type Question } from '../diagnose/explain/question.ts'
import { readKernelFor } from '../diagnose/explain/read-kernel.ts'
import type { Sender } from '../diagnose/explain/send.ts'
import { messageOf } from '../lib/errors.ts'
import type { SandboxPod } from './explain-sandbox.ts'
import { type OwnFlag, splitArguments, type SplitArguments } from './explain-arguments.ts'
import { formatExplainHelp } from './explain-help.ts'
import { readKnown } from './explain-known.ts'
import { loadOptional } from './load-optional.ts'
import { parseFlags } from './parse-flags.ts'

const OWN_FLAGS: readonly OwnFlag[] = [
  { name: 'output', short: 'o', takesValue: true },
  { name: 'help', short: 'h', takesValue: false },
  { name: 'via', takesValue: true },
  { name: 'family', takesValue: true },
  { name: 'node', takesValue: true },
  { name: 'dump', takesValue: true },
  { name: 'node-addresses', takesValue: true },
  { name: 'send', takesValue: false },
  { name: 'sandbox', takesValue: true },
]

const OUTPUTS = ['text', 'json', 'svg', 'mermaid'] as const

export const explainStatus = { sent: 0, failure: 1, notSent: 2, differs: 3 } as const

/** Explains and answers the exit status. */
export async function runExplainCommand(argv: readonly string[]): Promise<number> {
  const split = splitArguments(argv, OWN_FLAGS)
  if (split.own.has('help')) {
    process.stdout.write(formatExplainHelp())
    return 0
  }
  const { given, errors } = parseFlags(split.flags)
  const question = readQuestion(split)
  const output = split.own.get('output') ?? 'text'
  const wrong = [
    ...split.errors,
    ...errors,
    ...(typeof question === 'string' ? [question] : []),
    ...(isOneOf(output, OUTPUTS)
      ? []
      : [`--output must be one of ${OUTPUTS.join(', ')}, not ${JSON.stringify(output)}`]),
  ]
  if (wrong.length > 0 || typeof question === 'string') return refuse(wrong)
  try {
    const { known, kernel, socket } = await readKnown(split, given)
    const pod = await sandboxPod(split, question)
    const asked = pod === undefined ? question : { ...question, from: pod.address }
    const explanation = await explainQuestion(known, asked, {
      kernel,
      socket,
      send: split.own.has('send'),
      sender: pod?.send,
    })
    process.stdout.write(await formatAs(output as (typeof OUTPUTS)[number], explanation))
    return statusOf(explanation)
  } catch (error) {
    return refuse([messageOf(error)], '')
  }
}

export function statusOf({ agreement, outcome }: Explanation): number {
  if (agreement === 'differs') return explainStatus.differs
  return outcome === 'to' ? explainStatus.sent : explainStatus.notSent
}

/** With --sandbox, FROM is a pod of it. */
async function sandboxPod({ own }: SplitArguments, { from, family }: Question): Promise<SandboxPod | undefined> {
  const sandbox = own.get('sandbox')
  if (sandbox === undefined || from === 'node' || from === 'outside') return undefined
  const sandboxes = await loadOptional(import('./explain-sandbox.ts'))
  if (sandboxes === undefined) {
    throw new Error('Cannot send from a sandbox: this installation was made without it; a checkout has it')
  }
  return sandboxes.findSandboxPod(sandbox, from, family ?? 4)
}

export interface HowToExplain {
  /** 'this machine': read it; absent: do not look at any kernel. */
  readonly kernel: KernelState | 'this machine' | undefined
  /** Of the proxy that was asked. */
  readonly socket: string
  readonly send: boolean
  /** Sends it elsewhere than from this node. */
  readonly sender?: Sender | undefined
}

export async function explainQuestion(
  known: Known,
  question: Question,
  { kernel, socket, send, sender }: HowToExplain,
): Promise<Explanation> {
  const prepared = prepare(known, question)
  const state = kernel === 'this machine' ? await readKernelFor(prepared, socket) : kernel
  if (!send) return explain(prepared, state)
  const { sendPacket } = await import('../diagnose/explain/send.ts')
  return explain(prepared, state, await sendPacket(prepared, { state, sender }))
}

async function formatAs(output: (typeof OUTPUTS)[number], explanation: Explanation): Promise<string> {
  switch (output) {
    case 'text':
      return formatText(explanation, paintFor(process.stdout, process.env))
    case 'json':
      return formatJson(explanation)
    case 'svg':
      return (await import('../diagnose/explain/format-svg.ts')).formatSvg(explanation)
    case 'mermaid':
      return (await import('../diagnose/explain/format-mermaid.ts')).formatMermaid(explanation)
  }
}

/** What is wrong, in words, where the arguments are no question. */
function readQuestion({ positional, own }: SplitArguments): Question | string {
  const [first, second, ...more] = positional
  if (first === undefined) return 'explain needs to know where to: kube-proxy explain [FROM] TO'
  if (more.length > 0)
    return `explain takes FROM and TO, but was also given ${more.map((each) => JSON.stringify(each)).join(', ')}`
  const via = own.get('via')
  const family = own.get('family')
  if (via !== undefined && !isFrontendKind(via))
    return `--via must be one of ${FRONTEND_KINDS.join(', ')}, not ${JSON.stringify(via)}`
  if (family !== undefined && family !== '4' && family !== '6')
    return `--family must be 4 or 6, not ${JSON.stringify(family)}`
  const [from, to] = second === undefined ? ['node', first] : [first, second]
  return { from, to, via, family: family === undefined ? undefined : family === '4' ? 4 : 6 }
}

function isOneOf<T extends string>(value: string, allowed: readonly T[]): value is T {
  return (allowed as readonly string[]).includes(value)
}

function refuse(errors: readonly string[], hint = 'See kube-proxy explain --help\n'): number {
  process.stderr.write(`${errors.map((error) => `kube-proxy: ${error}\n`).join('')}${hint}`)
  return explainStatus.failure
}
