// The face of the nftables mode.

import type { FrontendAddress, NodeView, ServicePortView } from '../../../model/types.ts'
import type { Fragment, TableBase } from '../../../nftables/fragment.ts'
import type { Table } from '../../../nftables/types.ts'
import { planBase } from './base.ts'
import { TABLE } from './names.ts'
import { servedUdpFrontends } from './served.ts'
import { planService } from './service.ts'

/** A mode whose kernel state is one nftables table per family. */
export interface TablePlanner {
  readonly table: string
  base(node: NodeView): TableBase
  service(node: NodeView, port: ServicePortView): Fragment
  /** The UDP frontends that a table serves, for modes that can tell. */
  servedUdp?(table: Table): Iterable<FrontendAddress>
}

export const nftablesPlanner: TablePlanner = {
  table: TABLE,
  base: planBase,
  service: planService,
  servedUdp: servedUdpFrontends,
}
