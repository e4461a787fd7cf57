// Tables. net/netfilter/nf_tables_api.c, nft_table_policy

import { attr, be32, bytes, cstring, type Infer, nest, opt } from '../../netlink/attributes.ts'
import { NFT_TABLE_F_DORMANT, NFTA_TABLE_FLAGS, NFTA_TABLE_NAME, NFTA_TABLE_USERDATA } from './uapi.ts'

export const tableAttributes = nest({
  name: attr(NFTA_TABLE_NAME, cstring),
  flags: opt(NFTA_TABLE_FLAGS, be32),
  userdata: opt(NFTA_TABLE_USERDATA, bytes),
})

export type TableAttributes = Infer<typeof tableAttributes>

export function isDormant({ flags = 0 }: TableAttributes): boolean {
  return (flags & NFT_TABLE_F_DORMANT) !== 0
}
