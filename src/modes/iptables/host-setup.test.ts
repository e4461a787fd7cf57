import { describe, expect, it } from "vitest";
import type { SettingFiles } from "../../system/setting-files.ts";
import {
  bridgeWarning,
  invalidPackets,
  mayOpenLocalhost,
} from "./host-setup.ts";

function filesWith(contents: Readonly<Record<string, string>>): SettingFiles {
  return {
    read(path) {
      const found = contents[path];
      if (found === undefined) throw new Error(`${path} is missing`);
      return found;
    },
    write() {},
  };
}

describe("mayOpenLocalhost()", () => {
  const may = (localhostNodePorts: boolean, ...nodePortAddresses: string[]) =>
    mayOpenLocalhost({ localhostNodePorts, nodePortAddresses });

  it("says whether node ports are open on 127.0.0.1", () => {
    expect([
      may(true),
      may(true, "localhost"),
      may(true, "127.0.0.1/32"),
      may(true, "fd00::/8"),
    ]).not.toContain(false);
    expect([may(false), may(true, "10.0.0.0/8")]).not.toContain(true);
  });
});

describe("invalidPackets()", () => {
  const path = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";

  it("are dropped unless connection tracking is liberal, or will be", () => {
    expect(invalidPackets(filesWith({ [path]: "0\n" }), false)).toBe("drop");
    expect(invalidPackets(filesWith({}), false)).toBe("drop");
    expect(invalidPackets(filesWith({ [path]: "1\n" }), false)).toBe("keep");
    expect(invalidPackets(filesWith({ [path]: "0\n" }), true)).toBe("keep");
  });
});

describe("bridgeWarning()", () => {
  it("says whether the module is missing or the setting is off", () => {
    expect(bridgeWarning(filesWith({}), 4)).toContain(
      "br_netfilter is not loaded",
    );
    const off = filesWith({
      "/proc/sys/net/bridge/bridge-nf-call-ip6tables": "0\n",
    });
    expect(bridgeWarning(off, 6)).toContain(
      "net.bridge.bridge-nf-call-ip6tables is 0",
    );
  });

  it("says nothing where bridges pass iptables", () => {
    expect(
      bridgeWarning(
        filesWith({ "/proc/sys/net/bridge/bridge-nf-call-iptables": "1\n" }),
        4,
      ),
    ).toBeUndefined();
  });
});
