// What a change costs, in numbers that are the same on every machine. A number that grows is a creep, and one that shrinks is to
// be written down here.

import { describe, expect, test } from 'vitest'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { nothingSent, silentProgrammers, type Sent } from '../../test/support/silent-kernel.ts'
import { ProblemLog } from '../model/problems.ts'
import { ServiceModel } from '../model/service-model.ts'

type ModeName = keyof typeof silentProgrammers

const node = nodeView()
const addressOf = (service: number, i: number) => `10.${64 + service}.${i >> 8}.${i & 255}`
const nameOf = (i: number) => `s${i}`

/** A cluster in which everything is programmed, and what the kernel is sent by each further change. */
class CountedCluster {
  readonly #model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  readonly #sent = nothingSent()
  readonly #programmer

  private constructor(mode: ModeName) {
    this.#programmer = silentProgrammers[mode](this.#sent)
  }

  static async open(mode: ModeName, services: number, endpoints: number): Promise<CountedCluster> {
    const cluster = new CountedCluster(mode)
    for (let i = 0; i < services; i++) {
      cluster.setService(i)
      cluster.setEndpoints(
        i,
        Array.from({ length: endpoints }, (_, j) => j + 1),
      )
    }
    cluster.#model.takeChanges()
    await cluster.#programmer.syncAll(node, cluster.#model.views())
    return cluster
  }

  /** With a cluster IP and a node port. */
  setService(i: number): void {
    const clusterIPs = [`10.96.${i >> 8}.${i & 255}`]
    this.#model.setService(service({ name: nameOf(i), type: 'NodePort', clusterIPs, ports: [{ nodePort: 30000 + i }] }))
  }

  /** With a load balancer that lets these in only, or with affinity. */
  setSpecialService(i: number, special: { ranges: readonly string[] } | 'affinity'): void {
    const clusterIPs = [`10.96.${i >> 8}.${i & 255}`]
    const wish =
      special === 'affinity'
        ? { sessionAffinity: 'ClientIP' as const, affinityTimeoutSeconds: 10_800 }
        : {
            type: 'LoadBalancer',
            ingress: [{ ip: `203.0.${i >> 8}.${i & 255}`, ipMode: 'VIP' }],
            loadBalancerSourceRanges: special.ranges,
          }
    this.#model.setService(service({ name: nameOf(i), clusterIPs, ...wish }))
  }

  async sync(): Promise<void> {
    await this.#programmer.sync(node, this.#model.takeChanges())
  }

  deleteService(i: number): void {
    this.#model.deleteService(`default/${nameOf(i)}`)
  }

  /** In slices of a hundred, as the cluster makes them. None of them is on this node. */
  setEndpoints(i: number, hosts: readonly number[]): void {
    let from = 0
    for (; from < hosts.length; from += 100) {
      const endpoints = hosts
        .slice(from, from + 100)
        .map((host) => ({ address: addressOf(i, host), nodeName: `node-${host}` }))
      this.#model.setSlice(slice(endpoints, { name: `${nameOf(i)}-${from}`, serviceName: nameOf(i) }))
    }
    this.#model.deleteSlice(`default/${nameOf(i)}-${from}`)
  }

