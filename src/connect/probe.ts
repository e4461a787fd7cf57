// Whether sockets could choose here. Nothing is attached, and nothing stays.

import { systemClock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import { findCgroup } from './cgroup.ts'
import { ConnectPrograms } from './connect-programs.ts'

/** The folder of their cgroup, or why they cannot. */
export type SocketOutlook =
  | { readonly kind: 'can choose'; readonly cgroup: string }
  | { readonly kind: 'cannot choose'; readonly why: string }

export function probeSockets(scope: string, families: readonly Family[]): SocketOutlook {
  try {
    const cgroup = findCgroup(scope)
    new ConnectPrograms(undefined, {
      families,
      stickyList: () => undefined,
      isPod: () => false,
      onFailed: () => {},
      clock: systemClock,
    }).close()
    return { kind: 'can choose', cgroup }
  } catch (error) {
    return { kind: 'cannot choose', why: messageOf(error) }
  }
}
