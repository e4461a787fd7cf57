// Names of the pods and nodes behind addresses. The proxy does not keep them: it asks the API server for the slices of a Service
// when somebody looks at its connections.

import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { canonicalIp } from '../lib/ip.ts'
import { type FlowPeer, type FlowRecord, serviceOf } from './flow-record.ts'

export interface FlowNamesOptions {
  readonly clock: Pick<Clock, 'monotonicNow'>
  readonly nodeName: string
  /** The addresses of this node. */
  readonly nodeAddresses: () => readonly string[]
  /** Whether an address may be of a pod of this node. */
  readonly mayBePod: (ip: string) => boolean
  /** Gets an object of the API server; undefined: there is none. */
  readonly get: ((path: string) => Promise<unknown>) | undefined
}

interface Name {
  readonly pod?: string | undefined
  readonly node?: string | undefined
}

interface Known {
  /** Of the beginning of the request. */
  readonly askedMs: number
  readonly names: ReadonlyMap<string, Name>
}

/** Services whose names are kept; those that were asked for first are dropped. */
const MOST_SERVICES = 500
/** An address that is not among those of its service is asked for again after this. */
const AGAIN_MS = 5000
const PODS_AGAIN_MS = 10_000
/** After the API server refused. */
const REFUSED_MS = 10 * 60_000
/** Objects in an answer. */
const PAGE = 100

const NO_RIGHT = 'the proxy may not list pods; deploy/components/flow-names gives it that right'

export class FlowNames {
  readonly #options: FlowNamesOptions
  readonly #services = new Map<string, Known>()
  #pods: Known = { askedMs: -Infinity, names: new Map() }
  #wanted = new Set<string>()
  #wantsPods = false
  #asking: Promise<void> | undefined
  #podsRefusedMs = -Infinity
  readonly #problems = new Map<string, string>()

  constructor(options: FlowNamesOptions) {
    this.#options = options
    if (options.get === undefined) this.#problems.set('pods', 'there is no API server to ask')
  }

