import type { Family } from '../../../src/lib/ip.ts'
import { node, pods } from '../../support/addresses.ts'
import { aName, anExternalIp, aService, aSlice } from '../../support/builders.ts'
import {
  clusterIp,
  flow,
  isDropped,
  isRejected,
  nodePort,
  reaches,
  reachesMasqueraded,
  serviceIp,
} from '../packet-flow.ts'
import { row } from './row.ts'
import type { EndpointWish } from '../../support/builders.ts'
import type { PacketFlowCase } from '../packet-flow.ts'
import type { PodName } from '../../support/addresses.ts'

const terminating = (pod: PodName): EndpointWish => ({ pod, ready: false, serving: true, terminating: true })
const gone = (pod: PodName): EndpointWish => ({ pod, ready: false, serving: false, terminating: true })

function internalPolicy(family: Family): PacketFlowCase[] {
  const about = `internalTrafficPolicy Local, IPv${family}`
  const make = (wish = {}) => aService({ families: [family], spec: { internalTrafficPolicy: 'Local' }, ...wish })
  const here = make()
  const elsewhere = make()
  const nowhere = make()
  const withNodePort = make({ type: 'NodePort' })
  return [
    row(`${about}: the cluster IP leads to local endpoints only`, {
      objects: [here, aSlice(here, ['localB', 'localC', 'remoteA'])],
      flows: [
        flow('localPod', clusterIp(here), reaches('localB', 'localC')),
        flow('node', clusterIp(here), reachesMasqueraded('localB', 'localC')),
        flow('external', clusterIp(here), reachesMasqueraded('localB', 'localC')),
      ],
    }),
    row(`${about}: without local endpoints the cluster IP says nothing`, {
      objects: [elsewhere, aSlice(elsewhere, ['remoteA'])],
      flows: [flow('localPod', clusterIp(elsewhere), isDropped), flow('node', clusterIp(elsewhere), isDropped)],
    }),
    row(`${about}: without any endpoint it is refused`, {
      objects: [nowhere],
      flows: [flow('localPod', clusterIp(nowhere), isRejected)],
    }),
    row(`${about}: the node port goes by its own policy`, {
      objects: [withNodePort, aSlice(withNodePort, ['remoteA'])],
      flows: [
        flow('localPod', clusterIp(withNodePort), isDropped),
        flow('external', nodePort(withNodePort, node.ip[family]), reachesMasqueraded('remoteA')),
      ],
    }),
  ]
}

function readiness(family: Family): PacketFlowCase[] {
  const about = `endpoints, IPv${family}`
  const make = (wish = {}) => aService({ families: [family], ...wish })
  const preferred = make()
  const fallback = make()
  const bothPolicies = make({ type: 'NodePort', spec: { externalTrafficPolicy: 'Local' } })
  const internal = make({ spec: { internalTrafficPolicy: 'Local' } })
  const live = make()
  const slice = aName('slice')
  return [
    row(`${about}: ready ones are preferred to those that only still serve`, {
      objects: [preferred, aSlice(preferred, [terminating('localB'), 'localC', { pod: 'remoteA', ready: false }])],
      flows: [flow('localPod', clusterIp(preferred), reaches('localC'))],
    }),
    row(`${about}: terminating ones that still serve are used when nothing is ready`, {
      objects: [fallback, aSlice(fallback, [terminating('localB'), gone('localC'), terminating('remoteA')])],
      flows: [flow('localPod', clusterIp(fallback), reaches('localB', 'remoteA'))],
    }),
    row(`${about}: a local one that still serves is enough for policy Local, though a remote one is ready`, {
      objects: [bothPolicies, aSlice(bothPolicies, [terminating('localB'), 'remoteA'])],
      flows: [
        flow('external', nodePort(bothPolicies, node.ip[family]), reaches('localB')),
        flow('localPod', nodePort(bothPolicies, node.ip[family]), reaches('remoteA')),
        flow('localPod', clusterIp(bothPolicies), reaches('remoteA')),
      ],
    }),
    row(`${about}: the same for internalTrafficPolicy Local`, {
      objects: [internal, aSlice(internal, [terminating('localB'), 'remoteA'])],
      flows: [flow('localPod', clusterIp(internal), reaches('localB'))],
    }),
    row(`${about}: they come, go, end and return`, {
      objects: [live, aSlice(live, ['localB'], { name: slice })],
      flows: [flow('localPod', clusterIp(live), reaches('localB'))],
      steps: [
        {
          when: 'one is added',
          put: [aSlice(live, ['localB', 'remoteA'], { name: slice })],
          flows: [flow('localPod', clusterIp(live), reaches('localB', 'remoteA'))],
        },
        {
          when: 'they are replaced',
          put: [aSlice(live, ['localC'], { name: slice })],
          flows: [flow('localPod', clusterIp(live), reaches('localC'))],
        },
        {
          when: 'the last one only still serves',
          put: [aSlice(live, [terminating('localC')], { name: slice })],
          flows: [flow('localPod', clusterIp(live), reaches('localC'))],
        },
        {
          when: 'the last one has gone',
          put: [aSlice(live, [gone('localC')], { name: slice })],
          flows: [flow('localPod', clusterIp(live), isRejected)],
        },
        {
          when: 'one returns',
          put: [aSlice(live, ['localB'], { name: slice })],
          flows: [flow('localPod', clusterIp(live), reaches('localB'))],
        },
        {
          when: 'the slice is deleted',
          remove: [aSlice(live, [], { name: slice })],
          flows: [flow('localPod', clusterIp(live), isRejected)],
        },
      ],
    }),
  ]
}

