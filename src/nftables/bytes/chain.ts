// Chains. net/netfilter/nf_tables_api.c, nft_chain_policy

import type { Chain, Hook } from '../types.ts'
import { attr, be32, bytes, cstring, type Infer, named, nest, opt, sbe32 } from '../../netlink/attributes.ts'
import * as uapi from './uapi.ts'
import { commentUserdata, decodeComment, UDATA_COMMENT } from './userdata.ts'

const hookName = named(be32, {
  prerouting: uapi.NF_INET_PRE_ROUTING,
  input: uapi.NF_INET_LOCAL_IN,
  forward: uapi.NF_INET_FORWARD,
  output: uapi.NF_INET_LOCAL_OUT,
  postrouting: uapi.NF_INET_POST_ROUTING,
})

export const chainAttributes = nest({
  table: attr(uapi.NFTA_CHAIN_TABLE, cstring),
  name: attr(uapi.NFTA_CHAIN_NAME, cstring),
  type: opt(uapi.NFTA_CHAIN_TYPE, cstring),
  policy: opt(uapi.NFTA_CHAIN_POLICY, named(be32, { drop: uapi.NF_DROP, accept: uapi.NF_ACCEPT })),
  hook: opt(
    uapi.NFTA_CHAIN_HOOK,
    nest({ hook: attr(uapi.NFTA_HOOK_HOOKNUM, hookName), priority: attr(uapi.NFTA_HOOK_PRIORITY, sbe32) }),
  ),
  userdata: opt(uapi.NFTA_CHAIN_USERDATA, bytes),
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
