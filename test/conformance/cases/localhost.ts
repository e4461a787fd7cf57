// Node ports on localhost in the nftables mode, with the feature gate: a listener of the proxy has no client but the node.

import type { Family } from '../../../src/lib/ip.ts'
import { node } from '../../support/addresses.ts'
import { aService, aSlice } from '../../support/builders.ts'
import { flow, isRejected, isUntouched, nodePort, reachesMasqueraded, stickily } from '../packet-flow.ts'
import type { PacketFlowCase } from '../packet-flow.ts'
import { row } from './row.ts'

const localhost = { 4: '127.0.0.1', 6: '::1' } as const
const open = { localhostNodePorts: true, nodePortAddresses: ['primary', 'localhost'] } as const
const closed = { localhostNodePorts: true } as const

function relayed(family: Family, protocol: 'TCP' | 'UDP'): PacketFlowCase[] {
  const about = `node port on localhost, IPv${family} ${protocol}`
  const wish = { families: [family], ports: [{ protocol }], type: 'NodePort' } as const
  const all = aService(wish)
  const local = aService({ ...wish, spec: { externalTrafficPolicy: 'Local' } })
  const sticky = aService({
    ...wish,
    spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } },
  })
  const empty = aService(wish)
  const here = aSlice(empty, ['localB'])
  const elsewhere = { ...aSlice(empty, ['remoteA']), metadata: here.metadata }
  const at = localhost[family]
  const promise = { modes: ['nftables'], settings: open } as const
  return [
    row(`${about}: it reaches all endpoints, as it does on the node's own address`, {
      ...promise,
      objects: [all, aSlice(all, ['localB', 'remoteA'])],
      flows: [
        flow('node', nodePort(all, at), reachesMasqueraded('localB', 'remoteA')),
        flow('node', nodePort(all, node.ip[family]), reachesMasqueraded('localB', 'remoteA')),
        flow('external', nodePort(all, node.ip[family]), reachesMasqueraded('localB', 'remoteA')),
      ],
    }),
    row(`${about}: with externalTrafficPolicy Local it reaches endpoints of other nodes, too`, {
      ...promise,
      objects: [local, aSlice(local, ['localB', 'remoteA'])],
      flows: [flow('node', nodePort(local, at), reachesMasqueraded('localB', 'remoteA'))],
    }),
    row(`${about}: with affinity it stays with one endpoint`, {
      ...promise,
      objects: [sticky, aSlice(sticky, ['localB', 'localC', 'remoteA'])],
      flows: [flow('node', nodePort(sticky, at), stickily(reachesMasqueraded('localB', 'localC', 'remoteA')))],
    }),
    row(`${about}: it is open while there is an endpoint`, {
      ...promise,
      objects: [empty],
      flows: [flow('node', nodePort(empty, at), isUntouched)],
      steps: [
        { when: 'one comes', put: [here], flows: [flow('node', nodePort(empty, at), reachesMasqueraded('localB'))] },
        {
          when: 'another takes its place',
          put: [elsewhere],
          flows: [flow('node', nodePort(empty, at), reachesMasqueraded('remoteA'))],
        },
        { when: 'it goes', remove: [elsewhere], flows: [flow('node', nodePort(empty, at), isUntouched)] },
        {
          when: 'one comes again',
          put: [here],
          flows: [flow('node', nodePort(empty, at), reachesMasqueraded('localB'))],
        },
      ],
    }),
  ]
}

function refused(family: Family): PacketFlowCase[] {
  const at = localhost[family]
  const serviceOf = (protocol: 'TCP' | 'UDP' | 'SCTP') => {
    const service = aService({ families: [family], ports: [{ protocol }], type: 'NodePort' })
    return { service, objects: [service, aSlice(service, ['localB'])] }
  }
  const [tcp, udp, sctp, other] = [serviceOf('TCP'), serviceOf('UDP'), serviceOf('SCTP'), serviceOf('SCTP')]
  return [
    row(`node port on localhost, IPv${family} SCTP: it is refused, since it cannot be relayed`, {
      modes: ['nftables'],
      settings: open,
      objects: other.objects,
      flows: [
        flow('node', nodePort(other.service, at), isRejected),
        flow('external', nodePort(other.service, node.ip[family]), reachesMasqueraded('localB')),
      ],
    }),
    row(`node port on localhost, IPv${family}: it is refused where nodePortAddresses does not name localhost`, {
      modes: ['nftables'],
      settings: closed,
      objects: [tcp, udp, sctp].flatMap(({ objects }) => objects),
      flows: [tcp, udp, sctp].map(({ service }) => flow('node', nodePort(service, at), isRejected)),
    }),
  ]
}

export const localhostCases: readonly PacketFlowCase[] = ([4, 6] as const).flatMap((family) => [
  ...relayed(family, 'TCP'),
  ...relayed(family, 'UDP'),
  ...refused(family),
])
