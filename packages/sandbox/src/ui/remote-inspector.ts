// The inspector of a node of a sandbox: a process in the node's network, started on demand and ended when idle.

import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { QuestionMistake } from '../../../../src/diagnose/explain/question.ts'
import type { InspectorReply, InspectorRequest } from './inspector-process.ts'
import type { InspectorAnswer, InspectorQuestion } from '../../../../src/ui/node-inspector.ts'

const PROGRAM = fileURLToPath(new URL('inspector-process.js', import.meta.url))
/** Not asked for this long, it ends. */
const IDLE_MS = 60_000
const ANSWER_MS = 20_000

interface Waiting {
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

export class RemoteInspector {
  readonly #enter: <T>(work: () => T) => T
  readonly #waiting = new Map<number, Waiting>()
  #child: ChildProcess | undefined
  #idle: NodeJS.Timeout | undefined
  #id = 0

  constructor(enter: <T>(work: () => T) => T) {
    this.#enter = enter
  }

  look<Q extends InspectorQuestion>(question: Q): Promise<InspectorAnswer<Q>> {
    const child = (this.#child ??= this.#start())
    clearTimeout(this.#idle)
    const id = ++this.#id
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#settle({ id, error: `No answer within ${ANSWER_MS / 1000} s` }), ANSWER_MS)
      this.#waiting.set(id, { resolve: (answer) => resolve(answer as InspectorAnswer<Q>), reject, timer })
      child.send({ id, question } satisfies InspectorRequest)
    })
  }

  close(): void {
    clearTimeout(this.#idle)
    this.#child?.disconnect()
    this.#child = undefined
    this.#failAll('The page’s server ends')
  }

  #start(): ChildProcess {
    const child = this.#enter(() => fork(PROGRAM, [], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], detached: true }))
    child.on('message', (reply: InspectorReply) => this.#settle(reply))
    const ended = () => {
      if (this.#child === child) this.#child = undefined
      this.#failAll('The process that looks at the node ended')
    }
    child.once('exit', ended).once('error', ended)
    return child
  }

  #settle(reply: InspectorReply): void {
    const waiting = this.#waiting.get(reply.id)
    if (waiting === undefined) return
    this.#waiting.delete(reply.id)
    clearTimeout(waiting.timer)
    if ('error' in reply)
      waiting.reject(reply.isMistake === true ? new QuestionMistake(reply.error) : new Error(reply.error))
    else waiting.resolve(reply.answer)
    if (this.#waiting.size === 0) this.#endWhenIdle()
  }

  #endWhenIdle(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => {
      this.#child?.disconnect()
      this.#child = undefined
    }, IDLE_MS).unref()
  }

  #failAll(reason: string): void {
    for (const id of Array.from(this.#waiting.keys())) this.#settle({ id, error: reason })
  }
}
