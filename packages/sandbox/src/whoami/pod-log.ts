// What a pod has logged: a line per request, for `kubectl logs`.

const KEPT_LINES = 1000

export interface LogLine {
  readonly timeMs: number
  readonly text: string
}

export class PodLog {
  readonly #lines: LogLine[] = []
  readonly #subscribers = new Set<Subscriber>()

  append(text: string): void {
    const line = { timeMs: Date.now(), text }
    this.#lines.push(line)
    if (this.#lines.length > KEPT_LINES) this.#lines.shift()
    for (const { onLine } of this.#subscribers) onLine(line)
  }

  lines(): readonly LogLine[] {
    return this.#lines
  }

  /** Calls back for each line from now on, until close() or the returned function is called. */
  follow(onLine: (line: LogLine) => void, onEnd: () => void): () => void {
    const subscriber = { onLine, onEnd }
    this.#subscribers.add(subscriber)
    return () => this.#subscribers.delete(subscriber)
  }

  close(): void {
    for (const { onEnd } of this.#subscribers) onEnd()
    this.#subscribers.clear()
  }
}

interface Subscriber {
  readonly onLine: (line: LogLine) => void
  readonly onEnd: () => void
}

export interface LogQuery {
  readonly follow: boolean
  readonly timestamps: boolean
  readonly tailLines: number
  readonly sinceMs: number
}

export function parseLogQuery(query: URLSearchParams, nowMs: number): LogQuery {
  const seconds = query.get('sinceSeconds')
  const sinceTime = Date.parse(query.get('sinceTime') ?? '')
  return {
    follow: query.get('follow') === 'true',
    timestamps: query.get('timestamps') === 'true',
    tailLines: Number(query.get('tailLines') ?? Infinity),
    sinceMs: seconds === null ? (Number.isNaN(sinceTime) ? 0 : sinceTime) : nowMs - Number(seconds) * 1000,
  }
}

export function formatLogLine({ timeMs, text }: LogLine, { timestamps }: LogQuery): string {
  return timestamps ? `${new Date(timeMs).toISOString()} ${text}\n` : `${text}\n`
}

export function pickLines(lines: readonly LogLine[], { sinceMs, tailLines }: LogQuery): readonly LogLine[] {
  const recent = lines.filter(({ timeMs }) => timeMs >= sinceMs)
  return tailLines === 0 ? [] : recent.slice(-tailLines)
}
