// Which process changes nftables: the kernel notifies of each transaction.

import { ignorePorts } from '../bpf/packet-filter.ts'
import { subscribe } from '../netlink/subscribe.ts'
import { NETLINK_NETFILTER } from '../netlink/uapi/netlink.ts'
import { NFNLGRP_NFTABLES } from '../netlink/uapi/nfnetlink.ts'
import { nftablesVocabulary } from './bytes/vocabulary.ts'
import { TransactionReader } from './notifications.ts'
import type { NftFamily } from './types.ts'

export type NftablesChange =
  /**
   * A transaction touched this table. `pid` is that of the process, as seen from the machine's first pid namespace. `port` is
   * that of its netlink socket: unless a program asks for another one, its pid as seen from its own pid namespace.
   */
  | {
      readonly kind: 'changed'
      readonly family: NftFamily
      readonly table: string
      readonly pid: number
      readonly port: number
    }
  /** Notifications were lost: anything may have changed. */
  | { readonly kind: 'lost' }

/** What we need to know of a driver to leave its transactions out. */
export interface Committer {
  readonly port: number
  readonly commits: number
  generation(): number
}

export interface NftablesWatchOptions {
  /** Transactions of these are not reported. */
  readonly ignore?: readonly Committer[]
}

export interface NftablesWatch {
  /**
   * Runs large transactions of ignored drivers. While any program listens, the kernel writes a notification for each element, even
   * if none wants it, and a transaction of 100,000 takes several times as long. So we do not listen while `work` runs,
   * and find out by the generation whether another process made a change meanwhile: then that is reported as lost.
   */
  quietly<T>(work: () => T): T
  close(): void
}

/** A foreign transaction may be large; what does not fit is reported as lost. */
const RECEIVE_BUFFER = 4 << 20

/** Reports, after each transaction, the tables of the families ip and ip6 that it touched. */
export function watchNftables(
  onChange: (change: NftablesChange) => void,
  { ignore = [] }: NftablesWatchOptions = {},
): NftablesWatch {
  const reader = new TransactionReader(({ pid, port, touched }) => {
    for (const { family, table } of touched) onChange({ kind: 'changed', family, table, pid, port })
  })
  const ignored = ignore.map(({ port }) => port)
  const { socket, close } = subscribe(NETLINK_NETFILTER, {
    receiveBuffer: RECEIVE_BUFFER,
    vocabulary: nftablesVocabulary,
    groups: [NFNLGRP_NFTABLES],
    // A datagram of this group is never about more than one transaction.
    prepare: ({ fd }) => ignorePorts(fd, ignored),
    onMessage: (message) => reader.add(message),
    onLost: () => {
      reader.clear()
      onChange({ kind: 'lost' })
    },
  })
  return {
    quietly: (work) => {
      const unseen = new UnseenChanges(ignore)
      socket.setMembership(NFNLGRP_NFTABLES, 'leave')
      try {
        return work()
      } finally {
        socket.setMembership(NFNLGRP_NFTABLES, 'join')
        if (unseen.any()) setImmediate(() => onChange({ kind: 'lost' }))
      }
    },
    close,
  }
}

/** Whether there were transactions that are not ours. */
class UnseenChanges {
  readonly #committers: readonly Committer[]
  readonly #before: number

  constructor(committers: readonly Committer[]) {
    this.#committers = committers
    this.#before = this.#foreign()
  }

  /** Without a driver this cannot be known: perhaps. */
  any(): boolean {
    return this.#committers.length === 0 || this.#foreign() !== this.#before
  }

  /** The number of all transactions ever less that of ours. Our own that changed nothing count too: a false alarm. */
  #foreign(): number {
    const generation = this.#committers[0]?.generation() ?? 0
    return this.#committers.reduce((rest, { commits }) => rest - commits, generation)
  }
}
