// klog's text: `I1115 04:25:32.123456   12345 file.js:123] "Message" key="value"`. Tools that read kube-proxy's log know it.

import type { LogFormat, LogRecord, Severity } from './log.ts'
import { escapeControls, formatLogValue, messageOfValue } from './log-values.ts'

export interface TextOptions {
  readonly pid: number
  /** Print no header (`--skip-headers`). */
  readonly skipHeaders?: boolean
  /** Print the file's folder too (`--add-dir-header`). */
  readonly addDirHeader?: boolean
}

const letters: Readonly<Record<Severity, string>> = { info: 'I', warning: 'W', error: 'E' }

export function textFormat(options: TextOptions): LogFormat {
  return (record) => (options.skipHeaders === true ? '' : header(record, options)) + body(record) + '\n'
}

function header({ severity, time, caller }: LogRecord, options: TextOptions): string {
  const date = new Date(time)
  const micros = Math.floor((time - Math.floor(time)) * 1000)
  const day = two(date.getMonth() + 1) + two(date.getDate())
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  const fraction = String(date.getMilliseconds() * 1000 + micros).padStart(6, '0')
  const file = options.addDirHeader === true ? caller.path.split('/').slice(-2).join('/') : caller.file
  return `${letters[severity]}${day} ${clock}.${fraction} ${String(options.pid).padStart(7)} ${file}:${caller.line}] `
}

function body({ message, error, names, values }: LogRecord): string {
  let text = escapeControls(JSON.stringify(message))
  if (error !== undefined) text += pair('err', messageOfValue(error))
  if (names.length > 0) text += pair('logger', names.join('.'))
  for (const [key, value] of Object.entries(values)) text += pair(key, value)
  return text
}

function pair(key: string, value: unknown): string {
  const several = typeof value === 'string' || value instanceof Error ? messageOfValue(value) : ''
  if (!several.includes('\n')) return ` ${key}=${formatLogValue(value)}`
  // Several lines stand as they are, indented, so that a list of errors stays readable.
  const lines = several.replace(/\n$/, '').split('\n').map(escapeControls).join('\n\t')
  return ` ${key}=<\n\t${lines}\n >`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
