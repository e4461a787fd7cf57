// What the cluster of the fault suites holds.

import { aService, aSlice } from '../support/builders.ts'
import type { ApiObject, ApiService } from '../support/builders.ts'
import type { TrafficTargets } from '../support/steady-traffic.ts'

/** A service that nothing changes, and whose connections nothing may disturb. */
export const steady: ApiService = aService({
  type: 'NodePort',
  families: [4, 6],
  ports: [{ name: 'tcp' }, { name: 'udp', protocol: 'UDP' }],
})

const [address = ''] = steady.spec.clusterIPs
export const steadyTargets: TrafficTargets = { tcp: { address, port: 80 }, udp: { address, port: 80 } }

/**
 * It, and some others around it. Some rules are shared by services that look alike, and stay for a while when the last of
 * these is gone: there is a service of each look that tests, or the rig's sentinel, add and remove.
 */
export const sampleObjects: readonly ApiObject[] = [
  ...withSlices(steady),
  ...Array.from({ length: 12 }, () => aService({ type: 'NodePort', families: [4, 6] })).flatMap(withSlices),
  ...withSlices(aService({ spec: { sessionAffinity: 'ClientIP' } })),
  ...(['ClusterIP', 'NodePort'] as const).flatMap((type) => {
    const service = aService({ type, families: [4, 6] })
    return [service, aSlice(service, ['localB'], { family: 4 }), aSlice(service, ['localB'], { family: 6 })]
  }),
  // Without endpoints.
  aService({ type: 'NodePort', families: [4, 6] }),
]

function withSlices(service: ApiService): ApiObject[] {
  const families = service.spec.ipFamilies.includes('IPv6') ? ([4, 6] as const) : ([4] as const)
  return [service, ...families.map((family) => aSlice(service, ['localB', 'remoteA'], { family }))]
}
