// Answers questions at the control socket. No failure of it ends the proxy.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { dirname } from 'node:path'
import type { Clock, Timer } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { createServer } from '../../lib/http.ts'
import type { Logger } from '../../lib/log.ts'
import { nextTurn } from '../../lib/next-turn.ts'
import { bindSocket, sweepSockets } from './bind-socket.ts'
import { jsonChunks } from './json-chunks.ts'
import { CONTROL_FOLDER } from './path.ts'
import { PREFIX, QuestionError, type Question } from './questions.ts'

export interface ControlOptions {
  readonly path: string
  readonly questions: readonly Question[]
  readonly clock: Clock
  readonly log: Logger
}

const RETRY_MS = 1000
/** Askers at the same time. Root alone can be one. */
const MOST_CONNECTIONS = 16
const ANSWER_MS = 30_000
/** The pieces of an answer are sent in portions of this size; the proxy does its work between two. */
const PORTION = 64 * 1024
/** JavaScript's strings end a little later: the asker could not read more. */
const LONGEST_ANSWER = 256 * 1024 * 1024

/** A control socket that listens, or tries to. */
export class ControlServer {
  readonly #options: ControlOptions
  readonly #questions: ReadonlyMap<string, Question>
  #server: Server | undefined
  #timer: Timer | undefined
  #refusals = 0
  #isClosed = false
  /** The first attempt to listen. */
  readonly ready: Promise<void>

  constructor(options: ControlOptions) {
    this.#options = options
    this.#questions = new Map(options.questions.map((question) => [question.name, question]))
    this.ready = this.#open()
  }

  /** Ends all connections and removes the socket. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.ready
    const server = this.#server
    this.#server = undefined
    if (server?.listening !== true) return
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }

  async #open(): Promise<void> {
    const { path, clock, log } = this.#options
    const server = createServer({ headersTimeout: 5000, requestTimeout: 10_000, keepAliveTimeout: 60_000 })
    server.maxConnections = MOST_CONNECTIONS
    server.on('request', (request, response) => void this.#respond(request, response))
    try {
      await bindSocket(server, path)
    } catch (error) {
      if (this.#refusals++ === 0)
        log.warn('Cannot be asked over the control socket', { path, reason: messageOf(error) })
      if (!this.#isClosed) this.#timer = clock.setTimeout(() => void this.#open(), RETRY_MS)
      return
    }
    this.#server = server
    server.on('error', (error) => log.error(error, 'Control socket failed', { path }))
    log.v(this.#refusals > 0 ? 0 : 2)?.info('Control socket is open', { path })
    if (dirname(path) === CONTROL_FOLDER) void sweepSockets()
    if (this.#isClosed) server.close()
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { log } = this.#options
    request.resume()
    response.on('error', () => {})
    const asker = askers.get(request.socket) ?? rememberAsker(request.socket)
    const limit = setTimeout(() => request.socket.destroy(), ANSWER_MS)
    try {
      const answer = await this.#answer(request, { signal: asker })
      response.writeHead(200, { 'Content-Type': 'application/json' })
      await send(response, answer)
    } catch (error) {
      if (response.headersSent) {
        log.error(error, 'Cannot finish an answer at the control socket', { url: request.url })
        response.destroy()
        return
      }
      const status = error instanceof NoSuchQuestion ? 404 : error instanceof QuestionError ? 400 : 500
      if (status === 500) log.error(error, 'Cannot answer at the control socket', { url: request.url })
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ error: messageOf(error) }))
    } finally {
      clearTimeout(limit)
    }
  }

  #answer({ method, url = '/' }: IncomingMessage, asker: { readonly signal: AbortSignal }): unknown {
    if (method !== 'GET') throw new QuestionError(`Cannot answer ${method}: questions are asked with GET`)
    const { pathname, searchParams } = new URL(url, 'http://proxy')
    if (pathname === '/' || pathname === PREFIX) {
      return { questions: [...this.#questions.values()].map(({ name, what }) => ({ name, path: PREFIX + name, what })) }
    }
    const question = pathname.startsWith(PREFIX) ? this.#questions.get(pathname.slice(PREFIX.length)) : undefined
    if (question === undefined) {
      const known = [...this.#questions.keys()].map((name) => PREFIX + name).join(', ')
      throw new NoSuchQuestion(`Cannot answer ${JSON.stringify(pathname)}: the questions are ${known}`)
    }
    return question.answer(searchParams, asker)
  }
}

class NoSuchQuestion extends QuestionError {}

const askers = new WeakMap<Socket, AbortSignal>()

function rememberAsker(socket: Socket): AbortSignal {
  const gone = new AbortController()
  socket.once('close', () => gone.abort())
  askers.set(socket, gone.signal)
  return gone.signal
}

async function send(response: ServerResponse, answer: unknown): Promise<void> {
  let portion = ''
  let sent = 0
  for (const chunk of jsonChunks(answer)) {
    portion += chunk
    if (portion.length < PORTION) continue
    sent += portion.length
    if (sent > LONGEST_ANSWER) throw new Error(`Cannot send more than ${LONGEST_ANSWER} bytes`)
    const isTaken = response.write(portion)
    portion = ''
    if (isTaken) await nextTurn()
    else await drained(response)
    if (response.destroyed) return
  }
  response.end(`${portion}\n`)
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.once('drain', done).once('close', done)
  })
}
