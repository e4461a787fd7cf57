// The page of a real node, from its proxy's control socket and its kernel. It changes nothing.

import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { runProgram } from '../system/run-program.ts'
import { doctorCommand, explainCommand } from './commands.ts'
import { inspectNode } from './node-inspector.ts'
import { planSnapshot, type ObservedNode } from './plan-snapshot.ts'
import type {
  DoctorAnswer,
  DoctorRequest,
  ExplainAnswer,
  ExplainQuestion,
  ServiceDetail,
  ServiceQuery,
  Snapshot,
  Terminal,
  TrafficReport,
} from './protocol.ts'
import { ProxyWatch } from './proxy-watch.ts'
import { AskedWrongly, type UiListener, type UiSource } from './source.ts'

const PATIENCE_MS = 300

export class NodeSource implements UiSource {
  readonly #watch: ProxyWatch
  readonly #terminal: Terminal
  #canSend: Promise<boolean> | undefined

  constructor(options: { readonly socket: string; readonly program: string }) {
    this.#watch = new ProxyWatch(hostname(), options.socket)
    this.#terminal = { program: options.program, sandbox: null, kubeconfig: null }
  }

  /** Rejects when no proxy answers. */
  async open(): Promise<void> {
    await this.#watch.refresh()
    if (this.#watch.error !== undefined) throw new Error(this.#watch.error)
  }

  async snapshot(): Promise<Snapshot> {
    this.#canSend ??= runProgram('nft', ['--version']).then(
      ({ code }) => code === 0,
      () => false,
    )
    // The page does not wait for a large state.
    const asked = this.#watch.refresh()
    await (this.#watch.state === undefined ? asked : Promise.race([asked, sleep(PATIENCE_MS)]))
    const canSend = await this.#canSend
    const { state, known } = this.#watch
    const node = this.#node()
    return planSnapshot({
      kind: 'node',
      name: node.name,
      can: { act: false, send: canSend ? 'node' : 'nowhere', modes: [] },
      terminal: this.#terminal,
      apiServer: { url: state?.source ?? '', state: 'unknown' },
      outside: null,
      load: null,
      nodes: [node],
      pods: [],
      deployments: [],
      services: known?.services ?? [],
      slices: known?.slices ?? [],
      selectors: new Map(),
    })
  }

  begin(listener: UiListener): void {
    const name = () => this.#node().name
    this.#watch.begin({
      changed: () => listener.changed(),
      synced: (change) => listener.synced({ ...change, node: name() }),
    })
  }

  end(): void {
    this.#watch.end()
  }

  async traffic(): Promise<TrafficReport> {
    return { nodes: [{ ...(await this.#watch.traffic()), node: this.#node().name }], outcomes: [] }
  }

  service({ namespace, name }: ServiceQuery): Promise<ServiceDetail> {
    return inspectNode({ kind: 'service', namespace, name, context: this.#context })
  }

  async explain(question: ExplainQuestion): Promise<ExplainAnswer> {
    if (question.send === true && question.from !== 'node') {
      throw new AskedWrongly('Cannot send from there: on a node, packets are sent from the node itself')
    }
    const { explanation, svg } = await inspectNode({ kind: 'explain', question, context: this.#context })
    const command = explainCommand(question, { terminal: this.#terminal })
    return { node: this.#node().name, explanation, svg, command }
  }

  async doctor({ service, from = 'node' }: DoctorRequest): Promise<DoctorAnswer> {
    const context = this.#context
    const found = await inspectNode({ kind: 'doctor', service, from, context, cluster: null })
    const command = doctorCommand({ service }, { terminal: this.#terminal })
    return { node: this.#node().name, ...found, command }
  }

  close(): void {
    this.#watch.end()
  }

  get #context() {
    return { socket: this.#watch.socket, pods: [], otherNodes: [] }
  }

  #node(): ObservedNode {
    const { state, known, error } = this.#watch
    return {
      name: state?.nodeName ?? this.#watch.name,
      addresses: state?.machineAddresses ?? [],
      podRanges: state?.node?.podCIDRs ?? [],
      zone: state?.node?.zone ?? null,
      asked: '',
      pid: state?.pid ?? null,
      restarts: 0,
      state,
      known,
      error,
    }
  }
}
