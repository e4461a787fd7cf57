// component-base's JSON: one object per line, `ts` in milliseconds, `v` for everything that is not an error.

import type { LogRecord } from './log.ts'
import { jsonOf, messageOfValue } from './log-values.ts'

export function jsonFormat(record: LogRecord): string {
  const { time, names, caller, message, severity, level, error, values } = record
  const line: Record<string, unknown> = { ts: Math.round(time * 10_000) / 10_000 }
  if (names.length > 0) line['logger'] = names.join('.')
  line['caller'] = `${caller.path.split('/').slice(-2).join('/')}:${caller.line}`
  line['msg'] = message
  if (severity !== 'error') line['v'] = level
  // A value must not replace one of the keys above: readers of the log rely on them.
  for (const [key, value] of Object.entries(values)) line[key in line || key === 'err' ? `${key}_` : key] = value
  if (error !== undefined) line['err'] = messageOfValue(error)
  return jsonOf(line) + '\n'
}
