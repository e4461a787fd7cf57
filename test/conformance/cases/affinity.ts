import type { Family } from '../../../src/lib/ip.ts'
import { node } from '../../support/addresses.ts'
import { aName, aService, aSlice } from '../../support/builders.ts'
import { clusterIp, flow, isRejected, nodePort, reaches, reachesMasqueraded, stickily } from '../packet-flow.ts'
import { row } from './row.ts'
import type { ApiService, EndpointWish } from '../../support/builders.ts'
import type { PacketFlowCase } from '../packet-flow.ts'
import type { Protocol } from '../../../src/kube/types.ts'

const clientIp = (timeoutSeconds: number) => ({
  sessionAffinity: 'ClientIP',
  sessionAffinityConfig: { clientIP: { timeoutSeconds } },
})

/** A service with affinity whose one slice is put again and again under the same name. */
function sticky(wish: {
  family?: Family
  protocol?: Protocol
  timeoutSeconds?: number
  spec?: Record<string, unknown>
}) {
  const { family = 4, protocol = 'TCP', timeoutSeconds = 600, spec = {} } = wish
  const service = aService({
    families: [family],
    type: 'NodePort',
    ports: [{ protocol }],
    spec: { ...clientIp(timeoutSeconds), ...spec },
  })
  const name = aName('slice')
  return { service, slice: (...endpoints: EndpointWish[]) => aSlice(service, endpoints, { name }) }
}

function life(family: Family, protocol: Protocol): PacketFlowCase[] {
  const about = `affinity, IPv${family} ${protocol}`
  const at = node.ip[family]
  const held = sticky({ family, protocol })
  const crowd = sticky({ family, protocol })
  const growing = sticky({ family, protocol })
  return [
    row(`${about}: a client stays with the endpoint that it came to first`, {
      objects: [held.service, held.slice('localB', 'localC', 'remoteA')],
      flows: [
        flow('localPod', clusterIp(held.service), stickily(reaches('localB', 'localC', 'remoteA'))),
        flow('node', clusterIp(held.service), stickily(reachesMasqueraded('localB', 'localC', 'remoteA'))),
      ],
    }),
    row(`${about}: each client of the node port has an endpoint of its own`, {
      objects: [crowd.service, crowd.slice('localB', 'localC', 'remoteA')],
      flows: [
        {
          ...flow('external', nodePort(crowd.service, at), stickily(reachesMasqueraded('localB', 'localC', 'remoteA'))),
          clients: 48,
        },
      ],
    }),
    row(`${about}: it outlives other endpoints and ends with its own`, {
      objects: [growing.service, growing.slice('localB')],
      flows: [flow('localPod', clusterIp(growing.service), stickily(reaches('localB')))],
      steps: [
        {
          when: 'more endpoints come',
          put: [growing.slice('localC', 'localB', 'remoteA')],
          flows: [flow('localPod', clusterIp(growing.service), stickily(reaches('localB')))],
        },
        {
          when: 'one of the others goes',
          put: [growing.slice('localB', 'remoteA')],
          flows: [flow('localPod', clusterIp(growing.service), stickily(reaches('localB')))],
        },
        {
          when: 'its own endpoint goes',
          put: [growing.slice('remoteA', 'localC')],
          flows: [flow('localPod', clusterIp(growing.service), stickily(reaches('remoteA', 'localC')))],
        },
        {
          when: 'no endpoint is left',
          put: [growing.slice()],
          flows: [flow('localPod', clusterIp(growing.service), isRejected)],
        },
        {
          when: 'one comes',
          put: [growing.slice('localB')],
          flows: [flow('localPod', clusterIp(growing.service), stickily(reaches('localB')))],
        },
      ],
    }),
  ]
}

