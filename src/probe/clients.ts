// Those who dial: a command in each probe pod, and this process.

import type { UpgradingClient } from '../kube/api-client.ts'
import { type ExecSession, openExec } from '../kube/exec.ts'
import { type KeptSockets, runDials } from './dial.ts'
import { NAMESPACE, PROGRAM } from './objects.ts'
import { type Attempt, type Dial, type DialReply, type DialRequest, LineReader } from './protocol.ts'

export interface Dialler {
  run(dials: readonly Dial[]): Promise<readonly (readonly Attempt[])[]>
  close(): void
}

/** A probe that does not answer for so long has a problem of its own. */
const ANSWER_WITHIN_MS = 120_000
const LONGEST_ERROR = 400

export async function openDialler(client: UpgradingClient, pod: string, signal: AbortSignal): Promise<Dialler> {
  const lines = new LineReader()
  const waiting = new Map<number, { resolve: (reply: DialReply) => void; reject: (error: Error) => void }>()
  let said = ''
  let lost: Error | undefined
  const session: ExecSession = await openExec(client, {
    namespace: NAMESPACE,
    pod,
    command: [PROGRAM, 'probe', 'dial'],
    stdin: true,
    signal,
    onStdout: (bytes) => {
      for (const line of lines.push(bytes)) {
        const reply = JSON.parse(line) as DialReply
        waiting.get(reply.id)?.resolve(reply)
        waiting.delete(reply.id)
      }
    },
    onStderr: (bytes) => (said = (said + bytes.toString()).slice(0, LONGEST_ERROR)),
  })
  void session.ended.then(({ message }) => {
    lost = new Error(`Cannot ask probe pod ${pod}: ${said.trim() || message || 'its command ended'}`)
    for (const { reject } of waiting.values()) reject(lost)
  })
  let id = 0
  return {
    run(dials) {
      const request: DialRequest = { id: ++id, dials }
      return new Promise((resolve, reject) => {
        if (lost !== undefined) return reject(lost)
        const late = new Error(`Cannot ask probe pod ${pod}: no answer within ${ANSWER_WITHIN_MS / 1000} s`)
        const timer = setTimeout(() => reject(late), ANSWER_WITHIN_MS)
        const abort = (): void => reject(new Error('interrupted'))
        const settled = (): void => {
          clearTimeout(timer)
          signal.removeEventListener('abort', abort)
        }
        signal.addEventListener('abort', abort)
        waiting.set(request.id, {
          resolve: ({ attempts }) => (settled(), resolve(attempts)),
          reject: (error) => (settled(), reject(error)),
        })
        session.write(`${JSON.stringify(request)}\n`)
      })
    },
    close: () => session.close(),
  }
}

/** This machine, outside of the cluster. */
export function ownDialler(): Dialler {
  const kept: KeptSockets = new Map()
  return { run: (dials) => runDials(dials, kept), close: () => {} }
}