  /** Why names are missing, if they are. */
  get problems(): string[] {
    return [...this.#problems].map(([what, why]) => `no names of ${what}: ${why}`)
  }

  /** Has the names of a record asked for, if they are not known: to be called when a connection begins. */
  want(record: FlowRecord): void {
    const { client, backend, service } = record
    if (this.#options.get === undefined) return
    const key = serviceOf(service)
    if (backend !== undefined && this.#isDue(this.#services.get(key), backend.ip, AGAIN_MS)) this.#wanted.add(key)
    const nowMs = this.#options.clock.monotonicNow()
    const isUnknown = this.#nameOf(client.ip) === undefined && this.#options.mayBePod(client.ip)
    const mayAsk = nowMs - this.#podsRefusedMs > REFUSED_MS
    if (isUnknown && mayAsk && this.#isDue(this.#pods, client.ip, PODS_AGAIN_MS)) this.#wantsPods = true
  }

  /** Asks for what is wanted. Never rejects. */
  look(): Promise<void> {
    if (this.#asking === undefined && (this.#wanted.size > 0 || this.#wantsPods)) {
      this.#asking = this.#ask().finally(() => (this.#asking = undefined))
    }
    return this.#asking ?? Promise.resolve()
  }

  withNames(record: FlowRecord): FlowRecord {
    const { client, backend, service } = record
    const known = backend === undefined ? undefined : this.#services.get(serviceOf(service))?.names.get(backend.ip)
    return {
      ...record,
      client: named(client, this.#nameOf(client.ip)),
      ...(backend === undefined ? {} : { backend: named(backend, known) }),
    }
  }

  #nameOf(ip: string): Name | undefined {
    const { nodeAddresses, nodeName } = this.#options
    if (nodeAddresses().includes(ip)) return { node: nodeName }
    const pod = this.#pods.names.get(ip)
    if (pod !== undefined) return pod
    // A pod that is a client may be an endpoint, too.
    for (const { names } of this.#services.values()) if (names.has(ip)) return names.get(ip)
    return undefined
  }

  #isDue(known: Known | undefined, ip: string, againMs: number): boolean {
    const isYoung = this.#options.clock.monotonicNow() - (known?.askedMs ?? -Infinity) <= againMs
    return known?.names.has(ip) !== true && !isYoung
  }

  async #ask(): Promise<void> {
    const services = this.#wanted
    this.#wanted = new Set()
    for (const service of services) {
      const before = this.#services.get(service)
      const known = await this.#read('endpoints', slicesPath(service), addSlice, before)
      this.#services.delete(service)
      this.#services.set(service, known)
      if (this.#services.size > MOST_SERVICES) this.#services.delete(this.#services.keys().next().value!)
    }
    if (!this.#wantsPods) return
    this.#wantsPods = false
    this.#pods = await this.#read('clients', podsPath(this.#options.nodeName), addPod, this.#pods)
  }

  /** What was known before stays when the API server does not answer. */
  async #read(
    what: 'endpoints' | 'clients',
    path: string,
    add: (names: Map<string, Name>, item: unknown) => void,
    before: Known | undefined,
  ): Promise<Known> {
    const askedMs = this.#options.clock.monotonicNow()
    const names = new Map<string, Name>()
    try {
      let next = ''
      do {
        const from = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
        const page = (await this.#options.get!(`${path}&limit=${PAGE}${from}`)) as Page
        for (const item of page.items ?? []) add(names, item)
        next = page.metadata?.continue ?? ''
      } while (next !== '')
      this.#problems.delete(what)
      return { askedMs, names }
    } catch (error) {
      const isRefused = what === 'clients' && (error as { readonly status?: unknown }).status === 403
      this.#problems.set(what, isRefused ? NO_RIGHT : messageOf(error))
      if (isRefused) this.#podsRefusedMs = askedMs
      return { askedMs, names: before?.names ?? names }
    }
  }
}

interface Page {
  readonly items?: readonly unknown[]
  readonly metadata?: { readonly continue?: string }
}

interface Slice {
  readonly endpoints?: readonly {
    readonly addresses?: readonly string[]
    readonly nodeName?: string
    readonly targetRef?: { readonly kind?: string; readonly namespace?: string; readonly name?: string }
  }[]
}

interface Pod {
  readonly metadata?: { readonly namespace?: string; readonly name?: string }
  readonly spec?: { readonly hostNetwork?: boolean; readonly nodeName?: string }
  readonly status?: { readonly podIPs?: readonly { readonly ip?: string }[] }
}

function slicesPath(service: string): string {
  const [namespace = '', name = ''] = service.split('/')
  const selector = encodeURIComponent(`kubernetes.io/service-name=${name}`)
  return `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices?labelSelector=${selector}`
}

function podsPath(node: string): string {
  return `/api/v1/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${node}`)}`
}

function addSlice(names: Map<string, Name>, item: unknown): void {
  for (const { addresses = [], nodeName, targetRef } of (item as Slice).endpoints ?? []) {
    const ip = canonicalIp(addresses[0] ?? '')
    if (ip === undefined) continue
    const pod = targetRef?.kind === 'Pod' ? `${targetRef.namespace}/${targetRef.name}` : undefined
    names.set(ip, { pod, node: nodeName })
  }
}

function addPod(names: Map<string, Name>, item: unknown): void {
  const { metadata, spec, status } = item as Pod
  if (spec?.hostNetwork === true) return
  for (const { ip = '' } of status?.podIPs ?? []) {
    const canonical = canonicalIp(ip)
    if (canonical !== undefined)
      names.set(canonical, { pod: `${metadata?.namespace}/${metadata?.name}`, node: spec?.nodeName })
  }
}

function named(peer: FlowPeer, name: Name | undefined): FlowPeer {
  if (name === undefined) return peer
  return {
    ...peer,
    ...(name.pod === undefined ? {} : { pod: name.pod }),
    ...(name.node === undefined ? {} : { node: name.node }),
  }
}
