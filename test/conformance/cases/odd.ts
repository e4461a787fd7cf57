import type { Family } from '../../../src/lib/ip.ts'
import { node, pods } from '../../support/addresses.ts'
import { anExternalIp, aService, aSlice } from '../../support/builders.ts'
import {
  atPort,
  clusterIp,
  flow,
  isDropped,
  isRejected,
  nodePort,
  on,
  reaches,
  reachesMasqueraded,
  serviceIp,
} from '../packet-flow.ts'
import { row } from './row.ts'
import type { ApiService } from '../../support/builders.ts'
import type { PacketFlowCase } from '../packet-flow.ts'

function labels(): PacketFlowCase[] {
  const proxyName = { 'service.kubernetes.io/service-proxy-name': 'other' }
  const headless = { 'service.kubernetes.io/headless': '' }
  const foreign = aService({ labels: proxyName })
  const adopted = aService({ name: foreign.metadata.name, clusterIPs: foreign.spec.clusterIPs })
  const headlessSlice = aService()
  const headlessService = aService({ labels: headless })
  const foreignSlice = aService()
  return [
    row('labels: a service of another proxy is not ours until the label goes', {
      modes: ['nftables'],
      objects: [foreign, aSlice(foreign, ['localB'])],
      flows: [flow('localPod', clusterIp(foreign), isDropped)],
      steps: [
        { when: 'the label goes', put: [adopted], flows: [flow('localPod', clusterIp(foreign), reaches('localB'))] },
        { when: 'the label returns', put: [foreign], flows: [flow('localPod', clusterIp(foreign), isDropped)] },
      ],
    }),
    row('labels: a headless slice is ignored', {
      objects: [headlessSlice, aSlice(headlessSlice, ['localB'], { labels: headless })],
      flows: [flow('localPod', clusterIp(headlessSlice), isRejected)],
    }),
    row('labels: headless on a service that has a cluster IP means nothing', {
      objects: [headlessService, aSlice(headlessService, ['localB'])],
      flows: [flow('localPod', clusterIp(headlessService), reaches('localB'))],
    }),
    row('labels: the proxy name on a slice means nothing', {
      objects: [foreignSlice, aSlice(foreignSlice, ['localB'], { labels: proxyName })],
      flows: [flow('localPod', clusterIp(foreignSlice), reaches('localB'))],
    }),
  ]
}

function mismatches(): PacketFlowCase[] {
  const named = aService({ ports: [{ name: 'web' }] })
  const renamed: ApiService = { ...named, spec: { ...named.spec, ports: [{ ...named.spec.ports[0]!, name: 'other' }] } }
  const overUdp = aService({ ports: [{ name: 'web' }] })
  const numberless = aService({ ports: [{ name: 'web' }] })
  const portless = aService()
  const fqdn = aService()
  const garbage = aService()
  return [
    row('slices: a port counts by its name', {
      objects: [named, aSlice(named, ['localB'], { ports: [{ name: 'other', protocol: 'TCP', port: 8080 }] })],
      flows: [flow('localPod', clusterIp(named), isRejected)],
      steps: [
        {
          when: 'the service port takes the name',
          put: [renamed],
          flows: [flow('localPod', clusterIp(named), reaches('localB'))],
        },
      ],
    }),
    row('slices: a port of another protocol does not count', {
      objects: [overUdp, aSlice(overUdp, ['localB'], { ports: [{ name: 'web', protocol: 'UDP', port: 8080 }] })],
      flows: [flow('localPod', clusterIp(overUdp), isRejected)],
    }),
    row('slices: a port without a number does not count', {
      objects: [numberless, aSlice(numberless, ['localB'], { ports: [{ name: 'web', protocol: 'TCP' }] })],
      flows: [flow('localPod', clusterIp(numberless), isRejected)],
    }),
    row('slices: one without ports is empty', {
      objects: [portless, aSlice(portless, ['localB'], { ports: [] })],
      flows: [flow('localPod', clusterIp(portless), isRejected)],
    }),
    row('slices: names instead of addresses are ignored', {
      objects: [
        fqdn,
        aSlice(fqdn, ['localB']),
        { ...aSlice(fqdn, [{ address: 'pod.example.invalid' }]), addressType: 'FQDN' },
      ],
      flows: [flow('localPod', clusterIp(fqdn), reaches('localB'))],
    }),
    row('slices: addresses of the wrong family, or none at all, are ignored', {
      objects: [
        garbage,
        aSlice(garbage, [{ address: 'not-an-ip' }, { address: pods.localC.ip[6] }, { address: '' }, 'localB']),
      ],
      flows: [flow('localPod', clusterIp(garbage), reaches('localB'))],
    }),
  ]
}

