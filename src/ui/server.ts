// The server of the page: on loopback, for the one who has the token. protocol.ts says what it answers.

import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { QuestionMistake } from '../diagnose/explain/question.ts'
import { fileURLToPath } from 'node:url'
import { messageOf } from '../lib/errors.ts'
import { joinHostPort } from '../lib/ip.ts'
import {
  closeServer,
  createHttpServer,
  HttpError,
  jsonOf,
  listenAt,
  readBody,
  requestListener,
  type Reply,
} from '../serve/http-server.ts'
import { EventStreams } from './event-streams.ts'
import { Guard, newToken, SECURITY_HEADERS } from './guard.ts'
import { parseAction, parseDoctorRequest, parseExplainQuestion, parseServiceQuery } from './parse-request.ts'
import { formatShell } from './shell.ts'
import { AskedWrongly, type UiSource } from './source.ts'

export interface UiServerOptions {
  readonly source: UiSource
  /** Where page.js and page.css are; absent: beside this file. */
  readonly assets?: string
}

export interface ListenAddress {
  readonly host: string
  /** 0: any. */
  readonly port: number
  /** A socket that is bound to the address already. */
  readonly fd?: number
}

/** Of a question. */
const LONGEST_BODY = 16 * 1024
const MOST_CONNECTIONS = 64
const TYPES = { '/page.js': 'text/javascript; charset=utf-8', '/page.css': 'text/css; charset=utf-8' } as const

export class UiServer {
  readonly #source: UiSource
  readonly #assets: string
  readonly #guard: Guard
  readonly #streams: EventStreams
  readonly #servers: Server[] = []
  readonly #hosts = new Set<string>()
  readonly token: string = newToken()

  constructor({ source, assets = fileURLToPath(new URL('.', import.meta.url)) }: UiServerOptions) {
    this.#source = source
    this.#assets = assets
    this.#guard = new Guard({ token: this.token, hosts: () => this.#hosts })
    this.#streams = new EventStreams(source)
  }

  /** Listens there too, and answers the URL for a person. */
  async listen({ host, port, fd }: ListenAddress): Promise<string> {
    const limits = { requestTimeout: 15_000, keepAliveTimeout: 30_000, maxConnections: MOST_CONNECTIONS }
    const server = createHttpServer(
      requestListener((request, response) => this.#answer(request, response), failed),
      limits,
    )
    const address = await listenAt(server, fd === undefined ? { host, port } : { fd }).catch((error: unknown) => {
      throw new Error(`Cannot listen on ${joinHostPort(host, port)}: ${messageOf(error)}`)
    })
    this.#servers.push(server)
    const bound = fd === undefined ? address.port : port
    this.#hosts.add(joinHostPort(host, bound))
    if (host === '127.0.0.1') this.#hosts.add(`localhost:${bound}`)
    return `http://${joinHostPort(host, bound)}/?token=${this.token}`
  }

  /** How many pages are open. */
  get pages(): number {
    return this.#streams.size
  }

  async close(reason: string = 'The server ends'): Promise<void> {
    this.#streams.close(reason)
    this.#source.close()
    // What was sent last reaches the pages first.
    await Promise.all(this.#servers.splice(0).map((server) => closeServer(server, 50)))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<Reply | void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    const { method = 'GET', url = '/' } = request
    const { pathname, searchParams } = new URL(url, 'http://page')
    const foreign = this.#guard.refuseForeign(request)
    if (foreign !== undefined) throw new HttpError(foreign.status, foreign.error)
    const unknown = this.#guard.refuseUnknown(request, searchParams)
    if (unknown !== undefined) throw new HttpError(unknown.status, unknown.error)
    switch (`${method} ${pathname}`) {
      case 'GET /':
        return this.#page()
      case 'GET /page.js':
      case 'GET /page.css':
        return this.#asset(pathname as keyof typeof TYPES)
      case 'GET /api/events':
        if (this.#streams.isFull) throw new HttpError(503, 'Cannot show it to more pages: close one')
        return this.#streams.add(response)
      case 'GET /api/service':
        return jsonOf(200, await this.#source.service(parseServiceQuery(searchParams)))
      case 'POST /api/explain':
        return jsonOf(200, await this.#source.explain(parseExplainQuestion(await readJson(request))))
      case 'POST /api/doctor':
        return jsonOf(200, await this.#source.doctor(parseDoctorRequest(await readJson(request))))
      case 'POST /api/act': {
        if (this.#source.act === undefined) throw new HttpError(403, 'Cannot do that here: a node is only looked at')
        return jsonOf(200, await this.#source.act(parseAction(await readJson(request))))
      }
      default:
        throw new HttpError(404, `There is no ${method} ${pathname}`)
    }
  }

  async #page(): Promise<Reply> {
    const headers = { 'Set-Cookie': this.#guard.cookie, 'Content-Type': 'text/html; charset=utf-8' }
    return { status: 200, headers, body: formatShell(await this.#source.snapshot()) }
  }

  #asset(path: keyof typeof TYPES): Reply {
    try {
      const body = readFileSync(`${this.#assets}${path.slice(1)}`)
      return { status: 200, headers: { 'Content-Type': TYPES[path] }, body }
    } catch (error) {
      throw new HttpError(404, `The page was not built: npm run build (${messageOf(error)})`)
    }
  }
}

function failed(error: unknown): Reply {
  const isMistake = error instanceof AskedWrongly || error instanceof QuestionMistake
  return jsonOf(error instanceof HttpError ? error.status : isMistake ? 400 : 500, { error: messageOf(error) })
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/.test(request.headers['content-type'] ?? '')) {
    throw new HttpError(415, 'Cannot read the question: it must be application/json')
  }
  const body = await readBody(request, LONGEST_BODY)
  try {
    return JSON.parse(body.toString('utf8')) as unknown
  } catch (error) {
    throw new HttpError(400, `Cannot read the question: ${messageOf(error)}`)
  }
}
