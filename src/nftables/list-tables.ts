// Which tables there are, of any family and of any program.

import { tableAttributes } from './bytes/table.ts'
import { dumpAll } from './dump-all.ts'

export interface TableName {
  /** As nft calls it: `ip`, `inet`, `bridge`; a number where it has no name here. */
  readonly family: string
  readonly name: string
}

export function listTableNames(): TableName[] {
  return dumpAll('getTable', tableAttributes, ({ name }, family) => (name === undefined ? undefined : { family, name }))
}
