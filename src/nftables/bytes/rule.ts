// Rules. net/netfilter/nf_tables_api.c, nft_rule_policy

import type { Rule } from '../types.ts'
import { attr, be64, bytes, cstring, type Infer, list, nest, opt } from '../../netlink/attributes.ts'
import * as uapi from './uapi.ts'
import { expression } from './expressions.ts'
import { commentUserdata, decodeComment, UDATA_COMMENT } from './userdata.ts'

export const ruleAttributes = nest({
  table: attr(uapi.NFTA_RULE_TABLE, cstring),
  chain: attr(uapi.NFTA_RULE_CHAIN, cstring),
  handle: opt(uapi.NFTA_RULE_HANDLE, be64),
  expressions: opt(uapi.NFTA_RULE_EXPRESSIONS, list(uapi.NFTA_LIST_ELEM, expression)),
  userdata: opt(uapi.NFTA_RULE_USERDATA, bytes),
})

export type RuleAttributes = Infer<typeof ruleAttributes>

export function ruleToAttributes(at: { table: string; chain: string }, rule: Rule): RuleAttributes {
  return { ...at, expressions: rule.expressions, ...commentUserdata(rule.comment) }
}

export function ruleFromAttributes({ handle, expressions = [], userdata }: RuleAttributes): Rule {
  const rule = { text: '', comment: decodeComment(UDATA_COMMENT, userdata), expressions }
  return handle === undefined ? rule : { ...rule, handle }
}
