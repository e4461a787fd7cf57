// Times and ages as Kubernetes writes them.

/** Milliseconds since 1970 of an RFC 3339 time, with a fraction; undefined when it is none. */
export function parseTime(text: string): number | undefined {
  const match = /^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.exec(text)
  if (match === null) return undefined
  const ms = Date.parse(`${match[1]}${match[3]}`.toUpperCase())
  return Number.isNaN(ms) ? undefined : ms + Number(match[2] ?? 0) * 1000
}

/** `2026-01-31T12:00:00Z` */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** `2026-01-31T12:00:00.123456Z` */
export function formatMicroTime(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const micros = Math.floor((ms - seconds * 1000) * 1000)
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const year = 365 * day

/**
 * How long ago, as kubectl prints it: two units at most, and the smaller one only while it says something
 * (`90s`, `2m30s`, `15m`, `3h10m`, `26h`, `5d4h`, `30d`, `3y100d`).
 */
export function formatAge(ms: number): string {
  if (ms < -second) return '<invalid>'
  if (ms < 0) return '0s'
  if (ms < 2 * minute) return `${Math.floor(ms / second)}s`
  if (ms < 10 * minute) return two(ms, [minute, 'm'], [second, 's'])
  if (ms < 3 * hour) return `${Math.floor(ms / minute)}m`
  if (ms < 8 * hour) return two(ms, [hour, 'h'], [minute, 'm'])
  if (ms < 2 * day) return `${Math.floor(ms / hour)}h`
  if (ms < 8 * day) return two(ms, [day, 'd'], [hour, 'h'])
  if (ms < 2 * year) return `${Math.floor(ms / day)}d`
  if (ms < 8 * year) return two(ms, [year, 'y'], [day, 'd'])
  return `${Math.floor(ms / year)}y`
}

function two(ms: number, [big, bigName]: [number, string], [small, smallName]: [number, string]): string {
  const rest = Math.floor((ms % big) / small)
  return `${Math.floor(ms / big)}${bigName}${rest === 0 ? '' : `${rest}${smallName}`}`
}
