// What the iptables mode has to know beyond the node: settings of its own, and what this machine can do.

import type { NodeView } from "../../../model/types.ts";
import type { CounterName } from "./names.ts";

export interface IptablesSettings {
  /** iptables.localhostNodePorts: whether IPv4 node ports may be open on loopback addresses, too. */
  readonly localhostNodePorts: "allowed" | "closed";
  /** What happens to packets that connection tracking calls invalid; 'keep' where nf_conntrack_tcp_be_liberal is set. */
  readonly invalidPackets: "drop" | "keep";
  /** Whether iptables has MASQUERADE --random-fully (since 1.6.2). */
  readonly masqueradePorts: "fully" | "no";
  /** The nfacct objects that exist. */
  readonly counters: ReadonlySet<CounterName>;
}

/**
 * Whether node ports are open on loopback addresses, which takes the kernel setting route_localnet. They never are for IPv6,
 * where the kernel has no such setting, nor where nodePortAddresses leaves them out.
 */
export function opensLocalhost(
  { family, nodePortAddresses }: NodeView,
  settings: IptablesSettings,
): boolean {
  if (family === 6 || settings.localhostNodePorts === "closed") return false;
  return (
    nodePortAddresses.kind === "all" || nodePortAddresses.loopback !== undefined
  );
}
