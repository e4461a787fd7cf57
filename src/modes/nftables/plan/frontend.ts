// What the planners of services, lists and affinity share: which sets a frontend uses.

import type { Frontend } from '../../../model/types.ts'
import type { Schema } from './schema.ts'

type Setting = keyof Schema

/** The sets that a frontend with an address uses, and those that a node port uses. */
export const BY_ADDRESS = {
  served: 'services',
  special: 'specialServices',
  servedLocally: 'localServices',
  endpoints: 'endpoints',
  localEndpoints: 'localEndpoints',
  stick: 'stickServices',
  stickLocal: 'stickLocalServices',
} as const satisfies Record<string, Setting>

export const BY_NODE_PORT = {
  served: 'nodePorts',
  special: 'specialNodePorts',
  servedLocally: 'localNodePorts',
  endpoints: 'nodePortEndpoints',
  localEndpoints: 'localNodePortEndpoints',
  stick: 'stickNodePorts',
  stickLocal: 'stickLocalNodePorts',
} as const satisfies Record<string, Setting>

export type FrontendSets = typeof BY_ADDRESS | typeof BY_NODE_PORT

export function setsOf(frontend: Frontend): FrontendSets {
  return frontend.kind === 'nodePort' ? BY_NODE_PORT : BY_ADDRESS
}
