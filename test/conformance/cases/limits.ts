import type { Family } from '../../../src/lib/ip.ts'
import { LIMITS_ANNOTATION } from '../../../src/model/limits.ts'
import { node } from '../../support/addresses.ts'
import { anExternalIp, aService, aSlice, type ServiceWish } from '../../support/builders.ts'
import {
  clusterIp,
  flow,
  isDropped,
  nodePort,
  reaches,
  reachesMasqueraded,
  serviceIp,
  stickily,
} from '../packet-flow.ts'
import type { PacketFlowCase } from '../packet-flow.ts'
import { row } from './row.ts'

function limited(family: Family, text: string, wish: ServiceWish = {}) {
  const ip = anExternalIp(family)
  const annotations = { [LIMITS_ANNOTATION]: text }
  const service = aService({
    families: [family],
    type: 'LoadBalancer',
    ingress: [{ ip }],
    annotations,
    ...wish,
  })
  const slice = (...pods: Parameters<typeof aSlice>[1]) => aSlice(service, pods, { name: service.metadata.name })
  return { service, slice, toBalancer: serviceIp(service, ip), toNodePort: nodePort(service, node.ip[family]) }
}

/** test/e2e/limits.test.ts goes over them. */
function limitCases(family: Family): PacketFlowCase[] {
  const about = `limits, IPv${family}`
  const all = '900, 800 per client, 5000/s, 4000/s per client'
  const every = limited(family, all)
  const udp = limited(family, all, { ports: [{ port: 53, protocol: 'UDP' }] })
  const local = limited(family, `${all}, drop`, { spec: { externalTrafficPolicy: 'Local' } })
  const ranges = limited(family, all, {
    spec: { loadBalancerSourceRanges: [family === 4 ? '203.0.113.0/24' : 'fd99::/16'] },
  })
  const sticky = limited(family, all, {
    spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } },
  })
  const nonsense = limited(family, '10 per pod')
  return [
    row(`${about}: connections below them go where they go without`, {
      objects: [every.service, every.slice('localB', 'remoteA')],
      flows: [
        flow('localPod', clusterIp(every.service), reaches('localB', 'remoteA')),
        flow('node', clusterIp(every.service), reachesMasqueraded('localB', 'remoteA')),
        flow('external', every.toBalancer, reachesMasqueraded('localB', 'remoteA')),
        flow('external', every.toNodePort, reachesMasqueraded('localB', 'remoteA')),
      ],
    }),
    row(`${about}: so do those with policy Local, to the local endpoints`, {
      objects: [local.service, local.slice('localB', 'remoteA')],
      flows: [
        flow('external', local.toBalancer, reaches('localB')),
        flow('external', local.toNodePort, reaches('localB')),
        flow('localPod', local.toBalancer, reaches('localB', 'remoteA')),
      ],
      steps: [
        {
          when: 'the local endpoint has gone',
          put: [local.slice('remoteA')],
          flows: [flow('external', local.toBalancer, isDropped), flow('external', local.toNodePort, isDropped)],
        },
      ],
    }),
    row(`${about}: who may not connect is dropped, limits or not`, {
      objects: [ranges.service, ranges.slice('localB')],
      flows: [
        flow('external', ranges.toBalancer, isDropped),
        flow('external', ranges.toNodePort, reachesMasqueraded('localB')),
      ],
    }),
    row(`${about}: a client that is known stays with its endpoint`, {
      objects: [sticky.service, sticky.slice('localB', 'remoteA')],
      flows: [flow('localPod', clusterIp(sticky.service), stickily(reaches('localB', 'remoteA')))],
    }),
    row(`${about}: UDP has them, too`, {
      objects: [udp.service, udp.slice('localB')],
      flows: [flow('localPod', clusterIp(udp.service), reaches('localB'))],
    }),
    row(`${about}: what the annotation may not say has no effect`, {
      objects: [nonsense.service, nonsense.slice('localB')],
      flows: [flow('localPod', clusterIp(nonsense.service), reaches('localB'))],
    }),
  ]
}

export const limitsCases: readonly PacketFlowCase[] = ([4, 6] as const).flatMap(limitCases)
