// How one service port looks in the table: almost entirely as elements of the fixed sets and maps.

import type { Bytes } from "../../../lib/ip.ts";
import type {
  Frontend,
  NodeView,
  ServicePortView,
  Verdict,
} from "../../../model/types.ts";
import { integerField } from "../../../nftables/fields.ts";
import type { Fragment, SharedRule } from "../../../nftables/fragment.ts";
import type { NftSet } from "../../../nftables/types.ts";
import {
  Elements,
  frontendKey,
  mainVerdict,
  planClusterIp,
  planHairpins,
  planRefusals,
  planSources,
} from "../../shared/plan/frontend.ts";
import { planAffinity } from "./affinity.ts";
import { pickRule } from "./pick.ts";
import { endpointData, setsOf } from "./frontend.ts";
import { type Schema, schemaFor } from "./schema.ts";

export function planFragment(node: NodeView, port: ServicePortView): Fragment {
  const schema = schemaFor(node.family);
  const elements = new Elements();
  const sharedRules = new Map<string, SharedRule>();
  for (const frontend of port.frontends) {
    const key = frontendKey(frontend);
    planVerdicts(schema, frontend, { key, elements });
    planSources(schema, frontend, elements);
    for (const shared of planLists(node, frontend, { key, elements }))
      sharedRules.set(shared.set.name, shared);
  }
  planHairpins(schema.hairpin, port, elements);
  const affinity = planAffinity(node, port, elements);
  return {
    ...affinity,
    sharedRules: [...sharedRules.values()],
    elements: elements.list(),
  };
}

interface Target {
  readonly key: Bytes;
  readonly elements: Elements;
}

function planVerdicts(
  schema: Schema,
  frontend: Frontend,
  { key, elements }: Target,
): void {
  const sets = setsOf(frontend);
  planClusterIp(schema, frontend, elements);
  if (mainVerdict(frontend).kind === "to") {
    elements.add(schema[frontend.isSplit ? sets.servedLocally : sets.served], {
      key,
    });
  }
  planRefusals(schema, frontend, elements);
  // Cluster IPs are masqueraded by a rule of their own, which looks at where the packet comes from.
  const always =
    frontend.kind !== "clusterIP" &&
    frontend.fromPods.masquerade &&
    frontend.fromOthers.masquerade;
  if (always && frontend.fromOthers.verdict.kind === "to")
    elements.add(schema[sets.masquerade], { key });
}

function planLists(
  node: NodeView,
  frontend: Frontend,
  target: Target,
): SharedRule[] {
  const schema = schemaFor(node.family);
  const sets = setsOf(frontend);
  const shared: SharedRule[] = [];
  const plan = (
    verdict: Verdict,
    endpoints: NftSet,
    list: "main" | "local",
  ) => {
    if (verdict.kind !== "to") return;
    const pick = pickRule(node.family, {
      frontends: sets,
      list,
      count: verdict.backends.length,
    });
    shared.push(pick);
    target.elements.add(pick.set, { key: target.key });
    for (const [slot, backend] of verdict.backends.entries()) {
      target.elements.add(endpoints, {
        key: target.key + integerField(slot),
        data: endpointData(backend),
      });
    }
  };
  plan(mainVerdict(frontend), schema[sets.endpoints], "main");
  if (frontend.isSplit)
    plan(frontend.fromOthers.verdict, schema[sets.localEndpoints], "local");
  return shared;
}
