// Answers questions at the control socket. No failure of it ends the proxy.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { dirname } from 'node:path'
import type { Clock, Timer } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/log.ts'
import { nextTurn } from '../../lib/next-turn.ts'
import {
  closeServer,
  createHttpServer,
  drained,
  HttpError,
  jsonOf,
  requestListener,
  type Reply,
} from '../http-server.ts'
import { bindSocket, sweepSockets } from './bind-socket.ts'
import { jsonChunks } from './json-chunks.ts'
import { CONTROL_FOLDER } from './path.ts'
import { PREFIX, QuestionError, type QuestionClient, type Question } from './questions.ts'

export interface ControlOptions {
  readonly path: string
  readonly questions: readonly Question[]
  readonly clock: Clock
  readonly log: Logger
}

const RETRY_MS = 1000
/** Clients at the same time. Root alone can be one. */
const MOST_CONNECTIONS = 16
const ANSWER_MS = 30_000
/** The pieces of an answer are sent in portions of this size; the proxy does its work between two. */
const PORTION = 64 * 1024
/** JavaScript's strings end a little later: the client could not read more. */
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
    await closeServer(server)
  }

  async #open(): Promise<void> {
    const { path, clock, log } = this.#options
    const listener = requestListener(
      (request, response) => this.#respond(request, response),
      (error, request) => this.#fail(error, request),
    )
    const server = createHttpServer(listener, { keepAliveTimeout: 60_000, maxConnections: MOST_CONNECTIONS })
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
    const signal = clientSignals.get(request.socket) ?? signalEndOf(request.socket)
    const limit = setTimeout(() => request.socket.destroy(), ANSWER_MS)
    try {
      const answer = await this.#answer(request, { signal })
      response.writeHead(200, { 'Content-Type': 'application/json' })
      await send(response, answer)
    } finally {
      clearTimeout(limit)
    }
  }

  #fail(error: unknown, { url }: IncomingMessage): Reply {
    const status = error instanceof HttpError ? error.status : error instanceof QuestionError ? 400 : 500
    if (status === 500) this.#options.log.error(error, 'Cannot answer at the control socket', { url })
    return jsonOf(status, { error: messageOf(error) })
  }

  #answer({ method, url = '/' }: IncomingMessage, client: QuestionClient): unknown {
    if (method !== 'GET') throw new QuestionError(`Cannot answer ${method}: questions are asked with GET`)
    const { pathname, searchParams } = new URL(url, 'http://proxy')
    if (pathname === '/' || pathname === PREFIX) {
      return { questions: [...this.#questions.values()].map(({ name, what }) => ({ name, path: PREFIX + name, what })) }
    }
    const question = pathname.startsWith(PREFIX) ? this.#questions.get(pathname.slice(PREFIX.length)) : undefined
    if (question === undefined) {
      const known = [...this.#questions.keys()].map((name) => PREFIX + name).join(', ')
      throw new HttpError(404, `Cannot answer ${JSON.stringify(pathname)}: the questions are ${known}`)
    }
    return question.answer(searchParams, client)
  }
}

/** By connection: aborted when it ends. */
const clientSignals = new WeakMap<Socket, AbortSignal>()

function signalEndOf(socket: Socket): AbortSignal {
  const gone = new AbortController()
  socket.once('close', () => gone.abort())
  clientSignals.set(socket, gone.signal)
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
