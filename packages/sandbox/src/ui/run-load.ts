// A client that connects again and again, from anywhere in the sandbox: what it sees is what a user would.

import { request as httpRequest } from '../../../../src/lib/http.ts'
import { Socket } from 'node:net'
import type { LoadReport, LoadRequest } from '../../../../src/ui/protocol.ts'
import { PATIENCE_MS, type Outcome } from './connection-outcomes.ts'

export interface LoadOptions {
  readonly request: LoadRequest
  readonly host: string
  readonly port: number
  /** A socket, and the port that it was given. */
  readonly open: () => { readonly fd: number; readonly port: number }
  readonly onBegin: (sport: number) => void
  readonly onEnd: (sport: number, outcome: Outcome | 'abandoned') => void
  /** At once, every second, and once at the end. */
  readonly onReport: (report: LoadReport) => void
}

const REPORT_MS = 1000
/** Without an answer, no more than this wait at a time. */
const MOST_WAITING = 200
const MOST_PODS = 200

export class Load {
  readonly #options: LoadOptions
  readonly #byPod = new Map<string, number>()
  readonly #waiting = new Map<Socket, number>()
  readonly #timers: readonly NodeJS.Timeout[]
  readonly #counts: Record<Outcome, number> = { answered: 0, refused: 0, timedOut: 0, cut: 0 }
  /** Could not even be tried. */
  #untried = 0
  #lastError: string | null = null
  #latencies: number[] = []
  #isRunning = true

  constructor(options: LoadOptions) {
    this.#options = options
    this.#timers = [
      setInterval(() => this.#ask(), 1000 / options.request.perSecond),
      setInterval(() => this.#report(), REPORT_MS),
    ]
    // What another one met is not shown as this one's.
    this.#report()
  }

  get request(): LoadRequest {
    return this.#options.request
  }

  close(): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    for (const timer of this.#timers) clearInterval(timer)
    for (const [socket, sport] of this.#waiting) {
      socket.destroy()
      this.#options.onEnd(sport, 'abandoned')
    }
    this.#report()
  }

  #ask(): void {
    if (this.#waiting.size >= MOST_WAITING) return this.#cannotTry('too many wait for an answer')
    const { host, port, open, onBegin, onEnd } = this.#options
    const startMs = performance.now()
    let socket: Socket
    let sport: number
    try {
      const opened = open()
      sport = opened.port
      socket = new Socket({ fd: opened.fd })
    } catch (error) {
      return this.#cannotTry((error as Error).message)
    }
    this.#waiting.set(socket, sport)
    onBegin(sport)
    let isConnected = false
    let isSettled = false
    const settle = (outcome: Outcome, done: () => void) => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      this.#waiting.delete(socket)
      socket.destroy()
      if (!this.#isRunning) return
      this.#counts[outcome]++
      onEnd(sport, outcome)
      done()
    }
    const fail = (outcome: Outcome, message: string) => settle(outcome, () => (this.#lastError = message))
    const timer = setTimeout(() => fail('timedOut', `no answer within ${PATIENCE_MS / 1000} s`), PATIENCE_MS)
    socket.once('connect', () => (isConnected = true))
    const asked = httpRequest(
      { host, port, path: '/', createConnection: () => socket.connect(port, host) },
      (response) => {
        response.resume()
        response.on('end', () =>
          settle('answered', () => this.#succeed(String(response.headers['x-pod'] ?? 'unknown'), startMs)),
        )
        response.on('error', (error: NodeJS.ErrnoException) => fail('cut', error.code ?? error.message))
      },
    )
    asked.end()
    asked.on('error', (error: NodeJS.ErrnoException) =>
      fail(outcomeOf(error, isConnected), error.code ?? error.message),
    )
  }

  #succeed(pod: string, startMs: number): void {
    if (this.#byPod.has(pod) || this.#byPod.size < MOST_PODS) this.#byPod.set(pod, (this.#byPod.get(pod) ?? 0) + 1)
    this.#latencies.push(performance.now() - startMs)
  }

  #cannotTry(message: string): void {
    this.#untried++
    this.#lastError = message
  }

  #report(): void {
    const { request, host, port, onReport } = this.#options
    const sorted = this.#latencies.sort((a, b) => a - b)
    this.#latencies = []
    const { answered, refused, timedOut, cut } = this.#counts
    const share = (part: number) => {
      const ms = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
      return ms === undefined ? null : Math.round(ms * 10) / 10
    }
    onReport({
      request,
      url: `http://${host.includes(':') ? `[${host}]` : host}:${port}/`,
      running: this.#isRunning,
      answered,
      failed: refused + timedOut + cut + this.#untried,
      refused,
      timedOut,
      cut,
      byPod: Object.fromEntries(this.#byPod),
      lastError: this.#lastError,
      medianMs: share(0.5),
      p99Ms: share(0.99),
    })
  }
}

function outcomeOf({ code }: NodeJS.ErrnoException, isConnected: boolean): Outcome {
  if (isConnected) return 'cut'
  return code === 'ETIMEDOUT' ? 'timedOut' : 'refused'
}
