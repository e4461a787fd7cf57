// What may change, chosen at random. Each change says what it did, and waits until packets show it on every node.

import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import { patience } from '../support/patience.ts'
import type { ApiJson } from '../sandbox/support/api-access.ts'
import {
  deployments,
  pods,
  policyService,
  services,
  steadyServices,
  stickyService,
  type Cluster,
  type ReadyEndpoint,
  type Vantage,
} from './cluster.ts'
import { converge, CONVERGE_WITHIN_MS, type Probe } from './convergence.ts'
import { answeredBy, answers, isSilent, seesClient, stays, wanders } from './judges.ts'
import type { Ledger, Loss } from './ledger.ts'
import { aService } from './objects.ts'
import type { SoakMode } from './options.ts'
import type { Random } from './random.ts'

const SETTLE_MS = { withinMs: 20_000, everyMs: 20 }

/** Pods drain for two seconds; then the nodes have to hear of it. */
const DRAINED_MS = 2000 + 2000 * patience()

/** After the rules, the connection tracker forgets the flows to a pod that is gone. */
const FORGOTTEN_MS = 500 * patience()

/** A change that can be made now; no two of one service at the same time. */
export interface Change {
  readonly name: string
  readonly service: string
  /** Makes it, and gives the times from the API's answer to the packet that showed it: one for each node. */
  readonly make: () => Promise<number[]>
}

interface EndpointChange {
  /** Whether pods that are no longer ready end, or serve on and come back. */
  readonly pods: 'go' | 'stay'
  /** A pod that must not be among the endpoints any more. */
  readonly gone?: string
}

export interface ChangesOptions {
  readonly mode: SoakMode
  /** Services that may be deleted. */
  readonly churn: readonly string[]
}

export class Changes {
  readonly #cluster: Cluster
  readonly #ledger: Ledger
  readonly #random: Random
  readonly #mode: SoakMode
  readonly #churn: string[]
  #next = 0
  readonly #state = new Map<string, string>()

  constructor(cluster: Cluster, ledger: Ledger, random: Random, { mode, churn }: ChangesOptions) {
    this.#cluster = cluster
    this.#ledger = ledger
    this.#random = random
    this.#mode = mode
    this.#churn = [...churn]
  }

  /** Some changes of different services, in random order. */
  pick(count: number): Change[] {
    const factories: (() => Change | undefined)[] = [
      ...steadyServices.map((name) => () => this.#steadyChange(name)),
      () => this.#create(),
      () => this.#delete(),
      () => this.#moveNodePort(),
      () => this.#policy(),
      () => this.#affinity(),
    ]
    return this.#random
      .shuffle(factories)
      .slice(0, count)
      .flatMap((factory) => factory() ?? [])
  }

  #steadyChange(name: string): Change {
    const kinds = [
      () => this.#scale(name),
      () => this.#scale(name),
      () => this.#unready(name),
      () => this.#killPod(name),
      () => this.#deletePod(name),
    ]
    return this.#random.pick(kinds)()
  }

