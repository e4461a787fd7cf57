import type { Family } from '../../../src/lib/ip.ts'
import { external, node, ranges } from '../../support/addresses.ts'
import { anExternalIp, aService, aSlice } from '../../support/builders.ts'
import {
  clusterIp,
  flow,
  isDropped,
  isRejected,
  isUntouched,
  nodePort,
  reaches,
  reachesMasqueraded,
  serviceIp,
} from '../packet-flow.ts'
import { row } from './row.ts'
import type { PacketFlowCase } from '../packet-flow.ts'

/** External IPs and load-balancer IPs are the same to a packet: one list of rows for both. */
function addressesOfBothKinds(family: Family): PacketFlowCase[] {
  const kinds = [
    {
      about: `external IP, IPv${family}`,
      make: (ip: string, spec = {}) =>
        aService({ families: [family], type: 'NodePort', spec: { externalIPs: [ip], ...spec } }),
    },
    {
      about: `load-balancer IP, IPv${family}`,
      make: (ip: string, spec = {}) =>
        aService({ families: [family], type: 'LoadBalancer', ingress: [{ ip, ipMode: 'VIP' }], spec }),
    },
  ]
  return kinds.flatMap(({ about, make }) => {
    const anIp = () => anExternalIp(family)
    const ips = [anIp(), anIp(), anIp(), anIp(), anIp()] as const
    const cluster = make(ips[0])
    const local = make(ips[1], { externalTrafficPolicy: 'Local' })
    const elsewhere = make(ips[2], { externalTrafficPolicy: 'Local' })
    const empty = make(ips[3])
    const forsaken = make(ips[4])
    return [
      row(`${about}: every client reaches all endpoints, masqueraded`, {
        objects: [cluster, aSlice(cluster, ['localB', 'remoteA'])],
        flows: [
          flow('external', serviceIp(cluster, ips[0]), reachesMasqueraded('localB', 'remoteA')),
          flow('localPod', serviceIp(cluster, ips[0]), reachesMasqueraded('localB', 'remoteA')),
          flow('node', serviceIp(cluster, ips[0]), reachesMasqueraded('localB', 'remoteA')),
        ],
      }),
      row(
        `${about}: with policy Local outside traffic stays on the node and keeps its address, pods take all endpoints`,
        {
          objects: [local, aSlice(local, ['localB', 'remoteA'])],
          flows: [
            flow('external', serviceIp(local, ips[1]), reaches('localB')),
            flow('localPod', serviceIp(local, ips[1]), reaches('localB', 'remoteA')),
            flow('node', serviceIp(local, ips[1]), reachesMasqueraded('localB', 'remoteA')),
          ],
        },
      ),
      row(
        `${about}: with policy Local and no local endpoint outside traffic is dropped, pods and the node are served`,
        {
          objects: [elsewhere, aSlice(elsewhere, ['remoteA'])],
          flows: [
            flow('external', serviceIp(elsewhere, ips[2]), isDropped),
            flow('localPod', serviceIp(elsewhere, ips[2]), reaches('remoteA')),
            flow('node', serviceIp(elsewhere, ips[2]), reachesMasqueraded('remoteA')),
          ],
        },
      ),
      row(`${about}: without endpoints every client is refused`, {
        objects: [empty],
        flows: [
          flow('external', serviceIp(empty, ips[3]), isRejected),
          flow('localPod', serviceIp(empty, ips[3]), isRejected),
        ],
      }),
      row(`${about}: without endpoints the node itself is refused, too`, {
        // In iptables, as kube-proxy has it, what the node sends does not pass KUBE-EXTERNAL-SERVICES.
        modes: ['nftables', 'ipvs', 'userspace'],
        objects: [forsaken],
        flows: [flow('node', serviceIp(forsaken, ips[4]), isRejected)],
      }),
    ]
  })
}

function ipMode(): PacketFlowCase[] {
  const [proxied, plain, second] = [anExternalIp(4), anExternalIp(4), anExternalIp(4)]
  const service = aService({
    type: 'LoadBalancer',
    ingress: [{ ip: proxied, ipMode: 'Proxy' }, { ip: plain }, { ip: second, ipMode: 'VIP' }],
  })
  return [
    row('load-balancer IP: ipMode Proxy leaves the address to the load balancer, the others are served', {
      objects: [service, aSlice(service, ['localB'])],
      flows: [
        flow('localPod', serviceIp(service, proxied), isUntouched),
        flow('external', serviceIp(service, plain), reachesMasqueraded('localB')),
        flow('external', serviceIp(service, second), reachesMasqueraded('localB')),
      ],
    }),
  ]
}

