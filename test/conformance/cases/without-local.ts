import type { Family } from '../../../src/lib/ip.ts'
import { WITHOUT_LOCAL_ANNOTATION } from '../../../src/model/without-local.ts'
import { external, node } from '../../support/addresses.ts'
import { anExternalIp, aService, aSlice, type ServiceWish } from '../../support/builders.ts'
import { flow, isDropped, isUntouched, nodePort, reaches, reachesMasqueraded, serviceIp } from '../packet-flow.ts'
import { row } from './row.ts'
import type { PacketFlowCase } from '../packet-flow.ts'

/** A load balancer with policy Local, and an external IP beside it. */
function annotated(family: Family, words: string, spec: ServiceWish['spec'] = {}) {
  const [ip, externalIp] = [anExternalIp(family), anExternalIp(family)]
  const service = aService({
    families: [family],
    type: 'LoadBalancer',
    ingress: [{ ip }],
    annotations: { [WITHOUT_LOCAL_ANNOTATION]: words },
    spec: { externalTrafficPolicy: 'Local', externalIPs: [externalIp], ...spec },
  })
  const slice = (...pods: Parameters<typeof aSlice>[1]) => aSlice(service, pods, { name: service.metadata.name })
  return { service, slice, toBalancer: serviceIp(service, ip), toExternal: serviceIp(service, externalIp) }
}

function useOthers(family: Family): PacketFlowCase {
  const { service, slice, toBalancer, toExternal } = annotated(family, 'use-others')
  const toNodePort = nodePort(service, node.ip[family])
  const targets = [toBalancer, toExternal, toNodePort]
  return row(
    `policy Local that falls back, IPv${family}: local endpoints where there are some, else all, as with Cluster`,
    {
      objects: [service, slice('localB', 'remoteA')],
      flows: [
        ...targets.map((to) => flow('external', to, reaches('localB'))),
        flow('localPod', toBalancer, reaches('localB', 'remoteA')),
      ],
      steps: [
        {
          when: 'the last local endpoint has gone',
          put: [slice('remoteA', 'remoteB')],
          flows: [
            ...targets.map((to) => flow('external', to, reachesMasqueraded('remoteA', 'remoteB'))),
            flow('localPod', toBalancer, reachesMasqueraded('remoteA', 'remoteB')),
            flow('node', toBalancer, reachesMasqueraded('remoteA', 'remoteB')),
          ],
        },
        {
          when: 'a local endpoint drains',
          put: [slice({ pod: 'localB', ready: false, serving: true, terminating: true }, 'remoteA')],
          flows: targets.map((to) => flow('external', to, reaches('localB'))),
        },
      ],
    },
  )
}

function leaveAlone(family: Family): PacketFlowCase {
  const { service, slice, toBalancer, toExternal } = annotated(family, 'leave-alone')
  const toNodePort = nodePort(service, node.ip[family])
  return row(`policy Local that leaves alone, IPv${family}: without local endpoints packets are routed on`, {
    objects: [service, slice('remoteA')],
    flows: [
      flow('external', toBalancer, isUntouched),
      flow('external', toExternal, isUntouched),
      flow('external', toNodePort, isDropped),
      flow('localPod', toBalancer, reaches('remoteA')),
      flow('node', toBalancer, reachesMasqueraded('remoteA')),
    ],
    steps: [
      {
        when: 'an endpoint is local',
        put: [slice('localB', 'remoteA')],
        flows: [flow('external', toBalancer, reaches('localB')), flow('external', toExternal, reaches('localB'))],
      },
      {
        when: 'no endpoint is left anywhere',
        put: [slice()],
        flows: [flow('external', toBalancer, isUntouched), flow('localPod', toExternal, isUntouched)],
      },
    ],
  })
}

function leaveAloneWithRanges(family: Family): PacketFlowCase {
  const bits = family === 4 ? 32 : 128
  const open = annotated(family, 'leave-alone', { loadBalancerSourceRanges: [`${external.ip[family]}/${bits}`] })
  const closed = annotated(family, 'leave-alone', { loadBalancerSourceRanges: [`${node.ip[family]}/${bits}`] })
  return row(`policy Local that leaves alone, IPv${family}: source ranges still hold`, {
    objects: [open.service, open.slice('remoteA'), closed.service, closed.slice('remoteA')],
    flows: [flow('external', open.toBalancer, isUntouched), flow('external', closed.toBalancer, isDropped)],
  })
}

export const withoutLocalCases: readonly PacketFlowCase[] = ([4, 6] as const).flatMap((family) => [
  useOthers(family),
  leaveAlone(family),
  leaveAloneWithRanges(family),
])
