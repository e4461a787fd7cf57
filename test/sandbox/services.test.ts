// Services as the sandbox makes them: its controllers give them addresses and find their pods, its load balancer leads to the
// right nodes, every node serves. In every mode and in both IP families; what becomes of packets in all cases is in
// test/e2e/packet-flow.suite.ts.

import { expect } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { ask, type Outcome, type Reply } from './support/ask.ts'
import { describeModes } from './support/modes.ts'
import { webPods, webServices } from './support/objects.ts'
import type { NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import type { SandboxProcess } from './support/sandbox-process.ts'

const placeNames = ['client1', 'client2', 'node-1', 'node-2', 'machine'] as const
type PlaceName = (typeof placeNames)[number]
type NodeName = 'node-1' | 'node-2'

interface Service {
  readonly clusterIPs: readonly string[]
  readonly loadBalancerIPs: readonly string[]
  readonly nodePort: number
}

/** The addresses by which pods may see nodes: that of the cable to other nodes, and that of the bridge to their pods. */
const addressesOf: Readonly<Record<NodeName | 'machine', RegExp>> = {
  'node-1': /^(172\.30\.0\.11|10\.244\.1\.1|fd00:30::11|fd00:244:0:1::1)$/,
  'node-2': /^(172\.30\.0\.12|10\.244\.2\.1|fd00:30::12|fd00:244:0:2::1)$/,
  machine: /^(172\.30\.0\.1|fd00:30::1)$/,
}
const nodeIps = { 'node-1': ['172.30.0.11', 'fd00:30::11'], 'node-2': ['172.30.0.12', 'fd00:30::12'] } as const

/** Of the sandbox that is being tested. */
let places: Readonly<Record<PlaceName, NetworkNamespace>>
let services: ReadonlyMap<string, Service>

describeModes({
  flags: ['--dual-stack', '--empty'],

  async prepare(sandbox) {
    for (const pod of webPods) await sandbox.api.create('/api/v1/namespaces/default/pods', pod)
    for (const service of webServices) await sandbox.api.create('/api/v1/namespaces/default/services', service)
    await readCluster(sandbox)
    for (const node of ['node-1', 'node-2'] as const) {
      for (const ip of service('sentinel').clusterIPs) {
        await eventually('the sentinel answers', async () => {
          const outcome = await ask(places[node], ip, 80)
          return typeof outcome === 'string' ? outcome : undefined
        })
      }
    }
  },

  define(test) {
    test('every pod of a service gets its share', async () => {
      for (const ip of service('plain').clusterIPs) {
        const replies = await times(40, () => ask(places.client1, ip, 80))
        expect(new Set(replies.map(({ pod }) => pod))).toEqual(new Set(['a1', 'a2', 'b1']))
      }
    })

    test('a node port answers on every node, for those outside and inside', async () => {
      for (const node of ['node-1', 'node-2'] as const) {
        for (const ip of nodeIps[node]) {
          const { nodePort } = service('front')
          for (const reply of await times(6, () => ask(places.machine, ip, nodePort))) {
            expect(reply.client).toMatch(addressesOf[node])
          }
          await times(2, () => ask(places.client1, ip, nodePort))
          await times(2, () => ask(places['node-2'], ip, nodePort))
        }
      }
    })

    test('a load balancer IP answers, for those outside and inside', async () => {
      for (const ip of service('front').loadBalancerIPs) {
        for (const name of ['machine', 'client2', 'node-1'] as const) await times(4, () => ask(places[name], ip, 80))
      }
    })

    test('externalTrafficPolicy Local keeps the address of the client, and the traffic on the node', async () => {
      const { loadBalancerIPs, nodePort } = service('front-local')
      for (const ip of loadBalancerIPs) {
        const [reply] = await times(1, () => ask(places.machine, ip, 80))
        expect(reply).toMatchObject({
          pod: 'b1',
          client: expect.stringMatching(addressesOf.machine) as string,
        })
      }
      for (const ip of nodeIps['node-2']) {
        const [reply] = await times(1, () => ask(places.machine, ip, nodePort))
        expect(reply).toMatchObject({
          pod: 'b1',
          client: expect.stringMatching(addressesOf.machine) as string,
        })
      }
      expect(await Promise.all(nodeIps['node-1'].map((ip) => ask(places.machine, ip, nodePort)))).toEqual([
        'silent',
        'silent',
      ])
    })

    test('a pod that is not ready gets nothing, until it is ready again', async (sandbox) => {
      const [ip] = service('plain').clusterIPs
      const answering = async () => new Set((await times(20, () => ask(places.client2, ip!, 80))).map(({ pod }) => pod))
      const setReady = (value: string | null) =>
        sandbox.api.patch('/api/v1/namespaces/default/pods/a1', {
          metadata: { annotations: { 'sandbox/ready': value } },
        })
      await setReady('false')
      await eventually('a1 gets nothing', async () => ((await answering()).has('a1') ? 'it does' : undefined))
      await setReady(null)
      await eventually('a1 gets its share', async () => ((await answering()).has('a1') ? undefined : 'it does not'))
    })

    test('the API server answers at its service, for pods', async () => {
      const [ip] = service('kubernetes').clusterIPs
      // Plain HTTP to a TLS port: that there is an answer at all is what matters.
      expect(await ask(places.client2, ip!, 443)).not.toMatch(/silent|ECONNREFUSED|UNREACH/)
    })
  },
})

function service(name: string): Service {
  const found = services.get(name)
  if (found === undefined) throw new Error(`Cannot find service ${name}`)
  return found
}

async function readCluster(sandbox: SandboxProcess): Promise<void> {
  const waiting = new Map<string, Service>()
  await eventually('load balancers and pods have addresses', async () => {
    const { items } = await sandbox.api.get('/api/v1/namespaces/default/services')
    for (const { metadata, spec, status } of items) {
      const ingress = (status.loadBalancer.ingress ?? []) as { ip: string }[]
      if (spec.type === 'LoadBalancer' && ingress.length < 2) return `${metadata.name} has ${ingress.length}`
      waiting.set(metadata.name, {
        clusterIPs: spec.clusterIPs,
        loadBalancerIPs: ingress.map(({ ip }) => ip),
        nodePort: spec.ports[0].nodePort ?? 0,
      })
    }
    return undefined
  })
  services = waiting
  const opened = await Promise.all(placeNames.map(async (name) => [name, await sandbox.place(name)] as const))
  places = Object.fromEntries(opened) as Record<PlaceName, NetworkNamespace>
}

/** Asks so many times, one after the other. Every time there must be a reply. */
async function times(count: number, question: () => Promise<Outcome>): Promise<Reply[]> {
  const replies: Reply[] = []
  for (let i = 0; i < count; i++) {
    const outcome = await question()
    if (typeof outcome === 'string') throw new Error(`Cannot get a reply, attempt ${i + 1} of ${count}: ${outcome}`)
    replies.push(outcome)
  }
  return replies
}
