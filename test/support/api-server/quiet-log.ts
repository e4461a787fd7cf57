// A logger for tests that keeps what it is told.

import type { Logger, LogValues } from '../../../src/lib/log.ts'

export interface LoggedLine {
  readonly severity: 'info' | 'warning' | 'error'
  readonly message: string
  readonly error: unknown
  readonly values: LogValues
}

export interface QuietLog extends Logger {
  readonly lines: readonly LoggedLine[]
  /** The messages alone. */
  messages(severity?: LoggedLine['severity']): string[]
}

/** Prints nothing; every verbosity is on. */
export function quietLog(lines: LoggedLine[] = []): QuietLog {
  const log: QuietLog = {
    lines,
    messages: (severity) =>
      lines.filter((line) => severity === undefined || line.severity === severity).map((line) => line.message),
    info: (message, values = {}) => void lines.push({ severity: 'info', message, error: undefined, values }),
    warn: (message, values = {}) => void lines.push({ severity: 'warning', message, error: undefined, values }),
    error: (error, message, values = {}) => void lines.push({ severity: 'error', message, error, values }),
    v: () => log,
    withName: () => log,
    withValues: () => log,
  }
  return log
}
