// The server of the page: on loopback, for the one who has the token. protocol.ts says what it answers.

import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { QuestionMistake } from '../diagnose/explain/question.ts'
import { createServer } from '../lib/http.ts'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { messageOf } from '../lib/errors.ts'
import { joinHostPort } from '../lib/ip.ts'
import { EventStreams } from './event-streams.ts'
import { Guard, newToken, SECURITY_HEADERS } from './guard.ts'
import { parseAction, parseExplainQuestion, parseServiceQuery } from './parse-request.ts'
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
    const server = createServer({ headersTimeout: 5000, requestTimeout: 15_000, keepAliveTimeout: 30_000 })
    server.maxConnections = MOST_CONNECTIONS
    server.on('request', (request, response) => void this.#respond(request, response))
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) =>
        reject(new Error(`Cannot listen on ${joinHostPort(host, port)}: ${error.message}`)),
      )
      server.listen(fd === undefined ? { host, port } : { fd }, () => resolve())
    })
    this.#servers.push(server)
    const bound = fd === undefined ? (server.address() as AddressInfo).port : port
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
    await Promise.all(
      this.#servers.splice(0).map(
        (server) =>
          new Promise<void>((resolve) => {
            server.close(() => resolve())
            // What was said last reaches the pages first.
            setTimeout(() => server.closeAllConnections(), 50)
          }),
      ),
    )
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    try {
      await this.#answer(request, response)
    } catch (error) {
      const isMistake = error instanceof AskedWrongly || error instanceof QuestionMistake
      const status = error instanceof HttpError ? error.status : isMistake ? 400 : 500
      // What it may still send is not waited for.
      if (status === 413) response.setHeader('Connection', 'close')
      if (response.headersSent) response.destroy()
      else sendJson(response, status, { error: messageOf(error) })
    } finally {
      request.resume()
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request
    const { pathname, searchParams } = new URL(url, 'http://page')
    const stranger = this.#guard.refuseStranger(request)
    if (stranger !== undefined) throw new HttpError(stranger.status, stranger.error)
    const unknown = this.#guard.refuseUnknown(request, searchParams)
    if (unknown !== undefined) throw new HttpError(unknown.status, unknown.error)
    switch (`${method} ${pathname}`) {
      case 'GET /':
        return this.#sendPage(response)
      case 'GET /page.js':
      case 'GET /page.css':
        return this.#sendAsset(response, pathname as keyof typeof TYPES)
      case 'GET /api/events':
        if (this.#streams.isFull) throw new HttpError(503, 'Cannot show it to more pages: close one')
        return this.#streams.add(response)
      case 'GET /api/service':
        return sendJson(response, 200, await this.#source.service(parseServiceQuery(searchParams)))
      case 'POST /api/explain':
        return sendJson(response, 200, await this.#source.explain(parseExplainQuestion(await readJson(request))))
      case 'POST /api/act': {
        if (this.#source.act === undefined) throw new HttpError(403, 'Cannot do that here: a node is only looked at')
        return sendJson(response, 200, await this.#source.act(parseAction(await readJson(request))))
      }
      default:
        throw new HttpError(404, `There is no ${method} ${pathname}`)
    }
  }

  async #sendPage(response: ServerResponse): Promise<void> {
    const snapshot = await this.#source.snapshot()
    response.setHeader('Set-Cookie', this.#guard.cookie)
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' })
    response.end(formatShell(snapshot))
  }

  #sendAsset(response: ServerResponse, path: keyof typeof TYPES): void {
    let content: Buffer
    try {
      content = readFileSync(`${this.#assets}${path.slice(1)}`)
    } catch (error) {
      throw new HttpError(404, `The page was not built: npm run build (${messageOf(error)})`)
    }
    response.writeHead(200, { 'Content-Type': TYPES[path], 'Content-Length': content.length })
    response.end(content)
  }
}

class HttpError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const text = JSON.stringify(value)
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) })
  response.end(text)
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/.test(request.headers['content-type'] ?? '')) {
    throw new HttpError(415, 'Cannot read the question: it must be application/json')
  }
  const body = await readBody(request)
  try {
    return JSON.parse(body) as unknown
  } catch (error) {
    throw new HttpError(400, `Cannot read the question: ${messageOf(error)}`)
  }
}

/** What is too long is not read to its end, and its sender hears so. */
function readBody(request: IncomingMessage): Promise<string> {
  const tooLong = new HttpError(413, `Cannot read more than ${LONGEST_BODY} bytes`)
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > LONGEST_BODY) return reject(tooLong)
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > LONGEST_BODY) return reject(tooLong)
      chunks.push(chunk)
    })
    request.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    request.on('error', reject)
  })
}
