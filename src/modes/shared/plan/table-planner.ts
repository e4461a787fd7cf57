import type { FrontendAddress, NodeView, ServicePortView } from '../../../model/types.ts'
import type { Fragment, TableBase } from '../../../nftables/fragment.ts'
import type { Table } from '../../../nftables/types.ts'
import type { Places } from './places.ts'

/** What a fragment depends on besides its service port. */
export interface PlanContext {
  readonly places?: Places
  /**
   * The other side of a change. Backends that both sides have at the same places are left out: of a list of thousands, one
   * change concerns one or two.
   */
  readonly unlike?: ServicePortView | undefined
}

/** Plans one nftables table per family: what is there without any service, and what each service port adds. */
export interface TablePlanner {
  readonly table: string
  base(node: NodeView): TableBase
  service(node: NodeView, port: ServicePortView, context?: PlanContext): Fragment
  /**
   * Takes over the places that a table has for the lists of a service port, for modes that have places. True when that makes
   * another fragment of it than the given one.
   */
  adopt?(
    table: Table,
    planned: { readonly port: ServicePortView; readonly fragment: Fragment },
    places: Places,
  ): boolean
  /** The UDP frontends that a table serves, for modes that can tell. */
  servedUdp?(table: Table): Iterable<FrontendAddress>
}