function time(): PacketFlowCase[] {
  // Long enough that on a busy machine 24 clients come in a small part of it.
  const short = sticky({ timeoutSeconds: 30 })
  const to = nodePort(short.service, node.ip[4])
  return [
    row('affinity: it ends when the client is silent for the timeout, and not before', {
      // IPVS looks again after a minute when a client's connections are not forgotten yet.
      modes: ['nftables', 'iptables', 'userspace'],
      objects: [short.service, short.slice('localB')],
      flows: [{ ...flow('external', to, stickily(reachesMasqueraded('localB'))), clients: 24 }],
      steps: [
        {
          when: 'another endpoint comes',
          put: [short.slice('localB', 'localC')],
          flows: [{ ...flow('external', to, stickily(reachesMasqueraded('localB'))), clients: 24 }],
        },
        {
          when: 'less than the timeout passes',
          idleSeconds: 15,
          flows: [{ ...flow('external', to, stickily(reachesMasqueraded('localB'))), clients: 24 }],
        },
        {
          when: 'each connection starts the time again',
          idleSeconds: 16,
          flows: [{ ...flow('external', to, stickily(reachesMasqueraded('localB'))), clients: 24 }],
        },
        {
          when: 'more than the timeout passes',
          idleSeconds: 32,
          flows: [{ ...flow('external', to, stickily(reachesMasqueraded('localB', 'localC'))), clients: 24 }],
        },
      ],
    }),
  ]
}

function policies(): PacketFlowCase[] {
  const at = node.ip[4]
  const local = sticky({ spec: { externalTrafficPolicy: 'Local' } })
  const shared = sticky({})
  const crossing = sticky({ spec: { externalTrafficPolicy: 'Local' } })
  const switched = sticky({})
  const without: ApiService = {
    ...switched.service,
    spec: { ...switched.service.spec, sessionAffinity: 'None', sessionAffinityConfig: undefined },
  }
  return [
    row('affinity: with policy Local a client stays with one local endpoint', {
      objects: [local.service, local.slice('localB', 'localC', 'remoteA')],
      flows: [
        { ...flow('external', nodePort(local.service, at), stickily(reaches('localB', 'localC'))), clients: 24 },
        flow('localPod', clusterIp(local.service), stickily(reaches('localB', 'localC', 'remoteA'))),
      ],
    }),
    row('affinity: it holds for the service port, whichever address the client uses', {
      modes: ['nftables', 'iptables', 'userspace'],
      objects: [shared.service, shared.slice('localB')],
      flows: [flow('localPod', clusterIp(shared.service), stickily(reaches('localB')))],
      steps: [
        {
          when: 'other endpoints come and the client takes the node port',
          put: [shared.slice('localC', 'remoteA', 'remoteB', 'localB')],
          flows: [flow('localPod', nodePort(shared.service, at), stickily(reachesMasqueraded('localB')))],
        },
      ],
    }),
    row('affinity: it never leads outside the endpoints that the policy allows', {
      objects: [crossing.service, crossing.slice('remoteA')],
      flows: [flow('external', clusterIp(crossing.service), stickily(reachesMasqueraded('remoteA')))],
      steps: [
        {
          when: 'a local endpoint comes',
          put: [crossing.slice('remoteA', 'localB')],
          flows: [flow('external', nodePort(crossing.service, at), stickily(reaches('localB')))],
        },
      ],
    }),
    row('affinity: it can be switched off and on', {
      objects: [switched.service, switched.slice('localB', 'localC')],
      flows: [flow('localPod', clusterIp(switched.service), stickily(reaches('localB', 'localC')))],
      steps: [
        {
          when: 'it is switched off',
          put: [without],
          flows: [flow('localPod', clusterIp(switched.service), reaches('localB', 'localC'))],
        },
        {
          when: 'it is switched on',
          put: [switched.service],
          flows: [flow('localPod', clusterIp(switched.service), stickily(reaches('localB', 'localC')))],
        },
      ],
    }),
  ]
}

export const affinityCases: readonly PacketFlowCase[] = [
  ...([4, 6] as const).flatMap((family) => [...life(family, 'TCP'), ...life(family, 'UDP')]),
  ...time(),
  ...policies(),
]
