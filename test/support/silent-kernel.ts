// Programmers of all modes whose kernel takes everything and keeps nothing, but counts what it is sent.

import { ManualClock } from './manual-clock.ts'
import { silentLogger } from '../../src/lib/log.ts'
import { iptablesPlanner } from '../../src/modes/iptables/plan/planner.ts'
import { IptablesProgrammer } from '../../src/modes/iptables/programmer.ts'
import { ipvsPlanner } from '../../src/modes/ipvs/plan/planner.ts'
import { IpvsProgrammer } from '../../src/modes/ipvs/programmer.ts'
import { FamilyAudit } from '../../src/modes/ipvs/table-watch.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import type { Programmer } from '../../src/reconcile/programmer.ts'
import type { TablePlanner } from '../../src/table-sync/table-planner.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { Writer } from '../../src/netlink/writer.ts'
import { writeBatch } from '../../src/nftables/bytes/batch.ts'
import type { TableDriver } from '../../src/nftables/table-driver.ts'
import { numberedListeners } from './golden-userspace.ts'

/** What the kernel was sent so far. */
export interface Sent {
  /** Transactions, or runs of a program. */
  transactions: number
  /** Of nftables: netlink messages; of ipvs: operations on servers and destinations; of iptables: lines. */
  messages: number
  /** Of nftables. */
  elements: number
  bytes: number
}

export function nothingSent(): Sent {
  return { transactions: 0, messages: 0, elements: 0, bytes: 0 }
}

/** Takes what the kernel would get, as the bytes that it would get. */
function encoder(table: string, sent: Sent): TableDriver {
  return {
    apply: (ops) => {
      const writer = new Writer()
      sent.messages += writeBatch(writer, { family: 'ip', table }, ops).length
      sent.transactions++
      sent.bytes += writer.length
      for (const op of ops) if ('elements' in op) sent.elements += op.elements.length
      return { bytes: writer.length }
    },
    read: () => undefined,
    readElements: () => [],
    close: () => {},
  }
}

function tableProgrammer(planner: TablePlanner, sent: Sent): Programmer {
  return new TableProgrammer({ planner, driver: encoder(planner.table, sent), clock: new ManualClock() })
}

export const silentProgrammers: Record<'nftables' | 'userspace' | 'iptables' | 'ipvs', (sent?: Sent) => Programmer> = {
  nftables: (sent = nothingSent()) => tableProgrammer(nftablesPlanner, sent),
  userspace: (sent = nothingSent()) => tableProgrammer(numberedListeners('192.168.0.1', 1), sent),
  iptables: (sent = nothingSent()) =>
    new IptablesProgrammer({
      planner: iptablesPlanner({
        localhostNodePorts: 'allowed',
        invalidPackets: 'drop',
        masqueradePorts: 'fully',
        counters: new Set(),
      }),
      driver: {
        backend: 'nft',
        read: () => Promise.resolve(new Map()),
        restore: (text) => {
          let isEmpty = true
          for (const piece of text) {
            isEmpty = false
            if (piece === '') throw new Error('no piece is empty')
            sent.messages += piece.split('\n').length - 1
            sent.bytes += piece.length
          }
          if (!isEmpty) sent.transactions++
          return Promise.resolve()
        },
        close: () => {},
      },
      log: silentLogger,
      counts: { rules: () => {}, restoreFailed: () => {} },
      onRefused: () => {},
    }),
  ipvs: (sent = nothingSent()) =>
    new IpvsProgrammer({
      family: 4,
      servers: {
        read: () => [],
        readConnections: () => Promise.resolve(false),
        readDestinations: () => [],
        apply: (ops) => {
          if (ops.length > 0) sent.transactions++
          sent.messages += ops.length
          return { bytes: ops.length }
        },
        close: () => {},
      },
      link: {
        ensure: () => {},
        read: () => ({ own: [], others: ['192.168.0.1'] }),
        apply: () => ({ bytes: 0 }),
        close: () => {},
      },
      rules: encoder(ipvsPlanner.table, sent),
      clock: new ManualClock(),
      scheduler: 'rr',
      excludeCidrs: [],
      drainLimitMs: 0,
      audit: new FamilyAudit(),
      onDrained: () => {},
      onError: (error) => {
        throw error
      },
    }),
}
