// A client that connects again and again, from anywhere in the sandbox: what it sees is what a user would.

import { request as httpRequest } from '../../../../src/lib/http.ts'
import { Socket } from 'node:net'
import type { LoadReport, LoadRequest } from '../../../../src/ui/protocol.ts'

export interface LoadOptions {
  readonly request: LoadRequest
  readonly host: string
  readonly port: number
  readonly open: () => number
  /** Every second, and once at the end. */
  readonly onReport: (report: LoadReport) => void
}

const REPORT_MS = 1000
/** As curl --max-time would. */
const PATIENCE_MS = 3000
/** Without an answer, no more than this wait at a time. */
const MOST_WAITING = 200
const MOST_PODS = 200

export class Load {
  readonly #options: LoadOptions
  readonly #byPod = new Map<string, number>()
  readonly #waiting = new Set<Socket>()
  readonly #timers: readonly NodeJS.Timeout[]
  #answered = 0
  #failed = 0
  #lastError: string | null = null
  #latencies: number[] = []
  #isRunning = true

  constructor(options: LoadOptions) {
    this.#options = options
    this.#timers = [
      setInterval(() => this.#ask(), 1000 / options.request.perSecond),
      setInterval(() => this.#report(), REPORT_MS),
    ]
  }

  get request(): LoadRequest {
    return this.#options.request
  }

  close(): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    for (const timer of this.#timers) clearInterval(timer)
    for (const socket of this.#waiting) socket.destroy()
    this.#report()
  }

  #ask(): void {
    if (this.#waiting.size >= MOST_WAITING) return this.#fail('too many wait for an answer')
    const { host, port, open } = this.#options
    const startMs = performance.now()
    let socket: Socket
    try {
      socket = new Socket({ fd: open() })
    } catch (error) {
      return this.#fail((error as Error).message)
    }
    this.#waiting.add(socket)
    let isSettled = false
    const settle = (done: () => void) => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      this.#waiting.delete(socket)
      socket.destroy()
      if (this.#isRunning) done()
    }
    const timer = setTimeout(() => settle(() => this.#fail(`no answer within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS)
    const asked = httpRequest(
      { host, port, path: '/', createConnection: () => socket.connect(port, host) },
      (response) => {
        response.resume()
        response.on('end', () => settle(() => this.#succeed(String(response.headers['x-pod'] ?? 'unknown'), startMs)))
      },
    )
    asked.end()
    asked.on('error', (error: NodeJS.ErrnoException) => settle(() => this.#fail(error.code ?? error.message)))
  }

  #succeed(pod: string, startMs: number): void {
    this.#answered++
    if (this.#byPod.has(pod) || this.#byPod.size < MOST_PODS) this.#byPod.set(pod, (this.#byPod.get(pod) ?? 0) + 1)
    this.#latencies.push(performance.now() - startMs)
  }

  #fail(message: string): void {
    this.#failed++
    this.#lastError = message
  }

  #report(): void {
    const { request, host, port, onReport } = this.#options
    const sorted = this.#latencies.sort((a, b) => a - b)
    this.#latencies = []
    const median = sorted[sorted.length >> 1]
    onReport({
      request,
      url: `http://${host.includes(':') ? `[${host}]` : host}:${port}/`,
      running: this.#isRunning,
      answered: this.#answered,
      failed: this.#failed,
      byPod: Object.fromEntries(this.#byPod),
      lastError: this.#lastError,
      medianMs: median === undefined ? null : Math.round(median * 10) / 10,
    })
  }
}