function sourceRanges(family: Family): PacketFlowCase[] {
  const about = `loadBalancerSourceRanges, IPv${family}`
  const other = family === 4 ? 6 : 4
  const make = (ip: string, ranges: readonly string[], spec = {}) =>
    aService({
      families: [family],
      type: 'LoadBalancer',
      ingress: [{ ip, ipMode: 'VIP' }],
      spec: { loadBalancerSourceRanges: ranges, ...spec },
    })
  const ips = [anExternalIp(family), anExternalIp(family), anExternalIp(family), anExternalIp(family)] as const
  const clientOnly = make(ips[0], [`${external.ip[family]}/${family === 4 ? 32 : 128}`])
  const podsOnly = make(ips[1], [` ${ranges.pods[family]} `, ranges.lan[other]])
  const zero = make(ips[2], [family === 4 ? '0.0.0.0/0' : '::/0', ranges.pods[family]])
  const local = make(ips[3], [ranges.lan[family]], { externalTrafficPolicy: 'Local' })
  return [
    row(`${about}: only who is in a range gets through to the load-balancer IP`, {
      objects: [clientOnly, aSlice(clientOnly, ['localB'])],
      flows: [
        flow('external', serviceIp(clientOnly, ips[0]), reachesMasqueraded('localB')),
        flow('localPod', serviceIp(clientOnly, ips[0]), isDropped),
        flow('node', serviceIp(clientOnly, ips[0]), isDropped),
      ],
    }),
    row(`${about}: they do not bind the cluster IP and the node port`, {
      objects: [podsOnly, aSlice(podsOnly, ['localB'])],
      flows: [
        flow('external', serviceIp(podsOnly, ips[1]), isDropped),
        flow('localPod', serviceIp(podsOnly, ips[1]), reachesMasqueraded('localB')),
        flow('external', nodePort(podsOnly, node.ip[family]), reachesMasqueraded('localB')),
        flow('external', clusterIp(podsOnly), reachesMasqueraded('localB')),
      ],
    }),
    row(`${about}: a range of everything is no range`, {
      objects: [zero, aSlice(zero, ['localB'])],
      flows: [
        flow('external', serviceIp(zero, ips[2]), reachesMasqueraded('localB')),
        flow('node', serviceIp(zero, ips[2]), reachesMasqueraded('localB')),
      ],
    }),
    row(`${about}: together with policy Local`, {
      objects: [local, aSlice(local, ['localB', 'remoteA'])],
      flows: [
        flow('external', serviceIp(local, ips[3]), reaches('localB')),
        flow('node', serviceIp(local, ips[3]), reachesMasqueraded('localB', 'remoteA')),
        flow('localPod', serviceIp(local, ips[3]), isDropped),
      ],
    }),
  ]
}

function changes(): PacketFlowCase[] {
  const ip = anExternalIp(4)
  const pending = aService({ type: 'LoadBalancer' })
  const given = { ...pending, status: { loadBalancer: { ingress: [{ ip }] } } }
  const slice = aSlice(pending, ['localB'])
  const guarded = { ...given, spec: { ...given.spec, loadBalancerSourceRanges: [ranges.pods[4]] } }
  return [
    row('load-balancer IP: it opens when the load balancer is given, closes behind ranges, and goes with it', {
      objects: [pending, slice],
      flows: [flow('external', serviceIp(pending, ip), isUntouched)],
      steps: [
        {
          when: 'the address is given',
          put: [given],
          flows: [flow('external', serviceIp(pending, ip), reachesMasqueraded('localB'))],
        },
        {
          when: 'ranges are set',
          put: [guarded],
          flows: [
            flow('external', serviceIp(pending, ip), isDropped),
            flow('localPod', serviceIp(pending, ip), reachesMasqueraded('localB')),
          ],
        },
        {
          when: 'the address is taken away',
          put: [pending],
          flows: [flow('localPod', serviceIp(pending, ip), isUntouched)],
        },
      ],
    }),
  ]
}

export const externalCases: readonly PacketFlowCase[] = [
  ...([4, 6] as const).flatMap((family) => [...addressesOfBothKinds(family), ...sourceRanges(family)]),
  ...ipMode(),
  ...changes(),
]
