// Durations as Go writes them: "1h2m", "1.5s", "250ms". Here they are numbers of milliseconds.

/** Nanoseconds per unit. */
const units: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3, // U+00B5, micro sign
  μs: 1e3, // U+03BC, Greek letter mu
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
}

/** What a duration may look like, for error messages. */
export const durationForm = 'must be a duration such as "30s", "1m30s" or "2h22m"'

const maxNanos = 2n ** 63n - 1n

/** Milliseconds of a Go duration, or undefined when the text is none. Everything Go's ParseDuration takes is taken. */
export function parseDuration(text: string): number | undefined {
  const nanos = parseDurationNanos(text)
  return nanos === undefined ? undefined : nanosToMs(nanos)
}

function parseDurationNanos(text: string): bigint | undefined {
  const match = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(text)
  if (match === null) return undefined
  let nanos = 0n
  for (const part of match[2]!.matchAll(/(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g)) {
    const unit = units[part[3]!]!
    // Go cuts what is below a nanosecond.
    const fraction = part[2] === '' ? 0n : (BigInt(part[2]!) * BigInt(unit)) / 10n ** BigInt(part[2]!.length)
    nanos += BigInt(part[1]!) * BigInt(unit) + fraction
    if (nanos > maxNanos) return undefined
  }
  return match[1] === '-' ? -nanos : nanos
}

/** As Go's Duration.String: "0s", "1.5ms", "30s", "1h0m0s". */
export function formatDuration(ms: number): string {
  const nanos = msToNanos(ms)
  if (nanos === 0n) return '0s'
  const sign = nanos < 0n ? '-' : ''
  const size = nanos < 0n ? -nanos : nanos
  if (size < 1_000n) return `${sign}${size}ns`
  if (size < 1_000_000n) return `${sign}${decimal(size, 3)}µs`
  if (size < 1_000_000_000n) return `${sign}${decimal(size, 6)}ms`
  const minutes = size / 60_000_000_000n
  const seconds = `${decimal(size % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return sign + seconds
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`
}

/** Nanoseconds to milliseconds: exact for whole milliseconds, and below a nanosecond off for durations under 100 days. */
export function nanosToMs(nanos: bigint): number {
  return Number(nanos / 1_000_000n) + Number(nanos % 1_000_000n) / 1e6
}

function msToNanos(ms: number): bigint {
  const whole = Math.trunc(ms)
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6))
}

/** size / 10^digits, without trailing zeros. */
function decimal(size: bigint, digits: number): string {
  const scale = 10n ** BigInt(digits)
  const fraction = String(size % scale)
    .padStart(digits, '0')
    .replace(/0+$/, '')
  return fraction === '' ? String(size / scale) : `${size / scale}.${fraction}`
}
