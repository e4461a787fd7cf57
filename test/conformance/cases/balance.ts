import type { Family } from '../../../src/lib/ip.ts'
import { type Balance, BALANCE_ANNOTATION } from '../../../src/model/balance.ts'
import { WEIGHTS_ANNOTATION } from '../../../src/model/weights.ts'
import { node, pods } from '../../support/addresses.ts'
import { aName, aService, aSlice, type EndpointWish } from '../../support/builders.ts'
import { byLoad, clusterIp, flow, nodePort, reaches, reachesMasqueraded, stickily } from '../packet-flow.ts'
import type { PacketFlowCase } from '../packet-flow.ts'
import { row } from './row.ts'

/** A service whose annotations change, and its one slice. */
function aBalanced(family: Family, spec: Record<string, unknown> = {}) {
  const wish = { name: aName('service'), families: [family], type: 'NodePort', spec } as const
  const plain = aService(wish)
  const { clusterIPs, ports } = plain.spec
  const service = (annotations?: Record<string, string>) =>
    annotations === undefined ? plain : aService({ ...wish, clusterIPs, ports, annotations })
  const slice = (endpoints: readonly EndpointWish[], annotations?: Record<string, string>) =>
    aSlice(plain, endpoints, { name: `${wish.name}-1`, ...(annotations && { annotations }) })
  return { service, slice }
}

const weights = (text: string) => ({ [WEIGHTS_ANNOTATION]: text })

function weightCases(family: Family): PacketFlowCase[] {
  const about = `weights, IPv${family}`
  const all = ['localB', 'localC', 'remoteA'] as const
  const heavy = aBalanced(family)
  const drained = aBalanced(family)
  const sticky = aBalanced(family, {
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } },
  })
  const localA = `${pods.localA.ip[family]}=0`
  const localB = `${pods.localB.ip[family]}=0`
  const at = node.ip[family]
  return [
    row(`${about}: endpoints of different weights all get connections`, {
      objects: [
        heavy.service(weights(`${pods.localB.ip[family]}=2, ${pods.localC.ip[family]}=150%`)),
        heavy.slice(all),
      ],
      flows: [
        flow('localPod', clusterIp(heavy.service()), reaches(...all)),
        flow('external', nodePort(heavy.service(), at), reachesMasqueraded(...all)),
      ],
    }),
    row(`${about}: an endpoint of weight 0 gets no new connections while another weighs more`, {
      objects: [drained.service(weights(localB)), drained.slice(all)],
      flows: [
        flow('localPod', clusterIp(drained.service()), reaches('localC', 'remoteA')),
        flow('external', nodePort(drained.service(), at), reachesMasqueraded('localC', 'remoteA')),
      ],
      steps: [
        {
          when: 'no other is left',
          put: [drained.slice(['localB'])],
          flows: [flow('localPod', clusterIp(drained.service()), reaches('localB'))],
        },
        {
          when: 'its slice says that all weigh 0',
          put: [drained.slice(all, weights('0'))],
          flows: [flow('localPod', clusterIp(drained.service()), reaches(...all))],
        },
        {
          when: 'the annotations are gone',
          put: [drained.service(), drained.slice(all)],
          flows: [flow('localPod', clusterIp(drained.service()), reaches(...all))],
        },
      ],
    }),
    row(`${about}: a client leaves the endpoint that it had by affinity when that weighs nothing`, {
      objects: [sticky.service(), sticky.slice(['localB'])],
      flows: [flow('localPod', clusterIp(sticky.service()), stickily(reaches('localB')))],
      steps: [
        {
          when: 'its endpoint weighs 0',
          put: [sticky.service(weights(`${localA}, ${localB}`)), sticky.slice(all)],
          flows: [flow('localPod', clusterIp(sticky.service()), stickily(reaches('localC', 'remoteA')))],
        },
      ],
    }),
  ]
}

const balance = (text: Balance) => ({ [BALANCE_ANNOTATION]: text })

function balancedCases(family: Family): PacketFlowCase[] {
  const about = `balance, IPv${family}`
  const all = ['localB', 'localC', 'remoteA'] as const
  const client = aBalanced(family)
  const connection = aBalanced(family)
  const local = aBalanced(family, { externalTrafficPolicy: 'Local' })
  const least = aBalanced(family)
  const nonsense = aBalanced(family)
  const at = node.ip[family]
  // What IPVS chooses is the kernel's: test/uml/ipvs-schedulers.test.ts has it.
  const modes = ['nftables', 'userspace'] as const
  return [
    {
      ...row(`${about}: a client comes to the same endpoint again, while it is there`, {
        objects: [client.service(balance('hash-client')), client.slice(all)],
        flows: [
          flow('localPod', clusterIp(client.service()), stickily(reaches(...all))),
          flow('node', clusterIp(client.service()), stickily(reachesMasqueraded(...all))),
          { ...flow('external', nodePort(client.service(), at), stickily(reachesMasqueraded(...all))), clients: 48 },
        ],
        steps: [
          {
            when: 'two endpoints go',
            put: [client.slice(['localC'])],
            flows: [flow('localPod', clusterIp(client.service()), stickily(reaches('localC')))],
          },
          {
            when: 'the annotation goes',
            put: [client.service(), client.slice(all)],
            flows: [flow('localPod', clusterIp(client.service()), reaches(...all))],
          },
        ],
      }),
      modes,
    },
    {
      ...row(`${about}: with policy Local, clients from outside have the table of the local endpoints`, {
        objects: [local.service(balance('hash-client')), local.slice(all)],
        flows: [
          { ...flow('external', nodePort(local.service(), at), stickily(reaches('localB', 'localC'))), clients: 48 },
          flow('localPod', clusterIp(local.service()), stickily(reaches(...all))),
        ],
      }),
      modes,
    },
    row(`${about}: the connections of a client come to all endpoints, for their ports differ`, {
      objects: [connection.service(balance('hash-connection')), connection.slice(all)],
      flows: [
        flow('localPod', clusterIp(connection.service()), reaches(...all)),
        flow('external', nodePort(connection.service(), at), reachesMasqueraded(...all)),
      ],
      steps: [
        {
          when: 'an endpoint goes',
          put: [connection.slice(['localB', 'remoteA'])],
          flows: [flow('localPod', clusterIp(connection.service()), reaches('localB', 'remoteA'))],
        },
      ],
    }),
    row(`${about}: with least connections, or where a mode does not have them, all endpoints get some`, {
      objects: [least.service(balance('least-connections')), least.slice(all)],
      flows: [flow('localPod', clusterIp(least.service()), byLoad(reaches(...all)))],
    }),
    row(`${about}: what the annotation may not say has no effect`, {
      objects: [nonsense.service({ [BALANCE_ANNOTATION]: 'hash' }), nonsense.slice(all)],
      flows: [flow('localPod', clusterIp(nonsense.service()), reaches(...all))],
    }),
  ]
}

export const balanceCases: readonly PacketFlowCase[] = ([4, 6] as const).flatMap((family) => [
  ...weightCases(family),
  ...balancedCases(family),
])
