// Kernel settings that the ipvs mode needs.

import type { HostSetting } from "../../system/host-setup.ts";

export interface IpvsHostSettings {
  /** ipvs.strictARP: answer only for addresses of the link that is asked. */
  readonly strictARP: boolean;
  /** As `uname -r` prints it. */
  readonly kernelRelease: string;
}

const net = "/proc/sys/net/ipv4/";

/** In the order in which they are to be applied. The folder `vs` is there once IPVS is loaded. */
export function planIpvsHostSetup({
  strictARP,
  kernelRelease,
}: IpvsHostSettings): HostSetting[] {
  const plan: HostSetting[] = [];
  const want = (path: string, wanted: number) =>
    plan.push({ path: net + path, wanted, rule: "exactly" });
  // Masquerading, and rules that look at the state of connections, work for what IPVS sends on.
  want("vs/conntrack", 1);
  if (reusesBadly(kernelRelease)) want("vs/conn_reuse_mode", 0);
  // Connections to destinations that are gone end at once, instead of timing out.
  want("vs/expire_nodest_conn", 1);
  // Persistence does not hold clients with a destination that takes no new connections.
  want("vs/expire_quiescent_template", 1);
  want("ip_forward", 1);
  if (strictARP) {
    want("conf/all/arp_ignore", 1);
    want("conf/all/arp_announce", 2);
  }
  return plan;
}

/** Linux 4.1 to 5.8 wait a second, or send to what is gone, when a client's port is used again (kernel commit f0a5e4d7a594). */
function reusesBadly(release: string): boolean {
  const [major = 0, minor = 0] = release
    .split(".")
    .map((part) => parseInt(part, 10));
  const version = major * 1000 + minor;
  return version >= 4001 && version < 5009;
}
