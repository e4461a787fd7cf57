// The face of the iptables mode.

import type { NodeView, ServicePortView } from "../../../model/types.ts";
import type { Base, Fragment } from "../../../iptables/fragment.ts";
import { planBase } from "./base.ts";
import { planFragment, type ServiceContext } from "./service.ts";
import type { IptablesSettings } from "./settings.ts";

/** A mode whose kernel state is rules of iptables. */
export interface IptablesPlanner {
  base(node: NodeView): Base;
  service(
    node: NodeView,
    port: ServicePortView,
    cluster: ServiceContext["cluster"],
  ): Fragment;
}

export function iptablesPlanner(settings: IptablesSettings): IptablesPlanner {
  return {
    base: (node) => planBase(node, settings),
    service: (node, port, cluster) =>
      planFragment({ node, settings, cluster }, port),
  };
}

/** From this many endpoints on, kube-proxy drops the comments about endpoints. */
export const LARGE_CLUSTER_ENDPOINTS = 1000;
