import type { Family } from '../../../src/lib/ip.ts'
import type { Protocol } from '../../../src/kube/types.ts'
import { node, pods, ranges } from '../../support/addresses.ts'
import { aService, aSlice } from '../../support/builders.ts'
import {
  clusterIp,
  flow,
  isDropped,
  isRejected,
  isUntouched,
  nodePort,
  on,
  reaches,
  reachesMasqueraded,
} from '../packet-flow.ts'
import { row } from './row.ts'
import type { PacketFlowCase } from '../packet-flow.ts'

function clusterPolicy(family: Family, protocol: Protocol): PacketFlowCase[] {
  const about = `node port, IPv${family} ${protocol}`
  const wish = { families: [family], ports: [{ protocol }], type: 'NodePort' } as const
  const service = aService(wish)
  const empty = aService(wish)
  const at = node.ip[family]
  return [
    row(`${about}: every client reaches all endpoints, masqueraded`, {
      objects: [service, aSlice(service, ['localB', 'remoteA'])],
      flows: [
        flow('external', nodePort(service, at), reachesMasqueraded('localB', 'remoteA')),
        flow('remotePod', nodePort(service, at), reachesMasqueraded('localB', 'remoteA')),
        flow('localPod', nodePort(service, at), reachesMasqueraded('localB', 'remoteA')),
        flow('node', nodePort(service, at), reachesMasqueraded('localB', 'remoteA')),
        flow('localPod', clusterIp(service), reaches('localB', 'remoteA')),
      ],
    }),
    row(`${about}: without endpoints every client is refused`, {
      objects: [empty],
      flows: [
        flow('external', nodePort(empty, at), isRejected),
        flow('localPod', nodePort(empty, at), isRejected),
        flow('node', nodePort(empty, at), isRejected),
        flow('localPod', clusterIp(empty), isRejected),
      ],
    }),
  ]
}

function localPolicy(family: Family, protocol: Protocol): PacketFlowCase[] {
  const about = `node port with externalTrafficPolicy Local, IPv${family} ${protocol}`
  const wish = {
    families: [family],
    ports: [{ protocol }],
    type: 'NodePort',
    spec: { externalTrafficPolicy: 'Local' },
  } as const
  const here = aService(wish)
  const elsewhere = aService(wish)
  const nowhere = aService(wish)
  const at = node.ip[family]
  return [
    row(`${about}: outside traffic stays on the node and keeps its address`, {
      objects: [here, aSlice(here, ['localB', 'localC', 'remoteA'])],
      flows: [flow('external', nodePort(here, at), reaches('localB', 'localC'))],
    }),
    row(`${about}: pods and the node take all endpoints`, {
      objects: [elsewhere, aSlice(elsewhere, ['remoteA', 'remoteB'])],
      flows: [
        flow('localPod', nodePort(elsewhere, at), reaches('remoteA', 'remoteB')),
        flow('node', nodePort(elsewhere, at), reachesMasqueraded('remoteA', 'remoteB')),
        flow('external', nodePort(elsewhere, at), isDropped),
        flow('localPod', clusterIp(elsewhere), reaches('remoteA', 'remoteB')),
      ],
    }),
    row(`${about}: without any endpoint every client is refused`, {
      objects: [nowhere],
      flows: [
        flow('external', nodePort(nowhere, at), isRejected),
        flow('localPod', nodePort(nowhere, at), isRejected),
        flow('node', nodePort(nowhere, at), isRejected),
      ],
    }),
  ]
}