function slices(): PacketFlowCase[] {
  const merged = aService()
  const overlapping = aService()
  const shared = aSlice(overlapping, ['localB', 'localC'])
  const bare = aService()
  const early = aService()
  const lonely = aSlice(early, ['localB'])
  const [a, b] = [aService(), aService()]
  const moved = aSlice(a, ['localB'])
  const movedTo = aSlice(b, ['localB'], { name: moved.metadata.name })
  return [
    row('slices: several of one service are merged', {
      objects: [merged, aSlice(merged, ['localB']), aSlice(merged, ['localC', 'localB']), aSlice(merged, ['remoteA'])],
      flows: [flow('localPod', clusterIp(merged), reaches('localB', 'localC', 'remoteA'))],
    }),
    row('slices: an endpoint named in two stays when one of them goes', {
      objects: [overlapping, aSlice(overlapping, ['localB']), shared],
      flows: [flow('localPod', clusterIp(overlapping), reaches('localB', 'localC'))],
      steps: [
        {
          when: 'one is deleted',
          remove: [shared],
          flows: [flow('localPod', clusterIp(overlapping), reaches('localB'))],
        },
      ],
    }),
    row('slices: an endpoint without conditions is ready', {
      objects: [bare, aSlice(bare, [{ pod: 'localB', ready: undefined }])],
      flows: [flow('localPod', clusterIp(bare), reaches('localB'))],
    }),
    row('slices: one may come before its service', {
      objects: [lonely],
      flows: [],
      steps: [
        { when: 'the service comes', put: [early], flows: [flow('localPod', clusterIp(early), reaches('localB'))] },
      ],
    }),
    row('slices: one that moves to another service serves that one', {
      objects: [a, b, moved],
      flows: [flow('localPod', clusterIp(a), reaches('localB')), flow('localPod', clusterIp(b), isRejected)],
      steps: [
        {
          when: 'its label changes',
          put: [movedTo],
          flows: [flow('localPod', clusterIp(b), reaches('localB')), flow('localPod', clusterIp(a), isRejected)],
        },
      ],
    }),
  ]
}

