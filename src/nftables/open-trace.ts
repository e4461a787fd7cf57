// Tracing, switched on for one flow and off again, and what the kernel reports meanwhile.
//
// The table belongs to the socket of this process by which it was made: when that is closed, for whatever reason, the kernel takes
// the table away.

import { drainSocket } from '../netlink/drain.ts'
import { NetlinkConnection } from '../netlink/connection.ts'
import { decodeNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NFNLGRP_NFTRACE } from '../netlink/uapi/nfnetlink.ts'
import { NETLINK_NETFILTER, NLM_F_DUMP } from '../netlink/uapi/netlink.ts'
import { beginNftablesMessage } from './bytes/messages.ts'
import { ruleAttributes, ruleFromAttributes } from './bytes/rule.ts'
import { decodeTrace, type TraceEvent } from './bytes/trace.ts'
import { nftablesVocabulary } from './bytes/vocabulary.ts'
import { describeRule } from './describe-rule.ts'
import { NftablesDriver } from './driver.ts'
import { nftFamily } from './language.ts'
import { type FlowToTrace, planTraceTable } from './trace-table.ts'
import { makeTable } from './transaction.ts'

/** One packet meets some dozens of rules; a connection that is tried again and again, some hundreds. */
const RECEIVE_BUFFER = 4 << 20

export interface TracedRule {
  readonly event: TraceEvent
  /** The rule as text like nft's; undefined where it met none, or the rule is gone. */
  readonly rule: string | undefined
}

export class Trace {
  readonly #driver: NftablesDriver
  readonly #socket: NetlinkSocket

  constructor(table: string, flow: FlowToTrace) {
    this.#socket = new NetlinkSocket(NETLINK_NETFILTER, {
      receiveBuffer: RECEIVE_BUFFER,
      groups: [NFNLGRP_NFTRACE],
      vocabulary: nftablesVocabulary,
    })
    this.#driver = new NftablesDriver({ family: nftFamily(flow.family), table })
    try {
      this.#driver.apply(makeTable(planTraceTable(flow)))
    } catch (error) {
      this.#driver.close()
      this.#socket.close()
      throw error
    }
  }

  /** What the kernel has reported so far, with the rules as they are now. */
  read(): TracedRule[] {
    const events: TraceEvent[] = []
    drainSocket(this.#socket, (message) => {
      const event = decodeTrace(message)
      if (event !== undefined) events.push(event)
    })
    const texts = new Map<string, ReadonlyMap<bigint, string>>()
    return events.map((event) => {
      const { family, table, handle } = event
      if (handle === undefined) return { event, rule: undefined }
      const key = `${family} ${table}`
      let rules = texts.get(key)
      if (rules === undefined) texts.set(key, (rules = readRules(family, table)))
      return { event, rule: rules.get(handle) }
    })
  }

  /** Tracing ends, and nothing of it stays. */
  close(): void {
    this.#socket.close()
    try {
      this.#driver.apply([{ op: 'deleteTable' }])
    } finally {
      this.#driver.close()
    }
  }
}

/** The rules of a table of any family, by handle. */
function readRules(family: number, table: string): ReadonlyMap<bigint, string> {
  using netlink = new NetlinkConnection(NETLINK_NETFILTER, { vocabulary: nftablesVocabulary })
  const rules = netlink.dump(
    `read rules of table ${table}`,
    (writer) => {
      beginNftablesMessage(writer, 'getRule', family, NLM_F_DUMP)
      ruleAttributes.write(writer, { table } as Parameters<typeof ruleAttributes.write>[1])
      writer.endMessage()
    },
    (message) => decodeNetfilterMessage(ruleAttributes, message),
  )
  return new Map(
    rules
      .filter((each) => each.table === table)
      .flatMap((attributes) => {
        const rule = ruleFromAttributes(attributes)
        const comment = rule.comment === undefined ? '' : ` comment "${rule.comment}"`
        return rule.handle === undefined ? [] : [[rule.handle, describeRule(rule) + comment] as const]
      }),
  )
}
