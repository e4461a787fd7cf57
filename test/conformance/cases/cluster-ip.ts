import type { Family } from '../../../src/lib/ip.ts'
import type { Protocol } from '../../../src/kube/types.ts'
import { node } from '../../support/addresses.ts'
import { aClusterIp, anEndpoint, aService, aSlice } from '../../support/builders.ts'
import {
  atPort,
  clusterIp,
  flow,
  isDropped,
  isRejected,
  isUntouched,
  on,
  reaches,
  reachesMasqueraded,
} from '../packet-flow.ts'
import { row } from './row.ts'
import type { PacketFlowCase } from '../packet-flow.ts'

function basics(family: Family, protocol: Protocol): PacketFlowCase[] {
  const about = `cluster IP, IPv${family} ${protocol}`
  const families = [family]
  const ports = [{ protocol }]
  const local = aService({ families, ports })
  const mixed = aService({ families, ports })
  const self = aService({ families, ports })
  const selfAndOther = aService({ families, ports })
  const empty = aService({ families, ports })
  const offCluster = aService({ families, ports })
  return [
    row(`${about}: pods of both nodes reach a local endpoint and keep their address`, {
      objects: [local, aSlice(local, ['localB'])],
      flows: [
        flow('localPod', clusterIp(local), reaches('localB')),
        flow('remotePod', clusterIp(local), reaches('localB')),
      ],
    }),
    row(`${about}: connections spread over all endpoints, wherever they run`, {
      objects: [mixed, aSlice(mixed, ['localB', 'localC', 'remoteA'])],
      flows: [
        flow('localPod', clusterIp(mixed), reaches('localB', 'localC', 'remoteA')),
        flow('node', clusterIp(mixed), reachesMasqueraded('localB', 'localC', 'remoteA')),
      ],
    }),
    row(`${about}: a client from outside the cluster CIDR is masqueraded`, {
      objects: [offCluster, aSlice(offCluster, ['localB', 'remoteA'])],
      flows: [flow('external', clusterIp(offCluster), reachesMasqueraded('localB', 'remoteA'))],
    }),
    row(`${about}: a pod that reaches itself is masqueraded`, {
      objects: [self, aSlice(self, ['localA'])],
      flows: [
        flow('localPod', clusterIp(self), reachesMasqueraded('localA')),
        flow('otherLocalPod', clusterIp(self), reaches('localA')),
      ],
    }),
    row(`${about}: a pod among the endpoints sees itself masqueraded only when it picks itself`, {
      objects: [selfAndOther, aSlice(selfAndOther, ['localA'], { name: `${selfAndOther.metadata.name}-a` })],
      flows: [flow('localPod', clusterIp(selfAndOther), reachesMasqueraded('localA'))],
      steps: [
        {
          when: 'another pod takes its place',
          put: [aSlice(selfAndOther, ['localB'], { name: `${selfAndOther.metadata.name}-a` })],
          flows: [flow('localPod', clusterIp(selfAndOther), reaches('localB'))],
        },
      ],
    }),
    row(`${about}: without endpoints every client is refused`, {
      objects: [empty],
      flows: [
        flow('localPod', clusterIp(empty), isRejected),
        flow('remotePod', clusterIp(empty), isRejected),
        flow('node', clusterIp(empty), isRejected),
        flow('external', clusterIp(empty), isRejected),
      ],
    }),
  ]
}

function aroundTheService(family: Family): PacketFlowCase[] {
  const families = [family]
  const service = aService({ families })
  const hostNetwork = aService({ families, ports: [{ targetPort: 8080 }] })
  const onNode = { address: node.ip[family], nodeName: node.name, zone: node.zone }
  return [
    row(`cluster IP, IPv${family}: a port that the service does not have is refused`, {
      modes: ['nftables', 'ipvs'],
      objects: [service, aSlice(service, ['localB'])],
      flows: [
        flow('localPod', atPort(clusterIp(service), 4444), isRejected),
        flow('localPod', { ...clusterIp(service), protocol: 'UDP' }, isRejected),
        flow('external', atPort(clusterIp(service), 4444), isRejected),
        flow('node', atPort(clusterIp(service), 4444), isRejected),
        flow('localPod', clusterIp(service), reaches('localB')),
      ],
    }),
    row(`cluster IP, IPv${family}: an address of the service range that no service has is dropped`, {
      modes: ['nftables'],
      objects: [],
      flows: [
        flow('localPod', { address: aClusterIp(family), port: 80, protocol: 'TCP' }, isDropped),
        flow('node', { address: aClusterIp(family), port: 80, protocol: 'TCP' }, isDropped),
      ],
    }),
    row(`cluster IP, IPv${family}: an endpoint on the host network of this node is reached`, {
      objects: [hostNetwork, aSlice(hostNetwork, [onNode])],
      flows: [
        flow('localPod', clusterIp(hostNetwork), reaches('node')),
        flow('node', clusterIp(hostNetwork), reachesMasqueraded('node')),
        // Marked, but what is delivered to the node itself never passes the postrouting hook.
        flow('external', clusterIp(hostNetwork), reaches('node')),
      ],
    }),
  ]
}

