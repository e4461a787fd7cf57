// After kube-proxy has taken a node back, in the nftables mode.

import { NftablesDriver } from '../../nftables/driver.ts'
import { nftFamily } from '../../nftables/language.ts'
import type { Logger } from '../../lib/log.ts'
import { isOfKubeProxy, planLeftovers } from './plan/leftovers.ts'
import { TABLE } from './plan/names.ts'

export function removeLeftovers(log: Logger): void {
  for (const family of [4, 6] as const) {
    using driver = new NftablesDriver({ family: nftFamily(family), table: TABLE })
    const name = `${driver.family} ${TABLE}`
    const table = driver.read()
    if (table === undefined) continue
    if (!isOfKubeProxy(table)) throw new Error(`Cannot tidy up the table ${name}: kube-proxy has not taken it over`)
    const ops = planLeftovers(table)
    if (ops.length === 0) continue
    driver.apply(ops)
    log.info('Removed what kube-proxy does not use', { table: name, objects: ops.length })
  }
}
