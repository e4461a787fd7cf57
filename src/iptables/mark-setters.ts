// Which chains set bits of the packet mark, by what iptables-save prints.

const SETS = /^-A (\S+) .*-j MARK --set-xmark (0x[0-9a-f]+)\//

/** `CNI-HOSTPORT-SETMARK of table nat`, once each. */
export function markSetters(saved: string, bits: number): string[] {
  const setters = new Set<string>()
  let table = ''
  for (const line of saved.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1)
    const [, chain, value] = SETS.exec(line) ?? []
    if (chain !== undefined && (Number(value) & bits) !== 0) setters.add(`${chain} of table ${table}`)
  }
  return [...setters]
}
