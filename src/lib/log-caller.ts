/** A place in the source. */
export interface Caller {
  /** The whole path or URL, as the engine names it. */
  readonly path: string
  /** The last part of the path. */
  readonly file: string
  readonly line: number
}

const unknownCaller: Caller = { path: '???', file: '???', line: 1 }

/** The place that called `entry`. It costs some microseconds: ask only when a line is really printed. */
export function captureCaller(entry: (...args: never[]) => unknown): Caller {
  const holder: { stack?: string } = {}
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 1
  Error.captureStackTrace(holder, entry)
  Error.stackTraceLimit = limit
  return parseStackLine(holder.stack ?? '')
}

/** Reads the first frame of a stack: `at fn (file:///a/b.js:12:3)` or `at /a/b.js:12:3`. */
export function parseStackLine(stack: string): Caller {
  const match = /^\s+at (?:.*\()?(.+?):(\d+):\d+\)?$/m.exec(stack)
  if (match === null) return unknownCaller
  const path = match[1]!
  return { path, file: path.slice(path.lastIndexOf('/') + 1), line: Number(match[2]) }
}
