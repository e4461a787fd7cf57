// What the ipvs mode finds on this machine when it only looks. What only a try would tell (probe.ts) is not known here.

import { existsSync } from "node:fs";
import { IpvsDriver } from "../../ipvs/driver.ts";
import { LinkDriver } from "../../links/driver.ts";
import { KernelError, UnsupportedError } from "../../lib/errors.ts";
import { readModuleState } from "../../system/kernel-modules.ts";
import type { Advice, LookOptions, ModeOutlook } from "../contract.ts";
import { adviseOnTables } from "../shared/advise-on-tables.ts";
import { probeTables } from "../../nftables/probe.ts";
import { LINK, TABLE } from "./plan/names.ts";
import { DEFAULT_SCHEDULER } from "./plan/servers.ts";

export function lookForIpvs({ config, families }: LookOptions): ModeOutlook {
  const seen = probeTables(TABLE, families);
  const { lacks, warnings } = adviseOnTables(seen);
  const servers = lookAtServers();
  const scheduler = `ip_vs_${config.ipvs.scheduler || DEFAULT_SCHEDULER}`;
  const modules =
    servers.state === "missing" ? ["dummy"] : ["dummy", scheduler];
  return {
    lacks: [
      ...lacks,
      ...(servers.state === "missing" ? [lackOf("ip_vs")] : []),
      ...(servers.state === "works" &&
      !existsSync("/proc/sys/net/ipv4/vs/conntrack")
        ? [NO_CONNTRACK]
        : []),
      ...modules
        .filter((name) => readModuleState(name) === "missing")
        .map(lackOf),
    ],
    warnings,
    uses: [
      "netlink, no programs",
      `scheduler ${scheduler.slice("ip_vs_".length)}`,
    ],
    present: [
      ...(hasLink() ? [`link ${LINK}`] : []),
      ...(servers.count > 0
        ? [`${servers.count} virtual server${servers.count === 1 ? "" : "s"}`]
        : []),
      ...seen.tables.map(({ family, name }) => `table ${family} ${name}`),
    ],
  };
}

const NO_CONNTRACK: Advice = {
  what: "the kernel has IPVS without connection tracking (CONFIG_IP_VS_NFCT)",
  todo: "boot a kernel with it, or choose another mode",
};

function lackOf(module: string): Advice {
  return {
    what: `the kernel module ${module} is missing`,
    todo: "install it (Debian: linux-image, Ubuntu: linux-modules-extra, Fedora: kernel-modules), or choose another mode",
  };
}

/** The kernel is asked only where that loads nothing. */
function lookAtServers(): {
  readonly state: "works" | "can be loaded" | "missing";
  readonly count: number;
} {
  const state = readModuleState("ip_vs");
  if (state === "missing" || state === "can be loaded")
    return { state, count: 0 };
  let driver: IpvsDriver;
  try {
    driver = new IpvsDriver();
  } catch (error) {
    if (error instanceof UnsupportedError)
      return { state: "missing", count: 0 };
    throw error;
  }
  try {
    return { state: "works", count: driver.readServers().length };
  } catch (error) {
    // It does not tell a process without rights.
    if (error instanceof KernelError && error.errno === "EPERM")
      return { state: "works", count: 0 };
    throw error;
  } finally {
    driver.close();
  }
}

function hasLink(): boolean {
  const driver = new LinkDriver(LINK);
  try {
    return driver.exists();
  } finally {
    driver.close();
  }
}
