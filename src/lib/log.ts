// The logger: an interface that is passed in, and its one implementation. It decides what is printed, and hands finished
// lines to a sink. Where lines go is the sink's business; how they look is the format's (log-text.ts, log-json.ts).

import { captureCaller, type Caller } from './log-caller.ts'

/** Named values of a log line, in the order in which they are printed. */
export type LogValues = Readonly<Record<string, unknown>>

/** The part of a logger that prints. */
export interface LogLines {
  info(message: string, values?: LogValues): void
}

/**
 * `log.v(4)?.info('Synced', { took: expensive() })`: with the verbosity below 4 the arguments are never evaluated.
 * Errors and warnings are printed at every verbosity.
 */
export interface Logger extends LogLines {
  warn(message: string, values?: LogValues): void
  /** The error comes first, as in klog; pass undefined where there is none. */
  error(error: unknown, message: string, values?: LogValues): void
  /** What prints at this verbosity, or undefined when the verbosity is too low. */
  v(level: number): LogLines | undefined
  withName(name: string): Logger
  withValues(values: LogValues): Logger
}

export type Severity = 'info' | 'warning' | 'error'

/** Everything that a format needs to print one line. */
export interface LogRecord {
  readonly severity: Severity
  readonly level: number
  /** Milliseconds since 1970, with a fraction. */
  readonly time: number
  readonly caller: Caller
  /** The names given with withName, outermost first. */
  readonly names: readonly string[]
  readonly message: string
  readonly values: LogValues
  /** What was passed to error(); undefined for the other two. */
  readonly error?: unknown
}

export type LogFormat = (record: LogRecord) => string

/** Receives finished lines, newline included. */
export type LogSink = (severity: Severity, line: string) => void

/** What can be changed while the program runs; every logger derived from one shares it. */
export interface LogSettings {
  format: LogFormat
  sink: LogSink
  verbosity: number
  /** Where the sources are that a place of a bundled program comes from. */
  sourceOf?: (caller: Caller) => Caller
  /** The verbosity of a file that has one of its own (`--vmodule`), or undefined. */
  verbosityOf?: ((caller: Caller) => number | undefined) | undefined
  now: () => number
}

/** A logger over settings that the caller may change later. */
export function createLogger(settings: LogSettings): Logger {
  return loggerIn(settings, { names: [], values: {}, level: 0 })
}

type Context = Pick<LogRecord, 'names' | 'values' | 'level'>

function loggerIn(settings: LogSettings, context: Context): Logger {
  // Plain functions rather than methods: each is also the frame below which its caller stands on the stack.
  function info(message: string, values?: LogValues): void {
    print({ severity: 'info', message, caller: callerOf(info) }, values)
  }

  function warn(message: string, values?: LogValues): void {
    print({ severity: 'warning', message, caller: callerOf(warn) }, values)
  }

  function error(cause: unknown, message: string, values?: LogValues): void {
    print({ severity: 'error', message, caller: callerOf(error), error: cause }, values)
  }

  function v(level: number): LogLines | undefined {
    // Only with --vmodule does the caller matter before anything is printed, so only then is it looked up here.
    const enough = settings.verbosityOf?.(callerOf(v)) ?? settings.verbosity
    return enough < level ? undefined : loggerIn(settings, { ...context, level })
  }

  function callerOf(entry: (...args: never[]) => unknown): Caller {
    const caller = captureCaller(entry)
    return settings.sourceOf?.(caller) ?? caller
  }

  function print(line: Omit<LogRecord, 'time' | keyof Context>, values: LogValues | undefined): void {
    const all = values === undefined ? context.values : { ...context.values, ...values }
    settings.sink(line.severity, settings.format({ ...line, ...context, values: all, time: settings.now() }))
  }

  return {
    info,
    warn,
    error,
    v,
    withName: (name) => loggerIn(settings, { ...context, names: [...context.names, name] }),
    withValues: (values) => loggerIn(settings, { ...context, values: { ...context.values, ...values } }),
  }
}

/** A logger that prints nothing, for code that must be given one. */
export const silentLogger: Logger = {
  info: () => {},
  warn: () => {},
  error: () => {},
  v: () => undefined,
  withName: () => silentLogger,
  withValues: () => silentLogger,
}
