import type {
  FrontendAddress,
  NodeView,
  ServicePortView,
} from "../../../model/types.ts";
import type { Fragment, TableBase } from "../../../nftables/fragment.ts";
import type { Table } from "../../../nftables/types.ts";

/** Plans one nftables table per family: what is there without any service, and what each service port adds. */
export interface TablePlanner {
  readonly table: string;
  base(node: NodeView): TableBase;
  service(node: NodeView, port: ServicePortView): Fragment;
  /** The UDP frontends that a table serves, for modes that can tell. */
  servedUdp?(table: Table): Iterable<FrontendAddress>;
}
