import type { Family } from '../../../src/lib/ip.ts'
import { node } from '../../support/addresses.ts'
import { anExternalIp, aService, aSlice } from '../../support/builders.ts'
import { clusterIp, flow, isDropped, nodePort, reaches, reachesMasqueraded, serviceIp } from '../packet-flow.ts'
import { row } from './row.ts'
import type { Flow, PacketFlowCase, ProxySettings } from '../packet-flow.ts'

/** Two services for each way to tell a pod: one asked by its cluster IP, one by its node port with policy Local. */
function detection(family: Family): PacketFlowCase[] {
  const at = node.ip[family]
  const detector = (
    about: string,
    settings: ProxySettings,
    isPod: 'every pod' | 'local pods' | 'no client',
  ): PacketFlowCase[] => {
    const plain = aService({ families: [family] })
    const local = aService({ families: [family], type: 'NodePort', spec: { externalTrafficPolicy: 'Local' } })
    const toPlain = clusterIp(plain)
    const toLocal = nodePort(local, at)
    const outsider = isPod === 'no client' ? reaches('localB') : reachesMasqueraded('localB')
    const atClusterIp: Flow[] = [
      flow('localPod', toPlain, reaches('localB')),
      flow('remotePod', toPlain, isPod === 'local pods' ? reachesMasqueraded('localB') : reaches('localB')),
      flow('external', toPlain, outsider),
    ]
    const atNodePort: Flow[] = [
      flow('localPod', toLocal, isPod === 'no client' ? isDropped : reaches('remoteB')),
      flow('node', toLocal, reachesMasqueraded('remoteB')),
      flow('external', toLocal, isDropped),
      ...(isPod === 'every pod' ? [] : [flow('remotePod', toLocal, isDropped)]),
    ]
    return [
      row(
        `${about}, IPv${family}: ${isPod === 'no client' ? 'no client is' : 'only outsiders are'} masqueraded at the cluster IP`,
        {
          settings,
          objects: [plain, aSlice(plain, ['localB'])],
          flows: atClusterIp,
        },
      ),
      row(
        `${about}, IPv${family}: ${isPod === 'no client' ? 'only the node takes' : 'the node and its pods take'} a short cut around policy Local`,
        {
          settings,
          objects: [local, aSlice(local, ['remoteB'])],
          flows: atNodePort,
        },
      ),
    ]
  }
  return [
    ...detector('detectLocalMode ClusterCIDR', { detectLocalMode: 'ClusterCIDR' }, 'every pod'),
    ...detector(
      'detectLocalMode ClusterCIDR without a CIDR',
      { detectLocalMode: 'ClusterCIDR', clusterCIDR: '' },
      'no client',
    ),
    ...detector('detectLocalMode NodeCIDR', { detectLocalMode: 'NodeCIDR' }, 'local pods'),
    ...detector(
      'detectLocalMode BridgeInterface',
      { detectLocalMode: 'BridgeInterface', podBridgeInterface: node.bridge },
      'local pods',
    ),
    ...detector(
      'detectLocalMode InterfaceNamePrefix',
      { detectLocalMode: 'InterfaceNamePrefix', podInterfaceNamePrefix: 'cni' },
      'local pods',
    ),
  ]
}

function masqueradeAll(family: Family): PacketFlowCase[] {
  const settings = { masqueradeAll: true }
  const service = aService({ families: [family] })
  const ip = anExternalIp(family)
  const local = aService({
    families: [family],
    type: 'LoadBalancer',
    ingress: [{ ip }],
    spec: { externalTrafficPolicy: 'Local' },
  })
  return [
    row(`masqueradeAll, IPv${family}: every client of a cluster IP is masqueraded`, {
      settings,
      objects: [service, aSlice(service, ['localB', 'remoteA'])],
      flows: [
        flow('localPod', clusterIp(service), reachesMasqueraded('localB', 'remoteA')),
        flow('remotePod', clusterIp(service), reachesMasqueraded('localB', 'remoteA')),
        flow('node', clusterIp(service), reachesMasqueraded('localB', 'remoteA')),
        flow('external', clusterIp(service), reachesMasqueraded('localB', 'remoteA')),
      ],
    }),
    row(`masqueradeAll, IPv${family}: policy Local still keeps the address of an outside client`, {
      settings,
      objects: [local, aSlice(local, ['localB'])],
      flows: [flow('external', serviceIp(local, ip), reaches('localB'))],
    }),
  ]
}

function hairpin(family: Family): PacketFlowCase[] {
  const ip = anExternalIp(family)
  const local = aService({
    families: [family],
    type: 'LoadBalancer',
    ingress: [{ ip }],
    spec: { externalTrafficPolicy: 'Local' },
  })
  return [
    row(`hairpin, IPv${family}: a pod that reaches itself from outside is masqueraded too, also with policy Local`, {
      objects: [local, aSlice(local, ['localA'])],
      flows: [
        flow('localPod', serviceIp(local, ip), reachesMasqueraded('localA')),
        flow('localPod', nodePort(local, node.ip[family]), reachesMasqueraded('localA')),
        flow('otherLocalPod', serviceIp(local, ip), reaches('localA')),
      ],
    }),
  ]
}

export const settingsCases: readonly PacketFlowCase[] = ([4, 6] as const).flatMap((family) => [
  ...detection(family),
  ...masqueradeAll(family),
  ...hairpin(family),
])