function where(family: Family): PacketFlowCase[] {
  const about = `node port, IPv${family}`
  const wish = { families: [family], type: 'NodePort' } as const
  const loopback = family === 4 ? '127.0.0.1' : '::1'
  const backed = () => {
    const service = aService(wish)
    return { service, objects: [service, aSlice(service, ['localB'])] }
  }
  const open = reachesMasqueraded('localB')
  const byDefault = backed()
  const primary = backed()
  const all = backed()
  const byRange = backed()
  const bySecond = backed()
  const byBridge = backed()
  const forwarded = backed()
  const anywhere = backed()
  const onLocalhost = backed()
  return [
    row(`${about}: by default iptables opens it on every address, and for IPv4 on loopback, too`, {
      modes: ['iptables'],
      objects: anywhere.objects,
      flows: [
        flow('external', nodePort(anywhere.service, node.ip[family]), open),
        flow('external', nodePort(anywhere.service, node.secondIp[family]), open),
        flow('localPod', nodePort(anywhere.service, node.bridgeIp[family]), open),
        flow('node', nodePort(anywhere.service, loopback), family === 4 ? open : isUntouched),
      ],
    }),
    row(`${about}: nodePortAddresses localhost opens it on loopback alone, and for IPv6 nowhere`, {
      modes: ['iptables'],
      settings: { nodePortAddresses: ['localhost'] },
      objects: onLocalhost.objects,
      flows: [
        flow('external', nodePort(onLocalhost.service, node.ip[family]), isUntouched),
        flow('node', nodePort(onLocalhost.service, node.ip[family]), isUntouched),
        flow('node', nodePort(onLocalhost.service, loopback), family === 4 ? open : isUntouched),
      ],
    }),
    row(`${about}: by default it is open on the node's primary address`, {
      modes: ['nftables'],
      objects: byDefault.objects,
      flows: [
        flow('external', nodePort(byDefault.service, node.ip[family]), open),
        flow('external', nodePort(byDefault.service, node.secondIp[family]), isUntouched),
        flow('localPod', nodePort(byDefault.service, node.bridgeIp[family]), isUntouched),
        flow('node', nodePort(byDefault.service, loopback), isUntouched),
      ],
    }),
    row(`${about}: nodePortAddresses primary opens the addresses that the Node object names`, {
      settings: { nodePortAddresses: ['primary'] },
      objects: primary.objects,
      flows: [
        flow('external', nodePort(primary.service, node.ip[family]), open),
        flow('external', nodePort(primary.service, node.secondIp[family]), isUntouched),
      ],
    }),
    row(`${about}: nodePortAddresses all opens every address but loopback`, {
      modes: ['nftables', 'ipvs'],
      settings: { nodePortAddresses: ['all'] },
      objects: all.objects,
      flows: [
        flow('external', nodePort(all.service, node.ip[family]), open),
        flow('external', nodePort(all.service, node.secondIp[family]), open),
        flow('localPod', nodePort(all.service, node.bridgeIp[family]), open),
        flow('node', nodePort(all.service, node.secondIp[family]), open),
        flow('node', nodePort(all.service, loopback), isUntouched),
      ],
    }),
    row(`${about}: nodePortAddresses with a range opens the node's addresses in it`, {
      settings: { nodePortAddresses: [ranges.lan[4], ranges.lan[6]] },
      objects: byRange.objects,
      flows: [
        flow('external', nodePort(byRange.service, node.ip[family]), open),
        flow('external', nodePort(byRange.service, node.secondIp[family]), open),
        flow('localPod', nodePort(byRange.service, node.bridgeIp[family]), isUntouched),
      ],
    }),
    row(`${about}: nodePortAddresses with a single other address closes the primary one`, {
      settings: { nodePortAddresses: [`${node.secondIp[4]}/32`, `${node.secondIp[6]}/128`] },
      objects: bySecond.objects,
      flows: [
        flow('external', nodePort(bySecond.service, node.secondIp[family]), open),
        flow('external', nodePort(bySecond.service, node.ip[family]), isUntouched),
      ],
    }),
    row(`${about}: nodePortAddresses primary together with a range is both`, {
      settings: { nodePortAddresses: ['primary', ranges.localPods[4], ranges.localPods[6]] },
      objects: byBridge.objects,
      flows: [
        flow('external', nodePort(byBridge.service, node.ip[family]), open),
        flow('localPod', nodePort(byBridge.service, node.bridgeIp[family]), open),
        flow('external', nodePort(byBridge.service, node.secondIp[family]), isUntouched),
      ],
    }),
    row(`${about}: the same port of another host is left alone`, {
      objects: forwarded.objects,
      flows: [flow('external', nodePort(forwarded.service, pods.localC.ip[family]), isUntouched)],
    }),
  ]
}

function changes(): PacketFlowCase[] {
  const at = node.ip[4]
  const policy = aService({ type: 'NodePort' })
  const local = { ...policy, spec: { ...policy.spec, externalTrafficPolicy: 'Local' } }
  const renumbered = aService({ type: 'NodePort' })
  const renumberedAfter = aService({
    type: 'NodePort',
    name: renumbered.metadata.name,
    clusterIPs: renumbered.spec.clusterIPs,
  })
  const closed = aService({ type: 'NodePort' })
  const closedAfter = aService({ name: closed.metadata.name, clusterIPs: closed.spec.clusterIPs })
  const two = aService({
    type: 'NodePort',
    ports: [
      { name: 'a', port: 80, targetPort: 8080 },
      { name: 'b', port: 81, targetPort: 9090 },
    ],
  })
  return [
    row('node port: externalTrafficPolicy changes both ways', {
      objects: [policy, aSlice(policy, ['localB', 'remoteA'])],
      flows: [flow('external', nodePort(policy, at), reachesMasqueraded('localB', 'remoteA'))],
      steps: [
        { when: 'Local', put: [local], flows: [flow('external', nodePort(policy, at), reaches('localB'))] },
        {
          when: 'Cluster again',
          put: [policy],
          flows: [flow('external', nodePort(policy, at), reachesMasqueraded('localB', 'remoteA'))],
        },
      ],
    }),
    row('node port: a new number closes the old one', {
      objects: [renumbered, aSlice(renumbered, ['localB'])],
      flows: [flow('external', nodePort(renumbered, at), reachesMasqueraded('localB'))],
      steps: [
        {
          when: 'the number changes',
          put: [renumberedAfter],
          flows: [
            flow('external', nodePort(renumberedAfter, at), reachesMasqueraded('localB')),
            flow('external', nodePort(renumbered, at), isUntouched),
          ],
        },
      ],
    }),
    row('node port: it closes when the service becomes ClusterIP, which goes on', {
      objects: [closed, aSlice(closed, ['localB'])],
      flows: [flow('external', nodePort(closed, at), reachesMasqueraded('localB'))],
      steps: [
        {
          when: 'the type changes',
          put: [closedAfter],
          flows: [
            flow('external', nodePort(closed, at), isUntouched),
            flow('localPod', clusterIp(closed), reaches('localB')),
          ],
        },
      ],
    }),
    row('node port: each port of a service has its own', {
      objects: [two, aSlice(two, ['localB'])],
      flows: [
        flow('external', nodePort(two, at, 'a'), reachesMasqueraded('localB')),
        flow('external', nodePort(two, at, 'b'), reachesMasqueraded(on('localB', 9090))),
      ],
    }),
  ]
}

export const nodePortCases: readonly PacketFlowCase[] = [
  ...([4, 6] as const).flatMap((family) => [
    ...clusterPolicy(family, 'TCP'),
    ...clusterPolicy(family, 'UDP'),
    ...localPolicy(family, 'TCP'),
    ...localPolicy(family, 'UDP'),
    ...where(family),
  ]),
  ...changes(),
]
