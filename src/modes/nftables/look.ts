// What the nftables mode finds on this machine when it only looks.

import type { Table } from "../../nftables/types.ts";
import type { LookOptions, ModeOutlook } from "../contract.ts";
import { adviseOnTables } from "../shared/advise-on-tables.ts";
import { probeTables } from "../../nftables/probe.ts";
import { SETS, TABLE } from "./plan/names.ts";

export function lookForNftables({ families }: LookOptions): ModeOutlook {
  const seen = probeTables(TABLE, families);
  const { lacks, warnings } = adviseOnTables(seen);
  return {
    lacks,
    warnings,
    uses: ["netlink, no programs"],
    present: seen.tables.map(describeTable),
  };
}

/** kube-proxy's table has the same name, but none of our sets. */
function describeTable({ family, name, sets, chains }: Table): string {
  const writer = sets.has(SETS.services) ? "kube-proxy-ts" : "kube-proxy";
  return `table ${family} ${name}, as ${writer} writes it, with ${chains.size} chains`;
}
