// The face of the ipvs mode: virtual servers, the addresses that they need, and the rules around them.

import type { NodeView, ServicePortView } from '../../../model/types.ts'
import type { Fragment, TableBase } from '../../../nftables/fragment.ts'
import type { WantedServer } from '../../../ipvs/owners.ts'
import { isLeftAlone } from './frontend.ts'
import { LINK, TABLE } from './names.ts'
import { type NodeAddresses, planRules } from './rules.ts'
import { planServers, type ServerSettings } from './servers.ts'
import { planFragment } from './service.ts'

export interface IpvsPlanner {
  readonly table: string
  readonly link: string
  base(node: NodeView, addresses: NodeAddresses): TableBase
  service(node: NodeView, port: ServicePortView): Fragment
  servers(node: NodeView, port: ServicePortView, settings: ServerSettings): WantedServer[]
  /** The addresses that a service port needs on the link, where the node does not have them otherwise. */
  addresses(port: ServicePortView): string[]
}

export const ipvsPlanner: IpvsPlanner = {
  table: TABLE,
  link: LINK,
  base: planRules,
  service: planFragment,
  servers: planServers,
  addresses: (port) => port.frontends.flatMap((frontend) => (isLeftAlone(frontend) ? [] : (frontend.address ?? []))),
}
