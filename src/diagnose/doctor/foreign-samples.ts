// Connections that tests send through rules of other programs.

import { ipBytes } from '../../lib/ip.ts'
import { type Flow, packetsOfFlow } from './foreign-flow.ts'
import type { ForeignPacket } from './foreign-rules.ts'

const endpoint = { address: ipBytes('10.244.2.3'), port: 3000, way: { kind: 'link', link: 'eth0', mtu: 1500 } } as const
const service = { address: ipBytes('10.96.0.80'), port: 80 }
const node = { address: ipBytes('172.30.0.11'), link: undefined }
const pod = { address: ipBytes('10.244.1.9'), link: 'cali123' }

const flow: Flow = {
  client: node,
  service,
  endpoints: [endpoint],
  relay: undefined,
  mode: 'nftables',
  protocol: 'TCP',
}

/** From the node to a Service whose endpoint is on another node. */
export const fromNode: readonly ForeignPacket[] = packetsOfFlow(flow)
/** From a pod of the node. */
export const fromPod: readonly ForeignPacket[] = packetsOfFlow({ ...flow, client: pod })
/** Where the proxy relays it, and where IPVS takes it. */
export const relayed: readonly ForeignPacket[] = packetsOfFlow({
  ...flow,
  client: pod,
  mode: 'userspace',
  relay: { address: node.address, port: 41_000 },
})
export const byIpvs: readonly ForeignPacket[] = packetsOfFlow({ ...flow, client: pod, mode: 'ipvs' })

export const isOfNode = (address: string): boolean => address === node.address
