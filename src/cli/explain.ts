// `kube-proxy explain`.

import { explain, prepare } from '../diagnose/explain/explain.ts'
import type { Explanation } from '../diagnose/explain/explanation.ts'
import { formatJson } from '../diagnose/format-json.ts'
import { formatText } from '../diagnose/explain/format-text.ts'
import { paintFor } from '../diagnose/paint.ts'
import type { Question } from '../diagnose/explain/question.ts'
import { readKernelFor } from '../diagnose/explain/read-kernel.ts'
import { type ExplainSource, readKnown } from './explain-known.ts'
import type { SandboxPod } from './explain-sandbox.ts'
import { loadOptional } from './load-optional.ts'

export interface ExplainOptions extends ExplainSource {
  readonly send: boolean
  readonly sandbox: string | undefined
  readonly output: 'text' | 'json' | 'svg' | 'mermaid'
}

const exitStatus = { sent: 0, notSent: 2, differs: 3 } as const

export async function runExplainCommand(
  question: Question,
  options: ExplainOptions,
  given: ReadonlyMap<string, unknown>,
): Promise<number> {
  const { known, kernel, socket } = await readKnown(options, given)
  const pod = await sandboxPod(options.sandbox, question)
  const prepared = prepare(known, pod === undefined ? question : { ...question, from: pod.address })
  const state = kernel === 'this machine' ? await readKernelFor(prepared, socket) : kernel
  const sent = options.send
    ? await (await import('../diagnose/explain/send.ts')).sendPacket(prepared, { state, sender: pod?.send })
    : undefined
  const explanation = explain(prepared, state, sent)
  process.stdout.write(await formatAs(options.output, explanation))
  if (explanation.agreement === 'differs') return exitStatus.differs
  return explanation.outcome === 'to' ? exitStatus.sent : exitStatus.notSent
}

/** With --sandbox, FROM is a pod of it. */
async function sandboxPod(sandbox: string | undefined, { from, family }: Question): Promise<SandboxPod | undefined> {
  if (sandbox === undefined || from === 'node' || from === 'outside') return undefined
  const sandboxes = await loadOptional(import('./explain-sandbox.ts'))
  if (sandboxes !== undefined) return sandboxes.findSandboxPod(sandbox, from, family ?? 4)
  throw new Error('Cannot send from a sandbox: this installation was made without it; a checkout has it')
}

async function formatAs(output: ExplainOptions['output'], explanation: Explanation): Promise<string> {
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
