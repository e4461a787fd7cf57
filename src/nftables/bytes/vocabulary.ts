// The messages of nf_tables by name, for KUBE_PROXY_NLDEBUG=1.

import { NFGENMSG_LENGTH } from '../../netlink/nfnetlink.ts'
import type { Codec } from '../../netlink/attributes.ts'
import type { MessageWord } from '../../netlink/debug.ts'
import { NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NFNL_SUBSYS_NFTABLES } from '../../netlink/uapi/nfnetlink.ts'
import { chainAttributes } from './chain.ts'
import { elementListAttributes } from './element.ts'
import { generationAttributes, MESSAGE, type MessageName } from './messages.ts'
import { ruleAttributes } from './rule.ts'
import { setAttributes } from './set.ts'
import { tableAttributes } from './table.ts'
import { traceAttributes } from './trace.ts'

const ATTRIBUTES: Readonly<Record<MessageName, Codec<unknown>>> = {
  newTable: tableAttributes,
  getTable: tableAttributes,
  deleteTable: tableAttributes,
  newChain: chainAttributes,
  getChain: chainAttributes,
  deleteChain: chainAttributes,
  newRule: ruleAttributes,
  getRule: ruleAttributes,
  deleteRule: ruleAttributes,
  newSet: setAttributes,
  getSet: setAttributes,
  deleteSet: setAttributes,
  newElements: elementListAttributes,
  getElements: elementListAttributes,
  deleteElements: elementListAttributes,
  destroyElements: elementListAttributes,
  newGeneration: generationAttributes,
  getGeneration: generationAttributes,
  trace: traceAttributes,
}

const byNumber = new Map((Object.keys(MESSAGE) as MessageName[]).map((name) => [MESSAGE[name], name]))

export function nftablesVocabulary(type: number): MessageWord | undefined {
  if (type === NFNL_MSG_BATCH_BEGIN) return { name: 'batchBegin' }
  if (type === NFNL_MSG_BATCH_END) return { name: 'batchEnd' }
  if (type >> 8 !== NFNL_SUBSYS_NFTABLES) return undefined
  const name = byNumber.get((type & 0xff) as (typeof MESSAGE)[MessageName])
  return name && { name, attributes: ATTRIBUTES[name], headerLength: NFGENMSG_LENGTH }
}
