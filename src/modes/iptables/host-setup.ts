// Kernel settings of the iptables mode: what it sets, what it goes by, and what it warns about.

import { planNodePortAddresses } from "../../model/node-port-addresses.ts";
import type { Family } from "../../lib/ip.ts";
import { readNumber, type SettingFiles } from "../../system/setting-files.ts";

export interface IptablesHostSettings {
  /** iptables.localhostNodePorts */
  readonly localhostNodePorts: boolean;
  /** nodePortAddresses as configured. */
  readonly nodePortAddresses: readonly string[];
}

/** Whether node ports may be open on 127.0.0.1, as far as the configuration says. */
export function mayOpenLocalhost(settings: IptablesHostSettings): boolean {
  const open = planNodePortAddresses(settings.nodePortAddresses, {
    family: 4,
    nodeIp: "0.0.0.0",
    machineAddresses: ["127.0.0.1"],
  });
  const onLocalhost = open.kind === "all" || open.loopback !== undefined;
  return settings.localhostNodePorts && onLocalhost;
}

/** Where connection tracking is liberal, it calls few packets invalid, and those are not to be dropped. */
export function invalidPackets(
  files: SettingFiles,
  asked: boolean,
): "drop" | "keep" {
  return asked ||
    readNumber(files, "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal")
    ? "keep"
    : "drop";
}

const BRIDGE_SETTING: Readonly<Record<Family, string>> = {
  4: "bridge-nf-call-iptables",
  6: "bridge-nf-call-ip6tables",
};

/** Whether packets between pods on one bridge pass iptables at all; a warning when they do not. */
export function bridgeWarning(
  files: SettingFiles,
  family: Family,
): string | undefined {
  const name = BRIDGE_SETTING[family];
  const value = readNumber(files, `/proc/sys/net/bridge/${name}`);
  if (value === 1) return undefined;
  const why =
    value === undefined
      ? "the kernel module br_netfilter is not loaded"
      : `net.bridge.${name} is ${value}`;
  return `Where pods are attached to a bridge, they do not reach services with endpoints on the same bridge: ${why}`;
}
