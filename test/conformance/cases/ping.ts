import type { Family } from '../../../src/lib/ip.ts'
import type { PodName } from '../../support/addresses.ts'
import { anExternalIp, type ApiService, aService, aSlice, type ServiceWish } from '../../support/builders.ts'
import {
  clusterIp,
  flow,
  isRejected,
  isUntouched,
  on,
  ping,
  reaches,
  reachesMasqueraded,
  serviceIp,
} from '../packet-flow.ts'
import { row } from './row.ts'
import type { Destination, Flow, PacketFlowCase, Source } from '../packet-flow.ts'

const clients: readonly Source[] = ['localPod', 'remotePod', 'external']
const settings = { answerPing: true } as const
const byRules = ['nftables', 'iptables', 'userspace'] as const

function pings(family: Family): PacketFlowCase[] {
  const ip = anExternalIp(family)
  const externalIp = anExternalIp(family)
  const balanced = (options: ServiceWish = {}) =>
    aService({ families: [family], type: 'LoadBalancer', ingress: [{ ip }], ...options })
  const answered = (to: Destination): Flow[] => [
    ...clients.map((from) => flow(from, to, reaches(on('node', 0)))),
    flow('node', to, reachesMasqueraded(on('node', 0))),
  ]
  const sliceOf = (service: ApiService, pods: readonly PodName[]) =>
    aSlice(service, pods, { name: service.metadata.name })
  const service = balanced({ spec: { externalIPs: [externalIp] } })
  const off = balanced({ ingress: [{ ip: anExternalIp(family) }] })
  const localIp = anExternalIp(family)
  const local = balanced({ ingress: [{ ip: localIp }], spec: { externalTrafficPolicy: 'Local' } })
  return [
    row(`pings, IPv${family}: cluster IPs and load-balancer IPs answer while there is an endpoint`, {
      settings,
      modes: byRules,
      objects: [service, sliceOf(service, ['remoteA'])],
      flows: [
        ...answered(ping(clusterIp(service))),
        ...answered(ping(serviceIp(service, ip))),
        flow('external', ping(serviceIp(service, externalIp)), isUntouched),
      ],
      steps: [
        {
          when: 'the last endpoint has gone',
          put: [sliceOf(service, [])],
          flows: [flow('external', ping(serviceIp(service, ip)), isUntouched)],
        },
      ],
    }),
    row(`pings, IPv${family}: with policy Local, a node without endpoints does not answer for a load balancer`, {
      settings,
      modes: byRules,
      objects: [local, sliceOf(local, ['remoteA'])],
      flows: [
        flow('external', ping(serviceIp(local, localIp)), isUntouched),
        flow('localPod', ping(clusterIp(local)), reaches(on('node', 0))),
      ],
      steps: [
        {
          when: 'an endpoint is on the node',
          put: [sliceOf(local, ['localB'])],
          flows: [flow('external', ping(serviceIp(local, localIp)), reaches(on('node', 0)))],
        },
      ],
    }),
    row(`pings, IPv${family}: nothing answers where that is not asked for`, {
      modes: ['nftables', 'userspace'],
      objects: [off, aSlice(off, ['localB'])],
      flows: [flow('localPod', ping(clusterIp(off)), isRejected)],
    }),
  ]
}

export const pingCases: readonly PacketFlowCase[] = ([4, 6] as const).flatMap(pings)
