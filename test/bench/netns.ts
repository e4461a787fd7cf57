import { execFileSync } from 'node:child_process'
import { unshareNetwork } from '../../src/system/netns.ts'

/** A network namespace of its own, with loopback. */
export function enterOwnNetwork(): void {
  if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make a network namespace')
  unshareNetwork()
  setLoopbackUp()
}

/** In a new network namespace even loopback is down. */
export function setLoopbackUp(): void {
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
}

/** In our own network namespace, so that each measurement starts from nothing. */
export function flushRules(): void {
  execFileSync('nft', ['flush', 'ruleset'])
}
