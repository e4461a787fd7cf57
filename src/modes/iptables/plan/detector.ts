// How a rule tells packets of pods from others.

import { formatCidr } from "../../../lib/ip.ts";
import type { LocalDetector } from "../../../model/types.ts";
import type { Rule } from "../../../iptables/types.ts";

/** What is true for packets of pods; undefined when the settings do not tell. */
export function matchLocal(detector: LocalDetector): Partial<Rule> | undefined {
  return matchDetector(detector, false);
}

/** What is true for all other packets. */
export function matchNotLocal(detector: LocalDetector): Partial<Rule> {
  return matchDetector(detector, true) ?? {};
}

function matchDetector(
  detector: LocalDetector,
  not: boolean,
): Partial<Rule> | undefined {
  const negation = not ? { not } : {};
  switch (detector.kind) {
    case "none":
      return undefined;
    case "cidr":
      return {
        source: { network: formatCidr(detector.cidrs[0]!), ...negation },
      };
    case "interface":
      return { inputInterface: { name: detector.name, ...negation } };
    case "interfacePrefix":
      return { inputInterface: { name: `${detector.prefix}+`, ...negation } };
  }
}
