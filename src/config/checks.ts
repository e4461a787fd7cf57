// Rules for the value of one field. Each returns what is allowed, or undefined for a valid value.

import { ipFamily, parseCidr, parseIp } from '../lib/ip.ts'

export type Check<T> = (value: T) => string | undefined

export function within(low: number, high: number): Check<number> {
  return (value) => (value >= low && value <= high ? undefined : `must be within the range [${low}, ${high}]`)
}

export const notNegative: Check<number> = (value) => (value >= 0 ? undefined : 'must be greater than or equal to 0')

export const positive: Check<number> = (value) => (value > 0 ? undefined : 'must be greater than 0')

export function oneOf(...allowed: readonly string[]): Check<string> {
  return (value) =>
    allowed.includes(value) ? undefined : `must be one of ${allowed.map((each) => JSON.stringify(each)).join(', ')}`
}

export const isIp: Check<string> = (value) =>
  parseIp(value) === undefined ? 'must be an IP address (e.g. 10.0.0.1 or fd00::1)' : undefined

export const isCidr: Check<string> = (value) =>
  parseCidr(value) === undefined ? 'must be a CIDR (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)' : undefined

export const isSocketScope: Check<string> = (value) =>
  ['', 'pods', 'node', 'all'].includes(value) || value.startsWith('/')
    ? undefined
    : 'must be empty, "pods", "node", "all" or the folder of a cgroup (e.g. /sys/fs/cgroup/kubepods.slice)'

/** `IP:port`, as Go's SplitHostPort reads it. */
export const isHostPort: Check<string> = (value) => {
  const parts = splitHostPort(value)
  if (parts === undefined) return 'must be IP:port (e.g. 0.0.0.0:10256 or [::]:10256)'
  if (ipFamily(parts.host) === undefined) {
    return `must be IP:port (e.g. 0.0.0.0:10256 or [::]:10256), but ${JSON.stringify(parts.host)} is not an IP address`
  }
  const port = /^[+]?\d+$/.test(parts.port) ? Number(parts.port) : -1
  if (port < 1 || port > 65535) {
    return `must be IP:port, with a port from 1 to 65535, but the port is ${JSON.stringify(parts.port)}`
  }
  return undefined
}

/** The parts of `host:port` or `[host]:port`; undefined for any other text. */
export function splitHostPort(text: string): { host: string; port: string } | undefined {
  const colon = text.lastIndexOf(':')
  if (colon < 0) return undefined
  const port = text.slice(colon + 1)
  const before = text.slice(0, colon)
  if (before.startsWith('[')) {
    return before.endsWith(']') && before.indexOf(']') === before.length - 1
      ? { host: before.slice(1, -1), port }
      : undefined
  }
  return /[:[\]]/.test(before) ? undefined : { host: before, port }
}

/** The minor version before ours, as in 1.16. */
export function previousMinor(version: { major: number; minor: number }): Check<string> {
  const allowed = `${version.major}.${version.minor - 1}`
  return (value) =>
    value === '' || value === allowed ? undefined : `must be empty or the previous minor version, ${allowed}`
}