function names(): PacketFlowCase[] {
  const namespace = 'n'.repeat(63)
  const ports = [
    { name: 'p'.repeat(15), port: 80 },
    { name: `${'p'.repeat(14)}q`, port: 81, targetPort: 9090 },
  ]
  const [longA, longB] = ['a', 'b'].map((end) => aService({ namespace, name: `${'s'.repeat(62)}${end}`, ports }))
  const twice = aService()
  const elsewhere = aService({ namespace: 'elsewhere', name: twice.metadata.name })
  const prefix = aService()
  const longer = aService({ name: `${prefix.metadata.name}-x` })
  return [
    row('names: the longest that are allowed, differing in their last letter', {
      objects: [longA!, longB!, aSlice(longA!, ['localB']), aSlice(longB!, ['localC'])],
      flows: [
        flow('localPod', clusterIp(longA!, { port: ports[0]!.name }), reaches('localB')),
        flow('localPod', clusterIp(longB!, { port: ports[0]!.name }), reaches('localC')),
        flow('localPod', clusterIp(longB!, { port: ports[1]!.name }), reaches(on('localC', 9090))),
      ],
    }),
    row('names: the same in two namespaces', {
      objects: [twice, elsewhere, aSlice(twice, ['localB']), aSlice(elsewhere, ['localC'])],
      flows: [
        flow('localPod', clusterIp(twice), reaches('localB')),
        flow('localPod', clusterIp(elsewhere), reaches('localC')),
      ],
    }),
    row('names: one may begin with another', {
      objects: [prefix, longer, aSlice(prefix, ['localB']), aSlice(longer, ['localC'])],
      flows: [
        flow('localPod', clusterIp(prefix), reaches('localB')),
        flow('localPod', clusterIp(longer), reaches('localC')),
      ],
    }),
  ]
}

function changes(): PacketFlowCase[] {
  const deleted = aService()
  const [before, slice] = [aService(), (service: ApiService) => aSlice(service, ['localB'])]
  const after = aService({ clusterIPs: before.spec.clusterIPs, ports: [{ targetPort: 9090 }] })
  const moved = aService()
  const movedTo: ApiService = { ...moved, spec: { ...moved.spec, ports: [{ ...moved.spec.ports[0]!, port: 8888 }] } }
  const ip = anExternalIp(4)
  const claim = (creationTimestamp: string): ApiService => {
    const service = aService({ type: 'NodePort', spec: { externalIPs: [ip] } })
    return { ...service, metadata: { ...service.metadata, creationTimestamp } }
  }
  const [older, younger] = [claim('2024-01-01T00:00:00Z'), claim('2025-01-01T00:00:00Z')]
  return [
    row('changes: a deleted service is gone', {
      modes: ['nftables'],
      objects: [deleted, slice(deleted)],
      flows: [flow('localPod', clusterIp(deleted), reaches('localB'))],
      steps: [{ when: 'it is deleted', remove: [deleted], flows: [flow('localPod', clusterIp(deleted), isDropped)] }],
    }),
    row('changes: the address of a deleted service may serve another', {
      objects: [before, slice(before)],
      flows: [flow('localPod', clusterIp(before), reaches('localB'))],
      steps: [
        {
          when: 'one goes and the other comes',
          remove: [before],
          put: [after, aSlice(after, ['localC'])],
          flows: [flow('localPod', clusterIp(after), reaches(on('localC', 9090)))],
        },
      ],
    }),
    row('changes: a port that moves leaves nothing behind', {
      modes: ['nftables', 'ipvs'],
      objects: [moved, slice(moved)],
      flows: [flow('localPod', clusterIp(moved), reaches('localB'))],
      steps: [
        {
          when: 'the port changes',
          put: [movedTo],
          flows: [
            flow('localPod', clusterIp(movedTo), reaches('localB')),
            flow('localPod', atPort(clusterIp(moved), 80), isRejected),
          ],
        },
      ],
    }),
    row('changes: of two services that claim an external IP the older has it, then the other', {
      modes: ['nftables'],
      objects: [younger, older, aSlice(older, ['localB']), aSlice(younger, ['localC'])],
      flows: [flow('external', serviceIp(older, ip), reachesMasqueraded('localB'))],
      steps: [
        {
          when: 'the older is deleted',
          remove: [older],
          flows: [flow('external', serviceIp(younger, ip), reachesMasqueraded('localC'))],
        },
        {
          when: 'it returns',
          put: [older],
          flows: [flow('external', serviceIp(older, ip), reachesMasqueraded('localB'))],
        },
      ],
    }),
  ]
}

