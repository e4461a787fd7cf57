// A process in the network of one node of a sandbox: it looks there for the server of the page, and ends with it.

import { QuestionMistake } from '../../../../src/diagnose/explain/question.ts'
import { messageOf } from '../../../../src/lib/errors.ts'
import { inspectNode, type InspectorQuestion } from '../../../../src/ui/node-inspector.ts'

export interface InspectorRequest {
  readonly id: number
  readonly question: InspectorQuestion
}

export type InspectorReply =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: string; readonly isMistake?: boolean }

process.on('message', ({ id, question }: InspectorRequest) => {
  const reply = (sent: InspectorReply) => process.send?.(sent)
  inspectNode(question).then(
    (answer) => reply({ id, answer }),
    (error: unknown) => reply({ id, error: messageOf(error), isMistake: error instanceof QuestionMistake }),
  )
})
process.on('disconnect', () => process.exit(0))
