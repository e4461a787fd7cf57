import { execFileSync } from 'node:child_process'

/** In a new network namespace even loopback is down. */
export function setLoopbackUp(): void {
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
}

/** In our own network namespace, so that each measurement starts from nothing. */
export function flushRules(): void {
  execFileSync('nft', ['flush', 'ruleset'])
}