/** An external IP may be the node's own, and its port the node port of another service. */
function meetings(family: Family, externalTrafficPolicy: 'Cluster' | 'Local'): PacketFlowCase[] {
  const families = [family]
  const open = aService({ families, type: 'NodePort', spec: { externalTrafficPolicy } })
  const port = open.spec.ports[0]!.nodePort!
  const address = node.ip[family]
  const external = aService({ families, ports: [{ port }], spec: { externalIPs: [address] } })
  const [openSlice, externalSlice] = [aSlice(open, ['localB', 'remoteA']), aSlice(external, ['localC'])]
  const none = aSlice(open, [], { name: openSlice.metadata.name })
  const toExternalIp = [
    flow('external', serviceIp(external, address), reachesMasqueraded('localC')),
    flow('localPod', serviceIp(external, address), reachesMasqueraded('localC')),
  ]
  const toNodePort =
    externalTrafficPolicy === 'Local'
      ? [
          flow('external', nodePort(open, address), reaches('localB')),
          flow('localPod', nodePort(open, address), reaches('localB', 'remoteA')),
        ]
      : [
          flow('external', nodePort(open, address), reachesMasqueraded('localB', 'remoteA')),
          flow('localPod', nodePort(open, address), reachesMasqueraded('localB', 'remoteA')),
        ]
  return [
    row(
      `an external IP and port that is a node port with policy ${externalTrafficPolicy}, IPv${family}: it goes first`,
      {
        objects: [open, openSlice],
        flows: toNodePort,
        steps: [
          { when: 'the external IP comes', put: [external, externalSlice], flows: toExternalIp },
          { when: 'the node port loses its endpoints', put: [none], flows: toExternalIp },
          { when: 'the node port gets them back', put: [openSlice], flows: toExternalIp },
          { when: 'the external IP goes', remove: [external, externalSlice], flows: toNodePort },
        ],
      },
    ),
  ]
}

function size(): PacketFlowCase[] {
  const many = aService()
  const addresses = Array.from({ length: 250 }, (_, i) => ({ address: `10.1.2.${i + 1}`, nodeName: 'node-a' }))
  return [
    row('size: 250 endpoints in three slices', {
      objects: [
        many,
        aSlice(many, addresses.slice(0, 100)),
        aSlice(many, addresses.slice(100, 200)),
        aSlice(many, addresses.slice(200)),
      ],
      flows: [flow('localPod', clusterIp(many), reaches('localC'))],
    }),
  ]
}

export const oddCases: readonly PacketFlowCase[] = [
  ...labels(),
  ...mismatches(),
  ...names(),
  ...changes(),
  ...([4, 6] as const).flatMap((family) => [...meetings(family, 'Cluster'), ...meetings(family, 'Local')]),
  ...size(),
]