  #scale(service: string): Change {
    const replicas = this.#random.between(2, 7)
    return {
      name: `scale to ${replicas}`,
      service,
      make: () =>
        this.#changeEndpoints(service, replicas, () =>
          this.#cluster.sandbox.api.patch(`${deployments}/${service}`, { spec: { replicas } }),
        ),
    }
  }

  /** A pod says that it is not ready, and later that it is. It serves on: no client may notice. */
  #unready(service: string): Change {
    return {
      name: 'unready',
      service,
      make: async () => {
        const victim = this.#random.pick(await this.#cluster.endpoints(service))
        const count = (await this.#cluster.endpoints(service)).length
        const set = (ready: string | null) => this.#annotate(victim.pod, { 'sandbox/ready': ready })
        const gone = await this.#whileIpvsLetsGo(
          ({ pod }) => pod === victim.pod,
          () => this.#changeEndpoints(service, count - 1, () => set('false'), { pods: 'stay' }),
        )
        return [...gone, ...(await this.#changeEndpoints(service, count, () => set(null), { pods: 'stay' }))]
      },
    }
  }

  /** IPVS itself drops datagrams of a flow for some milliseconds when the flow's destination is removed. */
  async #whileIpvsLetsGo<T>(covers: (loss: Loss) => boolean, change: () => Promise<T>): Promise<T> {
    if (this.#mode !== 'ipvs') return change()
    const moment = this.#ledger.open('IPVS let go of its pod', (loss) => loss.kind === 'udp' && covers(loss))
    const result = await change()
    this.#ledger.close(moment)
    return result
  }

  /** A pod dies without a word: its connections end, and until all nodes know, new ones to it are refused. */
  #killPod(service: string): Change {
    return {
      name: 'pod dies',
      service,
      make: async () => {
        const victim = this.#random.pick(await this.#cluster.endpoints(service))
        const count = (await this.#cluster.endpoints(service)).length
        const isOfService = (loss: Loss) => loss.service === service
        // One that no pod has answered yet may have been on its way to it.
        const unanswered = this.#ledger.open(
          'its pod died',
          (loss) => isOfService(loss) && loss.pod === undefined && isRefusal(loss.why),
        )
        // UDP flows leave the tracker a little after the rules have changed.
        let knownMs = Infinity
        this.#ledger.open(
          'its pod died',
          (loss) => isOfService(loss) && loss.pod === victim.pod && loss.sinceMs <= knownMs + FORGOTTEN_MS,
        )
        const set = (fail: string | null) => this.#annotate(victim.pod, { 'sandbox/fail': fail })
        const gone = await this.#changeEndpoints(service, count - 1, () => set('die'), { pods: 'stay' })
        this.#ledger.close(unanswered)
        knownMs = performance.now()
        return [...gone, ...(await this.#changeEndpoints(service, count, () => set(null), { pods: 'stay' }))]
      },
    }
  }

  /** A pod is deleted and replaced. It drains: only connections that outlive it are lost with it. */
  #deletePod(service: string): Change {
    return {
      name: 'delete pod',
      service,
      make: async () => {
        const before = await this.#cluster.endpoints(service)
        const victim = this.#random.pick(before)
        return this.#changeEndpoints(
          service,
          before.length,
          () => this.#cluster.sandbox.api.delete(`${pods}/${victim.pod}`),
          { pods: 'go', gone: victim.pod },
        )
      },
    }
  }

  async #changeEndpoints(
    service: string,
    count: number,
    send: () => Promise<unknown>,
    { pods: fate, gone = '' }: EndpointChange = { pods: 'go' },
  ): Promise<number[]> {
    const before = await this.#cluster.endpoints(service)
    const removed = fate === 'go' ? this.#excuseRemoved() : undefined
    await send()
    const sinceMs = performance.now()
    let now = before
    await eventually(
      `${service} has ${count} endpoints`,
      async () => {
        now = await this.#cluster.endpoints(service)
        for (const pod of removed?.note(before, now) ?? []) this.#ledger.note(`${pod} is no longer ready`)
        return now.length === count && !now.some(({ pod }) => pod === gone) ? undefined : `${now.length}`
      },
      SETTLE_MS,
    )
    const object = await this.#cluster.service(service)
    const to = { host: object.spec.clusterIP as string, port: 80 }
    const judge = answeredBy(
      now.map(({ pod }) => pod),
      before.map(({ pod }) => pod),
    )
    return this.#measure(
      sinceMs,
      this.#cluster.nodes.map((from) => ({ from, to, judge })),
    )
  }

  /**
   * Connections to pods that are taken away end with them, after they have drained. UDP flows stay as long as the pod serves,
   * and what is sent to it between its end and the nodes' knowledge of that is lost.
   */
  #excuseRemoved(): { note(before: readonly ReadyEndpoint[], now: readonly ReadyEndpoint[]): readonly string[] } {
    const removed = new Map<string, number>()
    this.#ledger.open('its pod was removed', ({ kind, pod, sinceMs }) => {
      const noticedMs = removed.get(pod ?? '')
      if (noticedMs === undefined) return false
      return kind === 'long tcp' || (kind === 'udp' && sinceMs <= noticedMs + DRAINED_MS)
    })
    return {
      note(before, now) {
        const isReady = (pod: string) => now.some((one) => one.pod === pod)
        for (const { pod } of before) if (isReady(pod)) removed.delete(pod)
        const fresh = before.map(({ pod }) => pod).filter((pod) => !isReady(pod) && !removed.has(pod))
        for (const pod of fresh) removed.set(pod, performance.now())
        return fresh
      },
    }
  }

  #create(): Change {
    const name = `churn-new-${this.#next++}`
    const type = this.#random.pick(['ClusterIP', 'NodePort', 'LoadBalancer'])
    return {
      name: `create ${type}`,
      service: name,
      make: async () => {
        const made = await this.#cluster.sandbox.api.create(services, aService(name, 'fixed', type))
        const sinceMs = performance.now()
        this.#churn.push(name)
        return this.#measure(sinceMs, this.#probesOf(made, answers))
      },
    }
  }

  #delete(): Change | undefined {
    if (this.#churn.length === 0) return undefined
    const [name] = this.#churn.splice(this.#random.between(0, this.#churn.length - 1), 1)
    return {
      name: 'delete service',
      service: name!,
      make: async () => {
        const old = await this.#cluster.service(name!)
        await this.#cluster.sandbox.api.delete(`${services}/${name}`)
        const sinceMs = performance.now()
        return this.#measure(sinceMs, this.#probesOf(old, isSilent))
      },
    }
  }

  #moveNodePort(): Change | undefined {
    const name = this.#churn.find((one) => /^churn-\d+$/.test(one) && Number(one.slice(6)) % 2 === 0)
    if (name === undefined) return undefined
    this.#churn.splice(this.#churn.indexOf(name), 1)
    return {
      name: 'move node port',
      service: name,
      make: async () => {
        const old = await this.#cluster.service(name)
        const ports = (old.spec.ports as ApiJson[]).map((port) => ({ ...port, nodePort: undefined }))
        const nodePorts = { ...old.spec, ports }
        const made = await this.#cluster.sandbox.api.put(`${services}/${name}`, { ...old, spec: nodePorts })
        const sinceMs = performance.now()
        const [before, after] = [nodePortOf(old), nodePortOf(made)]
        this.#churn.push(name)
        if (before === after || before === undefined || after === undefined) return []
        const probes = this.#cluster.nodes.flatMap((from): Probe[] => {
          const host = this.#cluster.addressOf(from.name)
          return [
            { from, to: { host, port: after }, judge: answers },
            { from, to: { host, port: before }, judge: isSilent },
          ]
        })
        return this.#measure(sinceMs, probes)
      },
    }
  }

  /** Both policies between Cluster and Local, for the service that has a pod on each node. */
  #policy(): Change {
    const field = this.#random.pick(['internalTrafficPolicy', 'externalTrafficPolicy'])
    const policy = this.#flip(field, 'Local', 'Cluster')
    // Local takes the pods of other nodes from the lists of a node.
    const isOfPodThatLeaves = ({ service }: Loss) => service === policyService && policy === 'Local'
    return {
      name: `${field} ${policy}`,
      service: policyService,
      make: () => this.#whileIpvsLetsGo(isOfPodThatLeaves, () => this.#changePolicy(field, policy)),
    }
  }

  async #changePolicy(field: string, policy: string): Promise<number[]> {
    const object = await this.#cluster.sandbox.api.patch(`${services}/${policyService}`, {
      spec: { [field]: policy },
    })
    const sinceMs = performance.now()
    const ready = await this.#cluster.endpoints(policyService)
    const podsOf = (node: string) =>
      ready.filter((one) => policy === 'Cluster' || one.node === node).map(({ pod }) => pod)
    const all = ready.map(({ pod }) => pod)
    const port = object.spec.ports[0]
    const machine = this.#cluster.vantages.at(-1)!
    const probes = this.#cluster.nodes.map((node): Probe => {
      if (field === 'internalTrafficPolicy') {
        const before =
          policy === 'Local' ? all : all.filter((pod) => ready.some((one) => one.pod === pod && one.node === node.name))
        return {
          from: node,
          to: { host: object.spec.clusterIP, port: 80 },
          judge: answeredBy(podsOf(node.name), before),
        }
      }
      const to = { host: this.#cluster.addressOf(node.name), port: port.nodePort }
      return {
        from: machine,
        to,
        judge: seesClient(this.#cluster.machineAddress, policy === 'Local' ? 'same' : 'other', podsOf(node.name)),
      }
    })
    return this.#measure(sinceMs, probes)
  }

  #affinity(): Change {
    const affinity = this.#flip('sessionAffinity', 'ClientIP', 'None')
    return {
      name: `affinity ${affinity}`,
      service: stickyService,
      make: async () => {
        // What the object says of the old affinity would contradict the new one.
        const spec = { sessionAffinity: affinity, sessionAffinityConfig: null }
        const object = await this.#cluster.sandbox.api.patch(`${services}/${stickyService}`, { spec })
        const sinceMs = performance.now()
        const to = { host: object.spec.clusterIP as string, port: 80 }
        const judge = affinity === 'ClientIP' ? stays() : wanders
        return this.#measure(
          sinceMs,
          this.#cluster.nodes.map((from) => ({ from, to, judge })),
        )
      },
    }
  }

  /** Every service as it was at the start, as far as the number of kernel objects goes. */
  async rest(replicas: number, churn: readonly string[]): Promise<void> {
    const { api } = this.#cluster.sandbox
    this.#state.clear()
    const policies = { internalTrafficPolicy: 'Cluster', externalTrafficPolicy: 'Cluster' }
    await api.patch(`${services}/${policyService}`, { spec: policies })
    await api.patch(`${services}/${stickyService}`, { spec: { sessionAffinity: 'None', sessionAffinityConfig: null } })
    for (const name of steadyServices) {
      await this.#changeEndpoints(name, replicas, () => api.patch(`${deployments}/${name}`, { spec: { replicas } }))
    }
    for (const name of this.#churn.splice(0)) await api.delete(`${services}/${name}`)
    for (const [i, name] of churn.entries()) {
      await api.create(services, aService(name, 'fixed', i % 2 === 0 ? 'NodePort' : 'ClusterIP'))
      this.#churn.push(name)
    }
    // Pods drain for two seconds, and what has gone from the plan may leave the kernel a little later.
    await sleep(5000)
  }

  #flip(key: string, first: string, second: string): string {
    const next = this.#state.get(key) === first ? second : first
    this.#state.set(key, next)
    return next
  }

  #annotate(pod: string, annotations: Readonly<Record<string, string | null>>): Promise<unknown> {
    return this.#cluster.sandbox.api.patch(`${pods}/${pod}`, { metadata: { annotations } })
  }

  /** The cluster IP from every node, and the node port of every node where there is one. */
  #probesOf(service: ApiJson, judge: Probe['judge']): Probe[] {
    const nodePort = nodePortOf(service)
    return this.#cluster.nodes.flatMap((from: Vantage): Probe[] => [
      { from, to: { host: service.spec.clusterIP, port: 80 }, judge },
      ...(nodePort === undefined
        ? []
        : [{ from, to: { host: this.#cluster.addressOf(from.name), port: nodePort }, judge }]),
    ])
  }

  async #measure(sinceMs: number, probes: readonly Probe[]): Promise<number[]> {
    const shown = await Promise.all(probes.map((probe) => converge(probe, CONVERGE_WITHIN_MS)))
    return shown.map((ms) => Math.max(0, ms - sinceMs))
  }
}

/** What a host says for a pod that is no more. */
function isRefusal(why: string): boolean {
  return why === 'ECONNREFUSED' || why === 'ECONNRESET' || why === 'closed'
}

function nodePortOf(service: ApiJson): number | undefined {
  return service.spec.ports[0].nodePort
}
