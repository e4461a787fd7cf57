// The face of the nftables mode.

import type { NodeView, ServicePortView } from '../../model/types.ts'
import type { Fragment, TableBase } from '../../state/nftables/fragment.ts'
import { planBase } from './base.ts'
import { TABLE } from './names.ts'
import { planService } from './service.ts'

/** A mode whose kernel state is one nftables table per family. */
export interface NftablesPlanner {
  readonly table: string
  base(node: NodeView): TableBase
  service(node: NodeView, port: ServicePortView): Fragment
}

export const nftablesMode: NftablesPlanner = { table: TABLE, base: planBase, service: planService }
