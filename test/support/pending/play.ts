// Plays a history with real packets, and says afterwards what should not have happened.

import { setTimeout as sleep } from 'node:timers/promises'
import { crowdIp, node } from '../addresses.ts'
import { aService, aSlice, type ApiService } from '../builders.ts'
import type { Rig } from '../rig.ts'
import { answerOf, beginUdp, type Caller, connectTcp, type Pending } from './clients.ts'
import { ENDPOINT_PORT, type Arrivals, type Endpoints } from './endpoints.ts'
import { eligible, type Fate, type History, type Listed, serving, type Step } from './history.ts'
import { patience } from '../patience.ts'

/** A client has so many connections at most. */
const MOST_OPEN = 4
/** How often each client asks when all is quiet. */
const ASKS = 3
/** With retries: two SYNs more, a second apart, and the probe of an endpoint. */
const ANSWER_MS = 4000

interface PlayedEndpoint {
  readonly address: string
  readonly nodeName: string
  readonly place: 'local' | 'remote'
  readonly close: () => void
}

export class Play {
  readonly history: History
  readonly #rig: Rig
  readonly #endpoints: Endpoints
  readonly #service: ApiService
  #played: PlayedEndpoint[] = []
  readonly #listed: Listed[]
  readonly #fates: Fate[]
  readonly #callers: Caller[] = []
  readonly #open: Pending[][]
  readonly #answers: Pending[][]
  readonly #problems: string[] = []

