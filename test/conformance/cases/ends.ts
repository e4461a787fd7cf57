import type { Family } from '../../../src/lib/ip.ts'
import { ENDS_ANNOTATION } from '../../../src/model/ends.ts'
import { node, type PodName } from '../../support/addresses.ts'
import { aService, aSlice } from '../../support/builders.ts'
import { clusterIp, flow, nodePort, reaches, reachesMasqueraded } from '../packet-flow.ts'
import type { PacketFlowCase } from '../packet-flow.ts'
import { row } from './row.ts'

/** What becomes of open connections is in test/e2e/removed-endpoints.suite.ts: this is of new ones. */
function endsCase(family: Family, words: 'reset' | 'reset after 1s'): PacketFlowCase {
  const service = aService({ families: [family], type: 'NodePort', annotations: { [ENDS_ANNOTATION]: words } })
  const slice = (...pods: Parameters<typeof aSlice>[1]) => aSlice(service, pods, { name: service.metadata.name })
  const toNodePort = nodePort(service, node.ip[family])
  const reach = (...pods: readonly PodName[]) => [
    flow('localPod', clusterIp(service), reaches(...pods)),
    flow('external', toNodePort, reachesMasqueraded(...pods)),
  ]
  return row(`removed endpoints, ${words}, IPv${family}: no new connection is ended`, {
    objects: [service, slice('localB', 'remoteA')],
    flows: reach('localB', 'remoteA'),
    steps: [
      { when: 'an endpoint goes', put: [slice('remoteA')], flows: reach('remoteA') },
      {
        when: 'the other terminates, and still serves',
        put: [slice({ pod: 'remoteA', ready: false, serving: true, terminating: true })],
        flows: reach('remoteA'),
      },
      { when: 'the first is back', put: [slice('localB')], flows: reach('localB') },
    ],
  })
}

export const endsCases: readonly PacketFlowCase[] = ([4, 6] as const).flatMap((family) => [
  endsCase(family, 'reset'),
  endsCase(family, 'reset after 1s'),
])
