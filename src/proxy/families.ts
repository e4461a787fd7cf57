// Which IP families this machine has.

import { existsSync } from 'node:fs'

/** A kernel booted with ipv6.disable=1, or built without it, has no such file. */
export function hasIpv6(): boolean {
  return existsSync('/proc/net/if_inet6')
}
