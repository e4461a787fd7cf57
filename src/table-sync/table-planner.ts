import type { Bytes, Family } from '../lib/ip.ts'
import type { Steps } from '../lib/steps.ts'
import type { FrontendAddress, NodeView, ServicePortName, ServicePortView } from '../model/types.ts'
import type { Fragment, TableBase } from '../nftables/fragment.ts'
import type { Element, Table } from '../nftables/types.ts'
import type { Places } from './places.ts'

/** What a fragment depends on besides its service port. */
export interface PlanContext<P extends ServicePortView = ServicePortView> {
  readonly places?: Places
  /**
   * The other side of a change. A planner may leave out what both sides have: of thousands of backends or frontends, a change usually
   * concerns one or two.
   */
  readonly unlike?: P | undefined
}

/** What the kernel has in a set, by key. */
export type FindElement = (set: string, key: Bytes) => Element | undefined

/** How many places a frontend has in a map, by the name of the map and the key of the frontend. */
export type ListLengths = ReadonlyMap<string, Map<Bytes, number>>

/** The maps from places to backends, by far the longest part of a table. */
export interface TableLists {
  readonly maps: ReadonlySet<string>
  /** From a table that was read without its lists. */
  lengths(table: Table): ListLengths
  /** The key under which a map has the backend of a place. */
  placeKey(frontend: Bytes, place: number): Bytes
}

/** A service port before and after a change. A mode may add fields of its own to the view. */
export interface PortChange<P extends ServicePortView> {
  readonly name: ServicePortName
  readonly before: P | undefined
  readonly after: P | undefined
}

/** Plans one nftables table per family: the base, which needs no service, and the fragment of each service port. */
export interface TablePlanner<P extends ServicePortView = ServicePortView> {
  readonly table: string
  base(node: NodeView): TableBase
  service(node: NodeView, port: P, context?: PlanContext<P>): Fragment
  /** The same in steps, for modes in which one service port may have hundreds of thousands of elements. */
  planning?(node: NodeView, port: P, context?: PlanContext<P>): Steps<Fragment>
  /**
   * For modes that have places: takes over the places that the kernel has for the lists of a service port. True when the fragment
   * must be planned again for that.
   */
  adopt?(
    find: FindElement,
    planned: { readonly family: Family; readonly port: ServicePortView; readonly fragment: Fragment },
    places: Places,
  ): boolean
  /** For modes that have places. */
  readonly lists?: TableLists
  /** The UDP frontends that a table serves, for modes that can find them in it. */
  servedUdp?(table: Table): Iterable<FrontendAddress>
}
