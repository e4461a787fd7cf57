// The messages of the connection tracker by name, for KUBE_PROXY_NLDEBUG=1.

import type { MessageWord } from '../netlink/debug.ts'
import { NFGENMSG_LENGTH } from '../netlink/nfnetlink.ts'
import { NFNL_SUBSYS_CTNETLINK } from '../netlink/uapi/nfnetlink.ts'
import { flowAttributes } from './messages.ts'

const NAMES: Readonly<Record<number, string>> = { 0: 'newFlow', 1: 'getFlow', 2: 'deleteFlow' }

export function conntrackVocabulary(type: number): MessageWord | undefined {
  if (type >> 8 !== NFNL_SUBSYS_CTNETLINK) return undefined
  const number = type & 0xff
  return { name: NAMES[number] ?? `flow message ${number}`, attributes: flowAttributes, headerLength: NFGENMSG_LENGTH }
}
