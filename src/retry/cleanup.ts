// Removes the tables of connect retry.

import type { Logger } from '../lib/log.ts'
import { deleteTables } from '../nftables/watched-tables.ts'
import { RETRY_TABLE } from './names.ts'

export function cleanUpRetries(log: Logger): void {
  deleteTables(RETRY_TABLE, log)
}
