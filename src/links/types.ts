// The addresses of a link of ours, as data.

/** One step. Links have no transactions: each step takes effect by itself. */
export type LinkOp =
  | { readonly op: 'addAddress'; readonly address: string }
  | { readonly op: 'deleteAddress'; readonly address: string }

/** From the addresses that a link has to those that it should have, which are added first. */
export function diffAddresses(actual: Iterable<string>, wanted: ReadonlySet<string>): LinkOp[] {
  const present = new Set(actual)
  const ops: LinkOp[] = []
  for (const address of wanted) if (!present.has(address)) ops.push({ op: 'addAddress', address })
  for (const address of present) if (!wanted.has(address)) ops.push({ op: 'deleteAddress', address })
  return ops
}

/** The arguments of an `ip` to the same end. */
export function formatLinkOp({ op, address }: LinkOp, link: string): string {
  const prefix = address.includes(':') ? 128 : 32
  return `ip address ${op === 'addAddress' ? 'add' : 'delete'} ${address}/${prefix} dev ${link}`
}