function ports(): PacketFlowCase[] {
  const two = aService({
    ports: [
      { name: 'a', port: 80, targetPort: 8080 },
      { name: 'b', port: 81, targetPort: 9090 },
    ],
  })
  const dns = aService({
    ports: [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53, targetPort: 9090 },
    ],
  })
  const same = aService({ ports: [{ port: 8080, targetPort: 8080 }] })
  const perSlice = aService()
  const first = aService()
  const second = aService({ ports: [{ targetPort: 9090 }] })
  const hundred = aService({
    ports: Array.from({ length: 100 }, (_, i) => ({
      name: `p${i}`,
      port: 1000 + i,
      targetPort: i % 2 === 0 ? 8080 : 9090,
    })),
  })
  return [
    row('ports: each port of a service has its own target', {
      objects: [two, aSlice(two, ['localB'])],
      flows: [
        flow('localPod', clusterIp(two, { port: 'a' }), reaches('localB')),
        flow('localPod', clusterIp(two, { port: 'b' }), reaches(on('localB', 9090))),
      ],
    }),
    row('ports: the same number over TCP and UDP is two ports', {
      objects: [dns, aSlice(dns, ['localB'])],
      flows: [
        flow('localPod', clusterIp(dns, { port: 'dns' }), reaches('localB')),
        flow('localPod', clusterIp(dns, { port: 'dns-tcp' }), reaches(on('localB', 9090))),
      ],
    }),
    row('ports: a target port equal to the port works', {
      objects: [same, aSlice(same, ['localB'])],
      flows: [flow('localPod', clusterIp(same), reaches('localB'))],
    }),
    row('ports: the slice decides the target, each slice its own', {
      objects: [
        perSlice,
        aSlice(perSlice, ['localB'], { ports: [{ name: '', protocol: 'TCP', port: 8080 }] }),
        aSlice(perSlice, ['localC'], { ports: [{ name: '', protocol: 'TCP', port: 9090 }] }),
      ],
      flows: [flow('localPod', clusterIp(perSlice), reaches('localB', on('localC', 9090)))],
    }),
    row('ports: two services over the same pod do not mix', {
      objects: [first, aSlice(first, ['localB']), second, aSlice(second, ['localB'])],
      flows: [
        flow('localPod', clusterIp(first), reaches('localB')),
        flow('localPod', clusterIp(second), reaches(on('localB', 9090))),
      ],
    }),
    row('ports: a service may have a hundred', {
      objects: [hundred, aSlice(hundred, ['localB'])],
      flows: [0, 1, 50, 99].map((i) =>
        flow('localPod', clusterIp(hundred, { port: `p${i}` }), reaches(i % 2 === 0 ? 'localB' : on('localB', 9090))),
      ),
    }),
  ]
}

function dualStack(): PacketFlowCase[] {
  const both = aService({ families: [4, 6] })
  const half = aService({ families: [4, 6] })
  return [
    row('dual stack: each family has its own endpoints', {
      objects: [both, aSlice(both, ['localB'], { family: 4 }), aSlice(both, ['localC'], { family: 6 })],
      flows: [
        flow('localPod', clusterIp(both, { family: 4 }), reaches('localB')),
        flow('localPod', clusterIp(both, { family: 6 }), reaches('localC')),
      ],
    }),
    row('dual stack: the family without endpoints is refused, the other serves', {
      objects: [half, aSlice(half, ['localB'], { family: 4 })],
      flows: [
        flow('localPod', clusterIp(half, { family: 4 }), reaches('localB')),
        flow('localPod', clusterIp(half, { family: 6 }), isRejected),
      ],
      steps: [
        {
          when: 'endpoints of the other family appear',
          put: [aSlice(half, ['localC'], { family: 6 })],
          flows: [flow('localPod', clusterIp(half, { family: 6 }), reaches('localC'))],
        },
      ],
    }),
  ]
}

function sctp(): PacketFlowCase[] {
  const mixed = aService({
    ports: [
      { name: 's', port: 80, protocol: 'SCTP' },
      { name: 't', port: 80, protocol: 'TCP', targetPort: 9090 },
    ],
  })
  const empty = aService({ ports: [{ protocol: 'SCTP' }] })
  return [
    row('SCTP: a port of its own beside the TCP port of the same number', {
      objects: [mixed, aSlice(mixed, ['localB', 'remoteA'])],
      flows: [
        flow('localPod', clusterIp(mixed, { port: 's' }), reaches('localB', 'remoteA')),
        flow('external', clusterIp(mixed, { port: 's' }), reachesMasqueraded('localB', 'remoteA')),
        flow('localPod', clusterIp(mixed, { port: 't' }), reaches(on('localB', 9090), on('remoteA', 9090))),
      ],
    }),
    row('SCTP: without endpoints it is refused', {
      objects: [empty],
      flows: [flow('localPod', clusterIp(empty), isRejected)],
    }),
  ]
}

function notOurs(family: Family): PacketFlowCase[] {
  const service = aService({ families: [family], type: 'NodePort' })
  const [address = ''] = anEndpoint('localB', family).addresses
  return [
    row(`not a service, IPv${family}: what is sent to a pod or a host itself is left alone`, {
      objects: [service, aSlice(service, ['localB'])],
      flows: [
        flow('localPod', { address, port: 8080, protocol: 'TCP' }, isUntouched),
        flow('remotePod', { address, port: 8080, protocol: 'UDP' }, isUntouched),
        flow('external', { address, port: 8080, protocol: 'TCP' }, isUntouched),
        flow('node', { address, port: 9090, protocol: 'TCP' }, isUntouched),
        flow('external', { address: node.ip[family], port: 8080, protocol: 'TCP' }, isUntouched),
      ],
    }),
  ]
}

export const clusterIpCases: readonly PacketFlowCase[] = [
  ...([4, 6] as const).flatMap((family) => [
    ...basics(family, 'TCP'),
    ...basics(family, 'UDP'),
    ...aroundTheService(family),
    ...notOurs(family),
  ]),
  ...ports(),
  ...dualStack(),
  ...sctp(),
]