/** Written by hand or by a controller that knows no nodes: such an endpoint may run here all the same. */
function placeless(family: Family): PacketFlowCase[] {
  const families = [family]
  const self = { address: pods.localA.ip[family] }
  const inside = aService({ families })
  const overUdp = aService({ families, ports: [{ protocol: 'UDP' }] })
  const open = aService({ families, type: 'NodePort' })
  const ip = anExternalIp(family)
  const local = aService({
    families,
    type: 'LoadBalancer',
    ingress: [{ ip }],
    spec: { externalTrafficPolicy: 'Local' },
  })
  const placed = aService({ families })
  const slice = aName('placed')
  const about = `an endpoint that names no node, IPv${family}`
  return [
    row(`${about}: it reaches itself through the cluster IP and is masqueraded`, {
      objects: [inside, aSlice(inside, [self]), overUdp, aSlice(overUdp, [self])],
      flows: [
        flow('localPod', clusterIp(inside), reachesMasqueraded('localA')),
        flow('localPod', clusterIp(overUdp), reachesMasqueraded('localA')),
        flow('otherLocalPod', clusterIp(inside), reaches('localA')),
      ],
    }),
    row(`${about}: it reaches itself through the node port`, {
      objects: [open, aSlice(open, [self])],
      flows: [flow('localPod', nodePort(open, node.ip[family]), reachesMasqueraded('localA'))],
    }),
    row(`${about}: it reaches itself through an external address with policy Local`, {
      objects: [local, aSlice(local, [self])],
      flows: [
        flow('localPod', serviceIp(local, ip), reachesMasqueraded('localA')),
        flow('external', serviceIp(local, ip), isDropped),
      ],
    }),
    row(`${about}: it goes on reaching itself when it comes to name one`, {
      objects: [placed, aSlice(placed, [self], { name: slice })],
      flows: [flow('localPod', clusterIp(placed), reachesMasqueraded('localA'))],
      steps: [
        {
          when: 'it names this node',
          put: [aSlice(placed, ['localA'], { name: slice })],
          flows: [flow('localPod', clusterIp(placed), reachesMasqueraded('localA'))],
        },
        {
          when: 'another that names none takes its place',
          put: [aSlice(placed, [{ address: pods.localB.ip[family] }], { name: slice })],
          flows: [flow('localPod', clusterIp(placed), reaches('localB'))],
        },
      ],
    }),
  ]
}

function hints(): PacketFlowCase[] {
  const inZone = (pod: PodName, zone: string, ready = true): EndpointWish => ({ pod, ready, forZones: [zone] })
  const onNode = (pod: PodName, nodeName: string, zone: string): EndpointWish => ({
    pod,
    forNodes: [nodeName],
    forZones: [zone],
  })
  const hinted = (name: string, endpoints: readonly EndpointWish[], ...expected: PodName[]): PacketFlowCase => {
    const service = aService()
    return row(`topology: ${name}`, {
      objects: [service, aSlice(service, endpoints)],
      flows: [flow('localPod', clusterIp(service), reaches(...expected))],
    })
  }
  const ip = anExternalIp(4)
  const lb = aService({ type: 'LoadBalancer', ingress: [{ ip }], spec: { externalTrafficPolicy: 'Local' } })
  return [
    hinted('zone hints keep traffic in the zone', [inZone('localB', 'zone-a'), inZone('remoteA', 'zone-b')], 'localB'),
    hinted(
      'a hint may send a remote endpoint here',
      [inZone('localB', 'zone-b'), inZone('remoteA', 'zone-a')],
      'remoteA',
    ),
    hinted('one endpoint without hint switches them off', [inZone('localB', 'zone-a'), 'remoteA'], 'localB', 'remoteA'),
    hinted(
      'hints for other zones only are ignored',
      [inZone('localB', 'zone-c'), inZone('remoteA', 'zone-b')],
      'localB',
      'remoteA',
    ),
    hinted(
      'the hint of an endpoint that is not ready does not count',
      [inZone('localB', 'zone-a', false), inZone('localC', 'zone-c'), inZone('remoteA', 'zone-b')],
      'localC',
      'remoteA',
    ),
    hinted(
      'an endpoint without hint that is not ready does not count either',
      [{ pod: 'localB', ready: false }, inZone('localC', 'zone-a'), inZone('remoteA', 'zone-b')],
      'localC',
    ),
    hinted(
      'node hints come before zone hints',
      [
        onNode('localB', node.name, 'zone-a'),
        onNode('localC', 'node-z', 'zone-a'),
        onNode('remoteA', 'node-b', 'zone-b'),
      ],
      'localB',
    ),
    hinted(
      'without one for this node the zone decides',
      [onNode('localC', 'node-z', 'zone-a'), onNode('remoteA', 'node-b', 'zone-b')],
      'localC',
    ),
    row('topology: policy Local does not care for hints', {
      objects: [lb, aSlice(lb, [inZone('localB', 'zone-b'), inZone('remoteA', 'zone-a')])],
      flows: [
        flow('external', serviceIp(lb, ip), reaches('localB')),
        flow('localPod', serviceIp(lb, ip), reaches('remoteA')),
      ],
    }),
  ]
}

export const endpointCases: readonly PacketFlowCase[] = [
  ...([4, 6] as const).flatMap((family) => [...internalPolicy(family), ...readiness(family), ...placeless(family)]),
  ...slices(),
  ...hints(),
]
