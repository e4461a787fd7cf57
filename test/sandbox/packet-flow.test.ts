// Who reaches whom through services, with the sandbox's own nodes and pods: what the packet-flow table promises
// (test/conformance), seen end to end, in every mode and in both IP families.

import { expect } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { ask, askUdp, type Outcome, type Reply } from './support/ask.ts'
import { describeModes } from './support/modes.ts'
import { webPods, webServices } from './support/objects.ts'
import type { NetworkNamespace } from '../../src/sandbox/netns/network-namespace.ts'
import type { SandboxProcess } from './support/sandbox-process.ts'

const placeNames = ['client1', 'client2', 'a1', 'node-1', 'node-2', 'machine'] as const
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
const borrowedIps = ['172.30.0.250', 'fd00:30:0:1::fa']

/** Of the sandbox that is being tested. */
let places: Readonly<Record<PlaceName, NetworkNamespace>>
let services: ReadonlyMap<string, Service>
let podIps: ReadonlyMap<string, readonly string[]>

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

    test('a pod reaches a cluster IP, and is seen with its own address', async () => {
      for (const [i, ip] of service('plain').clusterIPs.entries()) {
        for (const client of ['client1', 'client2'] as const) {
          const address = exactly(podIps.get(client)![i]!)
          for (const reply of await times(8, () => ask(places[client], ip, 80))) expect(reply.client).toMatch(address)
        }
      }
    })

    test('a node reaches a cluster IP', async () => {
      for (const ip of service('plain').clusterIPs) {
        for (const node of ['node-1', 'node-2'] as const) {
          const replies = await times(8, () => ask(places[node], ip, 80))
          for (const reply of replies) expect(reply.client).toMatch(addressesOf[node])
        }
      }
    })

    test('the machine reaches a cluster IP through a node, and is seen as that node', async () => {
      for (const ip of service('plain').clusterIPs) {
        const replies = await times(8, () => ask(places.machine, ip, 80))
        for (const reply of replies) expect(reply.client).toMatch(addressesOf['node-1'])
      }
    })

    test('a pod reaches itself through its service', async () => {
      for (const ip of service('self').clusterIPs) {
        const [reply] = await times(1, () => ask(places.a1, ip, 80))
        expect(reply).toMatchObject({ pod: 'a1', client: expect.stringMatching(addressesOf['node-1']) as string })
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

    test('an external IP answers', async () => {
      for (const ip of borrowedIps) {
        for (const name of ['machine', 'client1', 'node-2'] as const) await times(4, () => ask(places[name], ip, 80))
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

    test('internalTrafficPolicy Local answers only where the pods are', async () => {
      const { clusterIPs } = service('inner-local')
      for (const ip of clusterIPs)
        expect(await times(2, () => ask(places.client2, ip, 80))).toMatchObject([{ pod: 'b1' }, { pod: 'b1' }])
      expect(await Promise.all(clusterIPs.map((ip) => ask(places.client1, ip, 80)))).toEqual(['silent', 'silent'])
    })

    test('a service without pods refuses', async () => {
      const { clusterIPs, loadBalancerIPs, nodePort } = service('nobody')
      // What a node itself gets from a load balancer's address is promised by no rule.
      const attempts = [
        ...clusterIPs.flatMap((ip) => (['client1', 'node-2', 'machine'] as const).map((name) => [name, ip] as const)),
        ...loadBalancerIPs.flatMap((ip) => (['client1', 'machine'] as const).map((name) => [name, ip] as const)),
      ]
      for (const [name, ip] of attempts) {
        expect(await ask(places[name], ip, 80), `${name} to ${ip}`).toBe('ECONNREFUSED')
      }
      expect(await ask(places.machine, nodeIps['node-1'][0], nodePort)).toBe('ECONNREFUSED')
    })

    test('a client with affinity stays with its pod', async () => {
      for (const ip of service('sticky').clusterIPs) {
        const replies = await times(12, () => ask(places.client1, ip, 80))
        expect(new Set(replies.map(({ pod }) => pod)).size).toBe(1)
      }
    })

    test('loadBalancerSourceRanges keep everybody else out', async () => {
      const { loadBalancerIPs, clusterIPs } = service('chosen-few')
      expect(await Promise.all(loadBalancerIPs.map((ip) => ask(places.machine, ip, 80)))).toEqual(['silent', 'silent'])
      await times(1, () => ask(places.client1, clusterIPs[0]!, 80))
    })

    test('datagrams reach every pod, and come back', async () => {
      for (const ip of service('datagrams').clusterIPs) {
        const replies = await times(40, () => askUdp(places.client1, ip, 80))
        expect(new Set(replies.map(({ pod }) => pod))).toEqual(new Set(['a1', 'a2', 'b1']))
      }
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
  const { items } = await sandbox.api.get('/api/v1/namespaces/default/pods')
  podIps = new Map(
    (items as { metadata: { name: string }; status: { podIPs: { ip: string }[] } }[]).map(({ metadata, status }) => [
      metadata.name,
      status.podIPs.map(({ ip }) => ip),
    ]),
  )
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

function exactly(text: string): RegExp {
  return new RegExp(`^${text.replaceAll('.', '\\.')}$`)
}
