// The question `flows` and the flow log: the proxy looks at connections only while a client keeps asking, or the log is on.

import type { ApiClient } from '../kube/api-client.ts'
import type { FlowLogTarget } from '../flows/flow-log-target.ts'
import type { FlowQueue } from '../flows/flow-queue.ts'
import { serviceOf, type FlowRecord } from '../flows/flow-record.ts'
import type { FlowWatch } from '../flows/flow-watch.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { cidrContains, ipBytes, parseCidr } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Mode } from '../modes/contract.ts'
import type { FlowsAnswer, NumberedFlow } from '../serve/control/flows.ts'
import {
  allowArguments,
  argument,
  QuestionError,
  type QuestionClient,
  type Question,
} from '../serve/control/questions.ts'
import { Leases, LEASE_MS } from './leases.ts'
import type { NodeState } from './node-state.ts'
import { LONGEST_WAIT_MS, numberOf, Waiting } from './waiting.ts'

export interface FlowsOptions {
  readonly views: () => ServicePortView[]
  readonly mode: Pick<Mode, 'name' | 'translates'>
  readonly nodeName: string
  readonly state: Pick<NodeState, 'node' | 'machineAddresses'>
  /** Undefined without an API server. */
  readonly api: ApiClient | undefined
  /** The cgroup whose processes choose an endpoint when they connect; undefined: none do. */
  readonly socketBalancing: string | undefined
  readonly target: FlowLogTarget
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
}

/** Records that are kept for clients. */
const MOST_RECORDS = 4000
/** How long an answer waits for names from the API server. */
const NAMES_MS = 500

export class Flows {
  readonly #options: FlowsOptions
  readonly #leases: Leases
  readonly #waiting: Waiting
  /** By client: the Service that it looks at, or all. */
  readonly #wanted = new Map<AbortSignal, string | undefined>()
  #watch: Promise<FlowWatch> | undefined
  #queue: FlowQueue | undefined
  #records: NumberedFlow[] = []
  #number = 0
  #leftOut = 0
  #isClosed = false

  constructor(options: FlowsOptions) {
    this.#options = options
    this.#waiting = new Waiting(options.clock)
    this.#leases = new Leases(options.clock, () => this.#endIfUnused())
  }

