// A browser, as far as the server of the page can tell: it opens the URL, keeps the cookie, hears events, asks questions.

import { get, request, type IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { eventually } from '../../support/eventually.ts'
import type { NetworkNamespace } from '../../../packages/sandbox/src/netns/network-namespace.ts'
import { openClientSocket } from '../../../packages/sandbox/src/netns/sockets.ts'
import { applyPatch } from '../../../src/ui/patch.ts'
import type { ActAnswer, Action, Snapshot, UiEvents } from '../../../src/ui/protocol.ts'

export interface Answered {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

type Received = { [E in keyof UiEvents]: UiEvents[E][] }

export class UiClient {
  readonly origin: string
  readonly #url: string
  readonly #from: NetworkNamespace | undefined
  #cookie = ''

  /** `from`: where the browser is, if that is not here. */
  constructor(url: string, from?: NetworkNamespace) {
    this.#url = url
    this.origin = new URL(url).origin
    this.#from = from
  }

  /** Opens the page; the snapshot is in it. */
  async open(): Promise<Snapshot> {
    const { status, body, headers } = await this.send(this.#url)
    if (status !== 200) throw new Error(`the page answers ${status}: ${body}`)
    this.#cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    const [, json = ''] = /<script type="application\/json" id="snapshot">([\s\S]*?)<\/script>/.exec(body) ?? []
    return JSON.parse(json) as Snapshot
  }

  async ask<T>(path: string): Promise<T> {
    const { status, body } = await this.send(this.origin + path)
    if (status !== 200) throw new Error(`${path} answers ${status}: ${body}`)
    return JSON.parse(body) as T
  }

  async post<T>(path: string, question: object): Promise<T> {
    const { status, body } = await this.send(this.origin + path, { body: JSON.stringify(question) })
    if (status !== 200) throw new Error(`${path} answers ${status}: ${body}`)
    return JSON.parse(body) as T
  }

  act(action: Action): Promise<ActAnswer> {
    return this.post('/api/act', action)
  }

  send(url: string, options: { body?: string; headers?: Record<string, string> } = {}): Promise<Answered> {
    return new Promise((resolve, reject) => {
      const method = options.body === undefined ? 'GET' : 'POST'
      const posted = method === 'GET' ? {} : { origin: this.origin, 'content-type': 'application/json' }
      const headers = { cookie: this.#cookie, ...posted, ...options.headers }
      const sent = request(url, { method, headers, ...this.#connection(url) }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (text: string) => (body += text))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
        response.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(options.body)
    })
  }

  /** A page that is open until it is disposed of. */
  openPage(): OpenPage {
    const url = `${this.origin}/api/events`
    return new OpenPage(url, { headers: { cookie: this.#cookie }, ...this.#connection(url) })
  }

  #connection(url: string) {
    const from = this.#from
    if (from === undefined) return { agent: false as const }
    const { hostname, port } = new URL(url)
    return {
      createConnection: () => new Socket({ fd: openClientSocket(from, 'tcp', 4) }).connect(Number(port), hostname),
    }
  }
}

export class OpenPage implements Disposable {
  readonly received: Received = { snapshot: [], update: [], traffic: [], change: [], load: [], end: [] }
  readonly #request: ReturnType<typeof get>
  status: number | undefined

  constructor(url: string, options: object) {
    this.#request = get(url, options, (response) => {
      this.status = response.statusCode
      let rest = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        const events = (rest + text).split('\n\n')
        rest = events.pop() ?? ''
        for (const event of events) this.#take(event)
      })
      response.on('error', () => {})
    })
    this.#request.on('error', () => {})
  }

  /** As a page had it, one after the other. */
  readonly shown: Snapshot[] = []

  get last(): Snapshot | undefined {
    return this.shown.at(-1)
  }

  /** Waits until the newest snapshot is as it should be: `problem` says what it lacks. */
  async until(what: string, problem: (snapshot: Snapshot) => string | undefined): Promise<Snapshot> {
    await eventually(what, () => (this.last === undefined ? 'no snapshot' : problem(this.last)), { withinMs: 15_000 })
    return this.last!
  }

  [Symbol.dispose](): void {
    this.#request.destroy()
  }

  #take(event: string): void {
    const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? []
    if (name === undefined || data === undefined) return
    const said = JSON.parse(data) as never
    this.received[name as keyof Received].push(said)
    if (name === 'snapshot') this.shown.push(said)
    if (name === 'update') this.shown.push(applyPatch(this.last!, said) as Snapshot)
  }
}
