// The services of a node that changes over. The recordings of kube-proxy were written for exactly these.

import { node } from '../addresses.ts'
import { aService, aSlice } from '../builders.ts'

const web = aService({
  name: 'web',
  type: 'NodePort',
  families: [4, 6],
  clusterIPs: ['10.2.255.1', 'fd02::ff01'],
  ports: [
    { name: 'tcp', nodePort: 32001 },
    { name: 'udp', protocol: 'UDP', nodePort: 32002 },
  ],
})
const sticky = aService({
  name: 'sticky',
  clusterIPs: ['10.2.255.2'],
  spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } },
})
const empty = aService({ name: 'empty', clusterIPs: ['10.2.255.3'] })

export const swapObjects = [
  web,
  aSlice(web, ['localB', 'remoteA'], { family: 4, name: 'web-4' }),
  aSlice(web, ['localC', 'remoteB'], { family: 6, name: 'web-6' }),
  sticky,
  aSlice(sticky, ['localB', 'localC'], { name: 'sticky-4' }),
  empty,
]

const clusterIp = (address: string) => ({ tcp: { address, port: 80 }, udp: { address, port: 80 } })

/** Where clients go: both families, and a node port. */
export const swapTargets = {
  ipv4: clusterIp(web.spec.clusterIPs[0]!),
  ipv6: clusterIp(web.spec.clusterIPs[1]!),
  nodePort: { tcp: { address: node.ip[4], port: 32001 }, udp: { address: node.ip[4], port: 32002 } },
}
