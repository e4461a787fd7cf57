// iptables writes its tables one after the other, and other programs have rules in them: a packet may pass that was to be dropped.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, test } from 'vitest'
import { anExternalIp, aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { openUdp } from '../support/netns/probe.ts'
import { startProxy, type ProxyProcess, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const reason = whyNotRun('iptables')
let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  if (reason !== undefined) return
  rig = await openRig()
  proxy = await startProxy({ netns: rig.network.node, mode: 'iptables', kubeconfig: rig.cluster.kubeconfig })
  await rig.settled()
})
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]()
  await rig?.[Symbol.asyncDispose]()
})

const changes = [
  { what: 'the policy allows other nodes', policy: 'Cluster', endpoints: ['remoteA'] },
  { what: 'an endpoint comes to this node', policy: 'Local', endpoints: ['remoteA', 'localB'] },
] as const

test.for(changes)(
  'a UDP client that passed untranslated is served when $what',
  async ({ policy, endpoints }, { skip }) => {
    if (reason !== undefined) skip(reason)
    const ip = anExternalIp(4)
    const service = aService({
      type: 'LoadBalancer',
      ingress: [{ ip, ipMode: 'VIP' }],
      ports: [{ protocol: 'UDP' }],
      spec: { externalTrafficPolicy: 'Local' },
    })
    rig.network.node.run('iptables', ['-I', 'FORWARD', '-d', ip, '-j', 'ACCEPT'])
    rig.cluster.put(service, aSlice(service, ['remoteA']))
    await rig.settled()
    // All flows are looked at after that rule, and again.
    await sleep(3000)
    const flow = await openUdp(rig.network.sources.external, { address: ip, port: 80 })
    await flow.say('anybody?')
    rig.cluster.put(
      { ...service, spec: { ...service.spec, externalTrafficPolicy: policy } },
      aSlice(service, [...endpoints]),
    )
    await rig.settled()
    await eventually('the flow is served', async () => {
      const answer = await flow.say('and now?')
      return answer.kind === 'answered' ? undefined : answer.kind
    })
    flow.close()
  },
)
