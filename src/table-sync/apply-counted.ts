// Applies transactions and counts their operations.

import type { TableDriver } from '../nftables/table-driver.ts'
import type { Op } from '../nftables/types.ts'
import type { WriteLog } from '../reconcile/write-log.ts'

export function applyCounted(driver: TableDriver, ops: readonly Op[], stats: Pick<WriteLog, 'count'>): void {
  if (ops.length > 0) stats.count(operationsOf(ops), driver.apply(ops).bytes)
}

/** Uses the driver's batch method where it has one. */
export function applyEachCounted(driver: TableDriver, transactions: Iterable<readonly Op[]>, stats: WriteLog): void {
  if (driver.applyEach === undefined) for (const ops of transactions) applyCounted(driver, ops, stats)
  else driver.applyEach(transactions, (ops, bytes) => stats.count(operationsOf(ops), bytes))
}

/** Each element counts. */
function operationsOf(ops: readonly Op[]): number {
  let operations = 0
  for (const op of ops) operations += 'elements' in op ? op.elements.length : 1
  return operations
}
