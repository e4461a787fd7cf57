// What the page shows of a sandbox, and what it can do there.

import type { Flow } from '../../../../src/conntrack/driver.ts'
import { watchFlows } from '../../../../src/conntrack/watch.ts'
import type { Known } from '../../../../src/diagnose/explain/known.ts'
import type { JsonObject } from '../../../../src/lib/json.ts'
import { KernelError, messageOf } from '../../../../src/lib/errors.ts'
import { modeNames } from '../../../../src/modes/all.ts'
import type { Pod } from '../apiserver/objects/pod.ts'
import { pods, services } from '../apiserver/resources/table.ts'
import type { NetworkNamespace } from '../netns/network-namespace.ts'
import type { Sandbox } from '../sandbox.ts'
import { commandFor, dialCommand, doctorCommand, explainCommand } from '../../../../src/ui/commands.ts'
import type { InspectorContext, KnownCluster } from '../../../../src/ui/node-inspector.ts'
import { planSnapshot, type ObservedNode } from '../../../../src/ui/plan-snapshot.ts'
import type {
  ActAnswer,
  Action,
  DoctorAnswer,
  DoctorRequest,
  ExplainAnswer,
  ExplainQuestion,
  Planted,
  ServiceDetail,
  ServiceQuery,
  Snapshot,
  Terminal,
  TrafficReport,
} from '../../../../src/ui/protocol.ts'
import { ProxyWatch } from '../../../../src/ui/proxy-watch.ts'
import { ClientLoad } from './client-load.ts'
import { ConnectionOutcomes, type FlowMeaning } from './connection-outcomes.ts'
import { FlowMeanings } from './flow-meanings.ts'
import { plantFailure, type Plant } from './planted-failures.ts'
import { RemoteInspector } from './remote-inspector.ts'
import { SandboxActions } from './sandbox-actions.ts'
import { ObjectDescriptions, shownKinds, type SandboxObjects } from './sandbox-objects.ts'
import { AskedWrongly, type UiListener, type UiSource } from '../../../../src/ui/source.ts'

/** A page is not kept waiting for a proxy that does not answer. */
const PATIENCE_MS = 500

export class SandboxSource implements UiSource {
  readonly #sandbox: Sandbox
  readonly #terminal: Terminal
  readonly #actions: SandboxActions
  readonly #objects: ObjectDescriptions
  readonly #watches: readonly ProxyWatch[]
  readonly #inspectors = new Map<string, RemoteInspector>()
  #listener: UiListener | undefined
  #stopListening: (() => void)[] = []
  #meanings: FlowMeanings | undefined
  #planted: Plant | undefined
  readonly #outcomes = new ConnectionOutcomes((flow) => this.#meaningOf(flow))
  readonly #load: ClientLoad