  async costOf(change: (cluster: this) => void): Promise<Sent> {
    const before = { ...this.#sent }
    change(this)
    await this.#programmer.sync(node, this.#model.takeChanges())
    const { transactions, messages, elements, bytes } = this.#sent
    return {
      transactions: transactions - before.transactions,
      messages: messages - before.messages,
      elements: elements - before.elements,
      bytes: bytes - before.bytes,
    }
  }
}

const hosts = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

/** With so many endpoints in each service, in this order. */
const changes: Record<string, (cluster: CountedCluster, endpoints: number) => void> = {
  'an endpoint is replaced': (cluster, n) => cluster.setEndpoints(0, [...hosts(n).slice(1), 20_000]),
  'an endpoint comes': (cluster, n) => cluster.setEndpoints(0, [...hosts(n), 20_000]),
  'an endpoint goes': (cluster, n) => cluster.setEndpoints(0, hosts(n)),
  'the same is said again': (cluster, n) => cluster.setEndpoints(0, hosts(n)),
  'a service goes': (cluster) => cluster.deleteService(0),
  'a service comes': (cluster) => cluster.setService(0),
}

async function costsIn(mode: ModeName, services: number, endpoints: number): Promise<Record<string, string>> {
  const cluster = await CountedCluster.open(mode, services, endpoints)
  const costs: Record<string, string> = {}
  for (const [what, change] of Object.entries(changes)) {
    const cost = await cluster.costOf((of) => change(of, endpoints))
    costs[what] = (['transactions', 'messages', 'elements', 'bytes'] as const).map((unit) => cost[unit]).join(' ')
  }
  return costs
}

/** Transactions, messages, elements, bytes; see Sent. */
const costs: Record<Exclude<ModeName, 'userspace'>, Record<string, string>> = {
  nftables: {
    'an endpoint is replaced': '1 6 4 432',
    // The first service with 11 endpoints: a set and a rule for all that have as many.
    'an endpoint comes': '1 12 6 1804',
    'an endpoint goes': '1 10 10 820',
    'the same is said again': '0 0 0 0',
    'a service goes': '1 9 25 1092',
    'a service comes': '1 9 25 1412',
  },
  ipvs: {
    'an endpoint is replaced': '1 4 0 0',
    'an endpoint comes': '1 2 0 0',
    'an endpoint goes': '1 2 0 0',
    'the same is said again': '0 0 0 0',
    'a service goes': '2 8 4 372',
    'a service comes': '2 28 4 372',
  },
  iptables: {
    'an endpoint is replaced': '1 19 0 2112',
    'an endpoint comes': '1 18 0 2209',
    'an endpoint goes': '1 16 0 1857',
    'the same is said again': '0 0 0 0',
    'a service goes': '1 28 0 1021',
    'a service comes': '1 49 0 4745',
  },
}

describe.each(Object.keys(costs) as (keyof typeof costs)[])('%s', (mode) => {
  test('a change in a service with 10 endpoints costs this, whatever else there is', async () => {
    expect(await costsIn(mode, 3, 10)).toEqual(costs[mode])
    // With more than a thousand endpoints, iptables rules have no comments.
    expect(await costsIn(mode, 90, 10)).toEqual(costs[mode])
  })
})

test.each(['nftables', 'ipvs'] as const)('%s: in a service with 1000 endpoints, one costs as much', async (mode) => {
  const large = await costsIn(mode, 3, 1000)
  for (const what of Object.keys(changes).filter((each) => each.includes('endpoint'))) {
    const [transactions, messages, elements] = costs[mode][what]!.split(' ')
    expect(large[what]!.split(' ').slice(0, 3), what).toEqual([transactions, messages, elements])
  }
})

describe('nftables: source ranges and affinity', () => {
  const rangesOf = (i: number, other = 0) =>
    Array.from({ length: 20 }, (_, n) => `${n === 0 ? 90 + other : 20 + n}.${i >> 8}.${i & 255}.0/24`)

  /** One service of each kind that is changed, and so many more of each. */
  async function costsBeside(more: number): Promise<Record<string, string>> {
    const cluster = await CountedCluster.open('nftables', 3, 10)
    const set = (i: number, special: Parameters<CountedCluster['setSpecialService']>[1]) => {
      cluster.setSpecialService(i, special)
      cluster.setEndpoints(i, hosts(10))
    }
    set(3, { ranges: rangesOf(3) })
    set(4, 'affinity')
    for (let i = 5; i < 5 + more; i++) set(i, i % 2 === 0 ? 'affinity' : { ranges: rangesOf(i) })
    await cluster.sync()
    const costOf = async (change: () => void) => {
      const { transactions, messages, elements, bytes } = await cluster.costOf(change)
      return `${transactions} ${messages} ${elements} ${bytes}`
    }
    const replaced = [...hosts(10).slice(1), 20_000]
    return {
      'an endpoint of another service': await costOf(() => cluster.setEndpoints(0, replaced)),
      'an endpoint of one with ranges': await costOf(() => cluster.setEndpoints(3, replaced)),
      'an endpoint of one with affinity': await costOf(() => cluster.setEndpoints(4, replaced)),
      'a source range': await costOf(() => cluster.setSpecialService(3, { ranges: rangesOf(3, 1) })),
    }
  }

  test('a change costs this, however many services have them', async () => {
    const expected = {
      'an endpoint of another service': costs.nftables['an endpoint is replaced'],
      'an endpoint of one with ranges': '1 4 4 312',
      'an endpoint of one with affinity': '1 4 2 240',
      'a source range': '1 4 2 224',
    }
    expect(await costsBeside(0)).toEqual(expected)
    expect(await costsBeside(80)).toEqual(expected)
  })
})