  readonly question: Question = {
    name: 'flows',
    what: `connections through services, after=N; none without it; waits for one, up to wait=MS; service=NAMESPACE/NAME for those of one; looks while the client keeps asking, at least every ${LEASE_MS / 1000} s`,
    answer: async (query, client) => {
      allowArguments(query, 'after', 'wait', 'service')
      const after = numberOf(query, 'after')
      const waitMs = Math.min(numberOf(query, 'wait') ?? 0, LONGEST_WAIT_MS)
      const service = argument(query, 'service')
      const last = this.#number
      const watch = await this.#begin(client, service)
      if (after === undefined) return { ...this.#answer(last, service, watch), flows: [], last }
      if (this.#number <= after && waitMs > 0) await this.#waiting.next(waitMs, client.signal)
      await this.#atMost(NAMES_MS, watch.names.look())
      return this.#answer(after, service, watch)
    },
  }

  /** Begins the log, if there is to be one. */
  async start(): Promise<void> {
    const { target, clock, log, nodeName: node, version } = this.#options
    if (target.kind === 'none') return
    const { FlowQueue: Queue } = await import('../flows/flow-queue.ts')
    const sink =
      target.kind === 'file'
        ? (await import('../flows/flow-file.ts')).flowFile({ path: target.path, node })
        : (await import('../flows/otlp.ts')).otlpSink({ url: target.url, node, version })
    const watch = await this.#open()
    if (this.#isClosed) return
    this.#queue = new Queue({ sink, clock, log, withNames: (record) => watch.names.withNames(record) })
    log.info('Writing the flow log', { to: sink.name })
  }

  get isLooking(): boolean {
    return this.#watch !== undefined
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#leases.close()
    this.#wanted.clear()
    this.#waiting.wakeAll()
    const queue = this.#queue
    this.#queue = undefined
    this.#endIfUnused()
    await queue?.close()
  }

  async #begin(client: QuestionClient, service: string | undefined): Promise<FlowWatch> {
    if (!this.#wanted.has(client.signal))
      client.signal.addEventListener('abort', () => this.#wanted.delete(client.signal), { once: true })
    this.#wanted.set(client.signal, service)
    this.#leases.renew(client)
    try {
      return await this.#open()
    } catch (error) {
      this.#leases.end(client)
      throw new QuestionError(`Cannot look at connections: ${messageOf(error)}`)
    }
  }

  async #atMost(ms: number, work: Promise<void>): Promise<void> {
    let timer: Timer | undefined
    const over = new Promise<void>((resolve) => (timer = this.#options.clock.setTimeout(resolve, ms)))
    await Promise.race([work, over])
    timer?.cancel()
  }

  #open(): Promise<FlowWatch> {
    if (this.#watch !== undefined) return this.#watch
    const { views, mode, clock, log } = this.#options
    const watch = import('../flows/flow-watch.ts').then(({ FlowWatch: Watch }) =>
      Watch.open({
        views,
        translation: mode.translates,
        names: this.#names(),
        isWanted: (name) => this.#isWanted(name),
        onRecord: (record) => this.#add(record),
        onLeftOut: (count) => {
          this.#leftOut += count
          this.#queue?.leftOut(count)
        },
        clock,
        log,
      }),
    )
    this.#watch = watch
    watch.catch(() => {
      if (this.#watch === watch) this.#watch = undefined
    })
    return watch
  }

  #names(): Parameters<typeof FlowWatch.open>[0]['names'] {
    const { api, state, nodeName } = this.#options
    return {
      nodeName,
      nodeAddresses: () => state.machineAddresses,
      mayBePod: (ip) => {
        const ranges = (state.node?.podCIDRs ?? []).map(parseCidr)
        // Some clusters give no ranges to nodes.
        return ranges.length === 0 || ranges.some((range) => range !== undefined && cidrContains(range, ipBytes(ip)))
      },
      get: api === undefined ? undefined : (path) => getJson(api, path),
    }
  }

  #isWanted(name: string): boolean {
    if (this.#options.target.kind !== 'none') return true
    for (const service of this.#wanted.values()) if (service === undefined || service === serviceOf(name)) return true
    return false
  }

  #add(record: FlowRecord): void {
    // In the log, a connection is one line.
    if (record.event !== 'begun') this.#queue?.add(record)
    if (this.#leases.size === 0) return
    this.#records.push({ number: ++this.#number, ...record })
    if (this.#records.length > MOST_RECORDS) this.#records.shift()
    this.#waiting.wakeAll()
  }

  #answer(after: number, service: string | undefined, { names, counts }: FlowWatch): FlowsAnswer {
    const { nodeName, mode, socketBalancing } = this.#options
    const [first] = this.#records
    const flows = this.#records.filter(
      (flow) => flow.number > after && (service === undefined || serviceOf(flow.service) === service),
    )
    const lacks = [
      ...(counts ? [] : ['no bytes: the kernel counts none until sysctl net.netfilter.nf_conntrack_acct is 1']),
      ...(mode.translates === 'by relaying'
        ? [`no backends: in ${mode.name} mode the proxy carries connections itself`]
        : []),
      ...(socketBalancing === undefined
        ? []
        : [`no connections chosen at connect() by processes in ${socketBalancing}`]),
      ...names.problems,
    ]
    return {
      nodeName,
      mode: mode.name,
      flows: flows.map((flow) => ({ ...names.withNames(flow), number: flow.number })),
      last: this.#number,
      // A new process counts from 1 again: a client with a number of the old process has missed nothing.
      missed: first === undefined || after === 0 || after > this.#number ? 0 : Math.max(0, first.number - after - 1),
      leftOut: this.#leftOut,
      lacks,
    }
  }

  #endIfUnused(): void {
    if (this.#leases.size > 0) return
    this.#records = []
    if (this.#queue !== undefined) return
    const watch = this.#watch
    this.#watch = undefined
    this.#leftOut = 0
    void watch?.then(
      (open) => open.close(),
      () => {},
    )
  }
}

async function getJson(api: ApiClient, path: string): Promise<unknown> {
  const response = await api.request({ path, accept: 'application/json' })
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response) text += chunk as string
  return JSON.parse(text)
}
