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
    'a service goes': '1 10 26 1184',
    'a service comes': '1 10 26 1504',
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