  constructor(sandbox: Sandbox, program: string) {
    const { folder, network } = sandbox
    this.#sandbox = sandbox
    this.#actions = new SandboxActions(sandbox)
    this.#objects = new ObjectDescriptions(sandbox.registry)
    this.#terminal = {
      program,
      sandbox: folder.name === 'sandbox' ? null : folder.name,
      kubeconfig: folder.kubeconfig,
    }
    this.#load = new ClientLoad({
      sandbox,
      objects: this.#objects,
      outcomes: this.#outcomes,
      onReport: (report) => this.#listener?.loaded(report),
    })
    this.#watches = network.nodes.map(({ plan }) => new ProxyWatch(plan.name, sandbox.proxySocket(plan.name)))
  }

  async snapshot(): Promise<Snapshot> {
    const asked = Promise.all(this.#watches.map((watch) => watch.refresh()))
    await Promise.race([asked, patience()])
    return this.#plan(this.#objects.describe())
  }

  begin(listener: UiListener): void {
    const { registry } = this.#sandbox
    this.#listener = listener
    for (const watch of this.#watches) watch.begin(listener)
    const changed = () => {
      this.#meanings = undefined
      this.#load.check()
      listener.changed()
    }
    this.#stopListening = [
      ...shownKinds.map((kind) => registry.collection(kind as (typeof shownKinds)[0]).listen(changed)),
      ...this.#sandbox.network.nodes.flatMap(({ netns }) => this.#watchFlows(netns)),
    ]
    this.#outcomes.take()
    this.#load.resume()
  }

  /** Without them, failures are shown at the service alone. */
  #watchFlows(netns: NetworkNamespace): (() => void)[] {
    try {
      const watch = netns.enter(() => watchFlows((event) => this.#outcomes.note(event)))
      return [() => watch.close()]
    } catch (error) {
      if (error instanceof KernelError) return []
      throw error
    }
  }

  end(): void {
    this.#listener = undefined
    for (const stop of this.#stopListening.splice(0)) stop()
    for (const watch of this.#watches) watch.end()
    this.#load.pause()
  }

  async traffic(): Promise<TrafficReport> {
    return {
      nodes: await Promise.all(this.#watches.map((watch) => watch.traffic())),
      outcomes: this.#outcomes.take(),
    }
  }

  service({ namespace, name, node }: ServiceQuery): Promise<ServiceDetail> {
    const on = node === '' ? this.#firstNode : node
    return this.#inspector(on).look({ kind: 'service', namespace, name, context: this.#context(on) })
  }

  async explain(question: ExplainQuestion): Promise<ExplainAnswer> {
    const { from, to, send } = question
    const { nodes, machine, plan } = this.#sandbox.network
    const pod = this.#pods.find(({ namespace, name }) => from === `${namespace}/${name}` || from === name)
    const fromNode = nodes.find(({ plan: { name } }) => name === from)?.plan.name
    const node = fromNode ?? (question.node || pod?.nodeName) ?? this.#firstNode
    const family = question.family ?? (/^\[|^[^/]*:.*:/.test(to) ? 6 : 4)
    const isOutside = from === 'outside' && send === true
    const outside = plan.machine.find((ip) => ip.includes(':') === (family === 6))
    const asked: ExplainQuestion = {
      ...question,
      node,
      from: fromNode === undefined ? (isOutside ? (outside ?? from) : from) : 'node',
    }
    const place = pod === undefined || pod.hostNetwork ? undefined : this.#placeOf(from)
    if (send === true && place === undefined && !isOutside && asked.from !== 'node' && pod === undefined) {
      throw new AskedWrongly(`Cannot send from ${JSON.stringify(from)}: say a pod, a node or outside`)
    }
    const clientNetns = place ?? (isOutside ? machine.netns.path : undefined)
    const { explanation, svg } = await this.#inspector(node).look({
      kind: 'explain',
      question: asked,
      context: this.#context(node),
      clientNetns,
    })
    const { question: said } = explanation
    const typed = { ...asked, from: pod === undefined ? asked.from : said.source, send: send === true && !clientNetns }
    const dialled = `${said.destination.includes(':') ? `[${said.destination}]` : said.destination}:${said.port}`
    const context = { terminal: this.#terminal }
    const lines = [
      explainCommand(typed, context),
      ...(send === true && clientNetns !== undefined
        ? [dialCommand(isOutside ? 'machine' : from, dialled, context)]
        : []),
    ]
    return { node, explanation, svg, command: lines.join('\n') }
  }

  async doctor({ node, service, from = 'node' }: DoctorRequest): Promise<DoctorAnswer> {
    const pod = this.#pods.find(({ namespace, name }) => from === `${namespace}/${name}`)
    const on = node || pod?.nodeName || this.#firstNode
    const found = await this.#inspector(on).look({
      kind: 'doctor',
      service,
      from,
      context: this.#context(on),
      cluster: this.#cluster(service),
    })
    const asked = { node: on, service, ...(from === 'node' ? {} : { from }) }
    return { node: on, ...found, command: doctorCommand(asked, { terminal: this.#terminal }) }
  }

  /** As kubectl shows it. Pods of other namespaces are none of the service's. */
  #cluster(service: string | undefined): KnownCluster {
    const { registry } = this.#sandbox
    const namespace = service?.split('/')[0]
    const isAsked = ({ metadata }: Pod) => namespace === undefined || metadata.namespace === namespace
    return {
      server: this.#sandbox.apiUrl,
      services: this.#objects.describe().services,
      raw: {
        services: registry
          .collection(services)
          .list()
          .map(({ object }) => object as object as JsonObject),
        pods: registry
          .collection(pods)
          .list()
          .filter(({ object }) => isAsked(object))
          .map(({ object }) => object as object as JsonObject),
      },
    }
  }

  async act(action: Action): Promise<ActAnswer> {
    const command = commandFor(action, this.#plan(this.#objects.describe()))
    const begunMs = Date.now()
    try {
      const did =
        action.action === 'load'
          ? this.#load.begin(action)
          : action.action === 'load-end'
            ? this.#load.end()
            : action.action === 'plant'
              ? await this.#plant(action.failure)
              : await this.#actions.do(action)
      this.#listener?.changed()
      return { ok: true, did, command, begunMs }
    } catch (error) {
      return { ok: false, error: messageOf(error), command }
    }
  }

  close(): void {
    this.end()
    for (const inspector of this.#inspectors.values()) inspector.close()
    this.#inspectors.clear()
  }

  #plan(objects: SandboxObjects): Snapshot {
    const { folder, network, apiUrl } = this.#sandbox
    return planSnapshot({
      kind: 'sandbox',
      name: folder.name,
      can: { act: true, send: 'anywhere', modes: modeNames },
      terminal: this.#terminal,
      apiServer: { url: apiUrl, state: this.#sandbox.isApiServerAway ? 'away' : 'there' },
      outside: { name: 'machine', addresses: network.plan.machine },
      load: this.#load.request ?? null,
      nodes: this.#nodes(),
      ...objects,
    })
  }

  #nodes(): ObservedNode[] {
    return this.#sandbox.network.nodes.map(({ plan: { name, addresses, podRanges } }, i) => {
      const watch = this.#watches[i]!
      const proxy = this.#sandbox.proxyOf(name)
      const isRunning = proxy?.pid !== undefined
      return {
        name,
        addresses,
        podRanges,
        zone: watch.state?.node?.zone ?? null,
        asked: this.#sandbox.modeOf(name),
        pid: proxy?.pid ?? null,
        restarts: proxy?.restarts ?? 0,
        state: watch.state,
        known: watch.known,
        error: isRunning ? watch.error : 'its process ended and is about to be started again',
      }
    })
  }

  get #firstNode(): string {
    return this.#sandbox.network.nodes[0]!.plan.name
  }

  #inspector(node: string): RemoteInspector {
    const found = this.#sandbox.network.nodes.find(({ plan }) => plan.name === node)
    if (found === undefined) throw new AskedWrongly(`There is no node ${JSON.stringify(node)}`)
    let inspector = this.#inspectors.get(node)
    if (inspector === undefined)
      this.#inspectors.set(node, (inspector = new RemoteInspector((work) => found.netns.enter(work))))
    return inspector
  }

  #context(node: string): InspectorContext {
    const { nodes } = this.#sandbox.network
    return {
      socket: this.#sandbox.proxySocket(node),
      pods: this.#pods,
      otherNodes: nodes
        .filter(({ plan }) => plan.name !== node)
        .map(({ plan: { name, addresses } }) => ({ name, addresses })),
    }
  }

  get #pods(): (Known['pods'][number] & { readonly hostNetwork: boolean })[] {
    return this.#objects.describe().pods.map(({ namespace, name, ips, node, hostNetwork }) => ({
      namespace,
      name,
      ips,
      nodeName: node,
      hostNetwork,
    }))
  }

  #placeOf(pod: string): string | undefined {
    return this.#sandbox.pods.find(pod)[0]?.netns
  }

  async #plant(failure: Planted): Promise<string> {
    await this.#planted?.mend()
    const wasPlanted = this.#planted !== undefined
    this.#planted = undefined
    const planted = failure === 'none' ? undefined : await plantFailure(this.#sandbox, failure)
    this.#planted = planted
    if (planted !== undefined) this.#load.begin(planted.load)
    else if (wasPlanted) this.#load.reset()
    return planted === undefined ? 'All is mended' : 'Something is broken'
  }

  #meaningOf(flow: Flow): FlowMeaning | undefined {
    this.#meanings ??= new FlowMeanings(this.#plan(this.#objects.describe()))
    return this.#meanings.of(flow)
  }
}

function patience(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref())
}
