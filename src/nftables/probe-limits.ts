// Whether this kernel can limit connections: a table with such rules is made and deleted in one transaction, so that no packet and no other
// program ever sees it. It makes the kernel load what it has for that.

import { KernelError } from '../lib/errors.ts'
import { NftablesDriver } from './driver.ts'
import { isOverOpen, isOverRate, rule } from './language.ts'

const TABLE = 'kube-proxy-limits-probe'

export function probeLimits(): boolean {
  const driver = new NftablesDriver({ family: 'ip', table: TABLE })
  const chain = { name: 'limits', comment: undefined, hook: undefined, rules: [] }
  try {
    driver.apply([
      { op: 'addTable', comment: undefined },
      { op: 'addChain', chain },
      { op: 'addRule', chain: chain.name, rule: rule([isOverOpen(1)]) },
      { op: 'addRule', chain: chain.name, rule: rule([isOverRate(1, 1)]) },
      { op: 'deleteTable' },
    ])
    return true
  } catch (error) {
    if (error instanceof KernelError) return false
    throw error
  } finally {
    driver.close()
  }
}
