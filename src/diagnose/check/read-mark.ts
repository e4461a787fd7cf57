// Who else sets the bit of the packet mark that asks for masquerading.

import { nodeSettings } from '../../compose/settings.ts'
import type { KubeProxyConfiguration } from '../../config/types.ts'
import { describePrograms, findProgramsWithRules, savedText } from '../../iptables/probe.ts'
import { markSetters } from '../../iptables/mark-setters.ts'
import { readMarkSetters } from '../../nftables/mark-setters.ts'
import { probeNftables } from '../../nftables/probe.ts'
import { isForeignName } from '../doctor/foreign.ts'
import type { MarkFact } from './facts.ts'

/** kube-proxy's chain, which is ours as well. Older kubelets make it, too. */
const OURS = /^KUBE-MARK-MASQ /

export async function readMark(config: KubeProxyConfiguration): Promise<MarkFact> {
  const bit = nodeSettings(config).masqueradeBit
  const bits = 2 ** bit
  const hasNftables = probeNftables() === 'works'
  const tables = hasNftables ? readMarkSetters(bits).filter(({ table }) => isForeignName(table)) : []
  const setters = new Set(
    tables.map(({ family, table, chain }) => `chain ${chain} of the nftables table ${family} ${table}`),
  )
  for (const programs of await findProgramsWithRules()) {
    if (programs.backend === 'nft' && !hasNftables) continue
    for await (const saved of savedText(programs)) {
      for (const chain of markSetters(saved, bits)) {
        if (!OURS.test(chain)) setters.add(`chain ${chain}, ${describePrograms(programs)}`)
      }
    }
  }
  return { bit, setters: [...setters] }
}
