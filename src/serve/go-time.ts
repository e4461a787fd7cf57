// Times as Go prints them.

/** RFC 3339 as in Go's JSON: UTC, and a fraction only as long as needed. Undefined is Go's zero time. */
export function formatJsonTime(ms: number | undefined): string {
  if (ms === undefined) return '0001-01-01T00:00:00Z'
  return new Date(ms).toISOString().replace(/\.?0+Z$/, 'Z')
}

/** As `date` prints it, which is what /statusz shows: `Sun Nov 15 04:41:18 UTC 2026`. */
export function formatUnixDate(ms: number): string {
  const [weekday, day, month, year, time] = new Date(ms).toUTCString().replace(',', '').split(' ')
  return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} UTC ${year}`
}
