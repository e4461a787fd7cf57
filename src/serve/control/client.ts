// Asks the running proxy.

import { existsSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { messageOf } from '../../lib/errors.ts'
import { Agent, request } from '../../lib/http.ts'
import { askPath, listSockets } from './path.ts'
import { PREFIX } from './questions.ts'

/** The proxy cannot be asked; the message says why, and what to do. */
export class NoProxyError extends Error {}

/** The proxy refused the question, or failed at it. */
export class RefusedQuestionError extends Error {}

export interface AskOptions {
  /** What `--control-socket` says; empty or absent: the environment, or the proxy of this network namespace. */
  readonly socket?: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly timeoutMs?: number
}

/** A connection that stays open: what the proxy does for a client ends with its connection. */
export class ControlClient {
  readonly path: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  constructor(socket: string = '') {
    this.path = askPath(socket)
  }

  /** Rejects with NoProxyError or RefusedQuestionError. */
  ask<T>(question: string, { query = {}, timeoutMs = 30_000 }: Omit<AskOptions, 'socket'> = {}): Promise<T> {
    const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
    const text = new URLSearchParams(given).toString()
    const path = PREFIX + encodeURIComponent(question) + (text === '' ? '' : `?${text}`)
    return new Promise<T>((resolve, reject) => {
      const fail = (error: unknown) => reject(new NoProxyError(this.#explain(error), { cause: error }))
      const asked = request({ socketPath: this.path, path, agent: this.#agent, timeout: timeoutMs }, (response) => {
        void readText(response)
          .then((body) => decodeAnswer(response, body) as T)
          .then(resolve, (error: unknown) => (error instanceof RefusedQuestionError ? reject(error) : fail(error)))
      })
      asked.on('timeout', () => asked.destroy(new Error(`no answer within ${timeoutMs} ms`)))
      asked.on('error', fail)
      asked.end()
    })
  }

  close(): void {
    this.#agent.destroy()
  }

  #explain(error: unknown): string {
    const about = `Cannot ask the proxy at ${this.path}`
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM') return `${about}: only root may`
    if (code === 'ECONNREFUSED') return `${about}: it does not run any more`
    if (code === 'ECONNRESET') return `${about}: the answer broke off; the log of the proxy says why`
    if (code !== 'ENOENT') return `${about}: ${messageOf(error)}`
    const others = listSockets().filter((path) => path !== this.path && existsSync(path))
    const elsewhere =
      others.length === 0 ? '' : `; in other network namespaces: ${others.slice(0, 5).join(', ')} (--control-socket)`
    return `${about}: no proxy runs in this network namespace, or it cannot be asked${elsewhere}`
  }
}

export async function ask<T>(question: string, options: AskOptions = {}): Promise<T> {
  const client = new ControlClient(options.socket)
  try {
    return await client.ask<T>(question, options)
  } finally {
    client.close()
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: string[] = []
  response.setEncoding('utf8')
  for await (const chunk of response) chunks.push(chunk as string)
  return chunks.join('')
}

function decodeAnswer(response: IncomingMessage, body: string): unknown {
  const answer: unknown = JSON.parse(body)
  if (response.statusCode === 200) return answer
  throw new RefusedQuestionError(
    (answer as { error?: string }).error ?? `Cannot get an answer: status ${response.statusCode}`,
  )
}
