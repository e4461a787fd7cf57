// Addresses and ranges in fields.

import {
  type Bytes,
  canonicalIp,
  cidrContains,
  formatCidr,
  ipFamily,
  isLinkLocal,
  isLoopback,
  parseCidr,
  parseIp,
} from '../../../../../src/lib/ip.ts'
import { invalidValue } from './problem.ts'
import type { FieldProblem } from './problem.ts'

export function validateIp(path: string, value: string): FieldProblem[] {
  if (canonicalIp(value) === undefined) {
    return [invalidValue(path, value, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
  }
  return hasLeadingZeros(value) ? [invalidValue(path, value, 'must not have leading 0s')] : []
}

/** An address that traffic can be sent to. */
export function validateEndpointIp(path: string, value: string): FieldProblem[] {
  const problems = validateIp(path, value)
  const bytes = parseIp(value)
  if (problems.length > 0 || bytes === undefined) return problems
  const complaint = specialAddress(value, bytes)
  return complaint === undefined ? [] : [invalidValue(path, value, complaint)]
}

const linkLocalMulticast = [parseCidr('224.0.0.0/24'), parseCidr('ff02::/16')]

function specialAddress(value: string, bytes: Bytes): string | undefined {
  if (/^\0+$/.test(bytes)) return `may not be unspecified (${value})`
  if (isLoopback(bytes)) return 'may not be in the loopback range (127.0.0.0/8, ::1/128)'
  if (isLinkLocal(bytes)) return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'
  if (linkLocalMulticast.some((range) => range !== undefined && cidrContains(range, bytes))) {
    return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'
  }
  return undefined
}

export function validateFamily(path: string, value: string, family: 4 | 6): FieldProblem[] {
  return ipFamily(value) === family ? [] : [invalidValue(path, value, `must be an IPv${family} address`)]
}

export function validateCidr(path: string, value: string): FieldProblem[] {
  if (parseCidr(value) === undefined) {
    return [invalidValue(path, value, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
  }
  return hasLeadingZeros(value) ? [invalidValue(path, value, 'must not have leading 0s')] : []
}

/** A range in its one canonical form, as new fields demand it. */
export function validateCanonicalCidr(path: string, value: string): FieldProblem[] {
  const cidr = parseCidr(value)
  if (cidr === undefined) return validateCidr(path, value)
  const canonical = formatCidr(cidr)
  return canonical === value ? [] : [invalidValue(path, value, `must be in canonical form ("${canonical}")`)]
}

function hasLeadingZeros(value: string): boolean {
  return !value.includes(':') && /(^|\.)0\d/.test(value)
}
