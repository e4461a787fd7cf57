// Finds the IP families of this machine.

import { existsSync, readFileSync } from 'node:fs'

/** A kernel booted with ipv6.disable=1, or built without it, has no such file; an operator may have turned it off later. */
export function hasIpv6(): boolean {
  return existsSync('/proc/net/if_inet6') && !isOff('/proc/sys/net/ipv6/conf/all/disable_ipv6')
}

function isOff(setting: string): boolean {
  try {
    return readFileSync(setting, 'utf8').trim() === '1'
  } catch {
    return false
  }
}
