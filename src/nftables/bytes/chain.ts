// Chains. net/netfilter/nf_tables_api.c, nft_chain_policy

import type { Chain, Hook } from '../types.ts'
import { attr, be32, bytes, cstring, type Infer, named, nest, opt, sbe32 } from '../../netlink/attributes.ts'
import {
  NF_ACCEPT,
  NF_DROP,
  NF_INET_FORWARD,
  NF_INET_LOCAL_IN,
  NF_INET_LOCAL_OUT,
  NF_INET_POST_ROUTING,
  NF_INET_PRE_ROUTING,
  NFTA_CHAIN_HOOK,
  NFTA_CHAIN_NAME,
  NFTA_CHAIN_POLICY,
  NFTA_CHAIN_TABLE,
  NFTA_CHAIN_TYPE,
  NFTA_CHAIN_USERDATA,
  NFTA_HOOK_HOOKNUM,
  NFTA_HOOK_PRIORITY,
} from './uapi.ts'
import { commentUserdata, decodeComment, UDATA_COMMENT } from './userdata.ts'

const hookName = named(be32, {
  prerouting: NF_INET_PRE_ROUTING,
  input: NF_INET_LOCAL_IN,
  forward: NF_INET_FORWARD,
  output: NF_INET_LOCAL_OUT,
  postrouting: NF_INET_POST_ROUTING,
})

export const chainAttributes = nest({
  table: attr(NFTA_CHAIN_TABLE, cstring),
  name: attr(NFTA_CHAIN_NAME, cstring),
  type: opt(NFTA_CHAIN_TYPE, cstring),
  policy: opt(NFTA_CHAIN_POLICY, named(be32, { drop: NF_DROP, accept: NF_ACCEPT })),
  hook: opt(
    NFTA_CHAIN_HOOK,
    nest({ hook: attr(NFTA_HOOK_HOOKNUM, hookName), priority: attr(NFTA_HOOK_PRIORITY, sbe32) }),
  ),
  userdata: opt(NFTA_CHAIN_USERDATA, bytes),
})

export type ChainAttributes = Infer<typeof chainAttributes>

/** Without its rules, which are messages of their own. */
export function chainToAttributes(table: string, { name, comment, hook }: Chain): ChainAttributes {
  const userdata = commentUserdata(comment)
  if (hook === undefined) return { table, name, ...userdata }
  const { type, priority, policy = 'accept' } = hook
  return { table, name, type, policy, hook: { hook: hook.hook, priority }, ...userdata }
}

export function chainFromAttributes({ name, type, policy, hook, userdata }: ChainAttributes): Chain {
  const comment = decodeComment(UDATA_COMMENT, userdata)
  if (hook === undefined) return { name, comment, hook: undefined, rules: [] }
  const base: Hook = { type: (type ?? 'filter') as Hook['type'], hook: hook.hook, priority: hook.priority }
  return { name, comment, hook: policy === 'drop' ? { ...base, policy } : base, rules: [] }
}
