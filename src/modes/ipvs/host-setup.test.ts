import { describe, expect, test } from "vitest";
import { planIpvsHostSetup } from "./host-setup.ts";

function plan(
  kernelRelease: string,
  strictARP = false,
): Record<string, number> {
  const settings = planIpvsHostSetup({ kernelRelease, strictARP });
  return Object.fromEntries(
    settings.map(({ path, wanted }) => [
      path.replace("/proc/sys/net/ipv4/", ""),
      wanted,
    ]),
  );
}

const always = {
  "vs/conntrack": 1,
  "vs/expire_nodest_conn": 1,
  "vs/expire_quiescent_template": 1,
  ip_forward: 1,
};

describe("planIpvsHostSetup()", () => {
  test("asks for what masquerading and draining need", () => {
    expect(plan("6.12.115")).toEqual(always);
  });

  test.each([
    ["4.0.9", false],
    ["4.1.0", true],
    ["5.8.18-generic", true],
    ["5.9.0", false],
    ["6.1.0-23-amd64", false],
  ])(
    "on Linux %s, turning off the reuse of connections: %s",
    (kernelRelease, off) => {
      expect(plan(kernelRelease)).toEqual(
        off ? { ...always, "vs/conn_reuse_mode": 0 } : always,
      );
    },
  );

  test("answers for no address of another link with strictARP", () => {
    expect(plan("6.12.115", true)).toEqual({
      ...always,
      "conf/all/arp_ignore": 1,
      "conf/all/arp_announce": 2,
    });
  });
});
