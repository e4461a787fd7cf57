// The rights of this process, as the kernel counts them.

import { readFileSync } from 'node:fs'

const BITS = {
  CAP_NET_BIND_SERVICE: 10,
  CAP_NET_ADMIN: 12,
  CAP_NET_RAW: 13,
  CAP_SYS_MODULE: 16,
  CAP_SYS_ADMIN: 21,
} as const

export type Capability = keyof typeof BITS

/** The ones among those that concern us that a /proc/PID/status grants. */
export function parseCapabilities(status: string): Set<Capability> {
  const mask = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  const names = Object.keys(BITS) as Capability[]
  return new Set(names.filter((name) => (mask >> BigInt(BITS[name])) & 1n))
}

export function readCapabilities(): Set<Capability> {
  return parseCapabilities(readFileSync('/proc/self/status', 'utf8'))
}