  constructor(rig: Rig, endpoints: Endpoints, history: History) {
    const { family, protocol, frontend, policy, affinity, retry } = history
    this.history = history
    this.#rig = rig
    this.#endpoints = endpoints
    this.#listed = history.endpoints.map(() => 'ready')
    this.#fates = history.endpoints.map(() => 'answers')
    this.#open = history.clients.map(() => [])
    this.#answers = history.clients.map(() => [])
    this.#service = aService({
      families: [family],
      type: frontend === 'node port' ? 'NodePort' : 'ClusterIP',
      ports: [{ protocol, targetPort: ENDPOINT_PORT }],
      spec: {
        [frontend === 'node port' ? 'externalTrafficPolicy' : 'internalTrafficPolicy']: policy,
        ...(affinity === undefined
          ? {}
          : { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: affinity } } }),
      },
    })
    if (retry) this.#service.metadata.annotations = { 'service.kube-proxy-ts.io/connect-retry': 'on' }
  }

  async begin(): Promise<void> {
    const { history } = this
    this.#played = await Promise.all(history.endpoints.map((place) => this.#endpoints.add(place, history)))
    for (const client of history.clients) this.#callers.push(this.#callerOf(client))
    this.#rig.cluster.put(this.#service)
    this.#put()
  }

  async steps(): Promise<void> {
    const crowd = this.#crowd()
    for (const step of this.history.steps) {
      await sleep(step.afterMs)
      await this.#step(step)
    }
    await crowd
  }

  /** All is quiet: each client asks a few times, one after the other. */
  async ask(): Promise<void> {
    // Of one address, one after the other: affinity does not know of a connection that is only beginning.
    const addressOf = (client: number) => this.#callers[client]!.ip ?? this.history.clients[client]
    const addresses = new Set(this.#callers.map((_, client) => addressOf(client)))
    await Promise.all(
      Array.from(addresses, async (address) => {
        for (const client of this.#callers.keys()) if (addressOf(client) === address) await this.#ask(client)
      }),
    )
  }

  /** Between the two accounts only the steps of ask() happened, and what had been pending went on. */
  judge(before: Arrivals, after: Arrivals): string[] {
    const { history } = this
    const reachable = new Set(history.clients.flatMap((client) => eligible(history, this.#listed, client)))
    const mayGoOn = new Set(history.protocol === 'UDP' ? [...reachable, ...serving(this.#listed)] : reachable)
    for (const [i, { address }] of this.#played.entries()) {
      if (mayGoOn.has(i)) continue
      const datagrams = (after.datagrams.get(address) ?? 0) - (before.datagrams.get(address) ?? 0)
      if (datagrams > 0)
        this.#problems.push(`${datagrams} datagrams reached endpoint ${i}, which is ${this.#listed[i]}`)
      for (const connection of after.connections) {
        if (!connection.endsWith(` . ${address}`) || before.connections.has(connection)) continue
        this.#problems.push(`a new connection (${connection}) reached endpoint ${i}, which is ${this.#listed[i]}`)
      }
    }
    return this.#problems
  }

  /** The addresses to which nothing may lead any more. */
  gone(): string[] {
    return this.#played.flatMap(({ address }, i) => (this.#listed[i] === 'gone' ? [address] : []))
  }

  end(): void {
    for (const pending of this.#answers.flat()) pending.hangUp()
    for (const { close } of this.#played) close()
    this.#rig.cluster.remove(this.#service, this.#slice())
  }

  #callerOf(client: History['clients'][number]): Caller {
    const { family, frontend } = this.history
    const { network } = this.#rig
    const { clusterIP, ports } = this.#service.spec
    const to =
      frontend === 'cluster IP'
        ? { address: clusterIP, port: ports[0]!.port }
        : { address: node.ip[family], port: ports[0]!.nodePort ?? 0 }
    const ip = client === 'external' ? crowdIp(family, 1 + (clients++ % 100)) : undefined
    return { netns: network.sources[client], ip, to }
  }

  /** They come within the first second, each once. */
  async #crowd(): Promise<void> {
    const { history } = this
    const { to } = this.#callerOf('external')
    const { external } = this.#rig.network
    for (let n = 0; n < history.crowd; n++) {
      const caller = { netns: external, ip: crowdIp(history.family, 101 + n), to }
      const pending = this.#connect(caller)
      setTimeout(() => pending.hangUp(), 100)
      await sleep(1000 / history.crowd)
    }
  }

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case 'fate':
        this.#fates[step.endpoint] = step.fate
        return this.#endpoints.fate(this.#played[step.endpoint]!, step.fate)
      case 'list':
        this.#listed[step.endpoint] = step.as
        return this.#put()
      case 'connect':
        if (this.#open[step.client]!.length < MOST_OPEN) this.#open[step.client]!.push(this.#connectAs(step.client))
        return
      case 'half-close':
        this.#open[step.client]!.at(-1)?.halfClose()
        return
      case 'hang up':
        this.#open[step.client]!.pop()?.hangUp()
    }
  }

  #connectAs(client: number): Pending {
    const pending = this.#connect(this.#callers[client]!)
    this.#answers[client]!.push(pending)
    return pending
  }

  #connect(caller: Caller): Pending {
    return this.history.protocol === 'TCP' ? connectTcp(caller) : beginUdp(caller)
  }

  async #ask(client: number): Promise<void> {
    const { history } = this
    const may = eligible(history, this.#listed, history.clients[client]!)
    const addresses = may.map((i) => this.#played[i]!.address)
    const dead = may.filter((i) => this.#fates[i] !== 'answers').length
    const mustAnswer = may.length > 0 && (history.retry ? dead <= may.length >> 1 : dead === 0)
    const found = new Set<string>(this.#firmAnswer(client))
    const who = `client ${client} (${history.clients[client]})`
    for (let n = 0; n < ASKS; n++) {
      const pending = this.#connectAs(client)
      const by = await answerOf(pending, mustAnswer ? ANSWER_MS * patience() : 300)
      pending.hangUp()
      // With retries, the first ones may be those that find out, and have used up their attempts by then.
      const isFindingOut = history.retry && dead > 0 && n < ASKS - 1
      if (by === undefined && (!mustAnswer || isFindingOut)) continue
      if (by === undefined) {
        this.#problems.push(`${who} got no answer (${pending.failed ?? 'silence'})`)
        break
      }
      if (!addresses.includes(by)) {
        const i = this.#played.findIndex(({ address }) => address === by)
        this.#problems.push(
          `${who} was answered by endpoint ${i}, which is ${this.#listed[i]}, of ${may.join() || 'none'}`,
        )
      }
      found.add(by)
    }
    const isSticky = history.affinity === 10800 && !(history.retry && dead > 0)
    if (isSticky && found.size > 1) {
      const which = [...found].map((by) => this.#played.findIndex(({ address }) => address === by))
      this.#problems.push(`${who} did not stay where it was: endpoints ${which.join()}`)
    }
  }

  /** Where a client was answered by an endpoint that nothing ever happened to: affinity keeps it there. */
  #firmAnswer(client: number): string[] {
    const touched = new Set(this.history.steps.flatMap((step) => ('endpoint' in step ? [step.endpoint] : [])))
    const answers = this.#answers[client]!.flatMap(({ answeredBy }) => answeredBy ?? [])
    const firm = answers.filter((by) => !touched.has(this.#played.findIndex(({ address }) => address === by)))
    return firm.slice(0, 1)
  }

  #put(): void {
    this.#rig.cluster.put(this.#slice())
  }

  #slice() {
    const { family } = this.history
    const endpoints = this.#played.flatMap(({ address, nodeName }, i) => {
      const as = this.#listed[i]!
      if (as === 'gone') return []
      const terminating = as === 'terminating'
      return [{ address, nodeName, ready: as === 'ready', serving: as === 'ready' || terminating, terminating }]
    })
    return aSlice(this.#service, endpoints, { family, name: `${this.#service.metadata.name}-slice` })
  }
}

let clients = 0
