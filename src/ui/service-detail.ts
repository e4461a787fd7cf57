// A service on a node: the proxy's decisions, and the kernel objects that packets to it meet.

import { explain, prepare, type KernelState } from '../diagnose/explain/explain.ts'
import type { ExplainedStep, Explanation } from '../diagnose/explain/explanation.ts'
import { decideAll, isOfService, type Decided, type Known } from '../diagnose/explain/known.ts'
import { cidrContains, formatCidr, type Family, formatIp, joinHostPort, parseIp, asBytes } from '../lib/ip.ts'
import type { Frontend, NodeView, ServicePortView } from '../model/types.ts'
import type { BackendDetail, FrontendDetail, KernelObject, ServiceDetail } from './protocol.ts'

export interface DetailQuestion {
  readonly namespace: string
  readonly name: string
}

type Kernels = ReadonlyMap<Family, KernelState>

/** Throws an Error where there is no such service. */
export function planServiceDetail(known: Known, { namespace, name }: DetailQuestion, kernels: Kernels): ServiceDetail {
  const key = `${namespace}/${name}`
  if (!known.services.some((each) => `${each.namespace}/${each.name}` === key)) {
    throw new Error(`There is no Service ${key} on this node`)
  }
  const objects = new KernelObjects()
  const frontends: FrontendDetail[] = []
  const backends = new Map<string, BackendDetail>()
  const problems = new Set<string>()
  const kernel: ServiceDetail['kernel'][number][] = []
  let node = ''
  for (const family of [4, 6] as const) {
    const decided = decideAll(known, family)
    if (decided === undefined) continue
    node = decided.node.nodeName
    const views = [...decided.model.views()].filter((view) => `${view.namespace}/${view.service}` === key)
    for (const [object, messages] of decided.problems) {
      if (isOfService(object, key)) for (const message of messages) problems.add(message)
    }
    if (views.length === 0) continue
    const state = kernels.get(family)
    const differences = new Set<string>()
    let what = `the ${known.mode.name} mode for IPv${family}`
    let error: string | null = state === undefined ? 'not looked at' : null
    for (const view of views) {
      for (const frontend of view.frontends) {
        const asked = explainAll({ known, decided, view, frontend, state })
        for (const { explanation } of asked) {
          what = explanation.kernel?.what ?? what
          error = explanation.kernel?.error ?? error
          for (const each of explanation.kernel?.differences ?? []) differences.add(each)
        }
        frontends.push(describeFrontend({ view, frontend, family, asked, objects }))
        addBackends(backends, { known, view, frontend, asked })
      }
    }
    kernel.push({ family, what, error, differences: [...differences] })
  }
  const list = objects.list()
  return {
    namespace,
    name,
    node,
    mode: known.mode.name,
    frontends,
    backends: [...backends.values()].map((each) => ({ ...each, objects: objects.ofBackend(each.id) })),
    problems: [...problems],
    kernel,
    objects: list,
  }
}

type From = FrontendDetail['routes'][number]['from']

interface AskedFrom {
  readonly from: From
  readonly explanation: Explanation
}

interface FrontendContext {
  readonly known: Known
  readonly decided: Decided
  readonly view: ServicePortView
  readonly frontend: Frontend
  readonly state: KernelState | undefined
}

function explainAll({ known, decided, frontend, state }: FrontendContext): AskedFrom[] {
  const { node } = decided
  const open = node.nodePortAddresses.kind === 'only' ? node.nodePortAddresses.addresses[0] : node.nodeIp
  const address = frontend.address ?? open
  if (address === undefined) return []
  const to = `${joinHostPort(address, frontend.port)}/${frontend.protocol}`
  const pod = podAddress(known, node)
  const clients: readonly (readonly [From, string | undefined])[] = [
    ['pods of this node', pod],
    ['this node', 'node'],
    ['others', 'outside'],
  ]
  return clients.flatMap(([from, client]) =>
    client === undefined ? [] : [{ from, explanation: explain(prepare(known, { from: client, to }), state) }],
  )
}

/** An address that a pod of this node could have. Not that of an endpoint, which could reach itself. */
function podAddress(known: Known, { family, nodeName, localDetector, nodeIp }: NodeView): string | undefined {
  if (localDetector.kind === 'cidr') {
    const cidr = localDetector.cidrs.find((each) => each.family === family)
    const own = known.pods.find(({ nodeName: on, ips }) => on === nodeName && ips.some((ip) => isOf(ip, cidr)))
    const [ip] = own?.ips.filter((each) => isOf(each, cidr)) ?? []
    // The last address of the pod's range: it is hardly in use.
    const from = ip ?? (cidr === undefined ? undefined : formatIp(cidr.network))
    const bytes = from === undefined ? undefined : parseIp(from)
    return bytes === undefined ? undefined : formatIp(asBytes(bytes.slice(0, -1) + String.fromCharCode(254)))
  }
  const local = known.slices
    .flatMap(({ endpoints }) => endpoints)
    .find(
      ({ nodeName: on, address }) => on === nodeName && address.includes(':') === (family === 6) && address !== nodeIp,
    )
  return localDetector.kind === 'none' ? undefined : local?.address
}

function isOf(ip: string, cidr: Parameters<typeof cidrContains>[0] | undefined): boolean {
  const bytes = parseIp(ip)
  return cidr !== undefined && bytes !== undefined && cidrContains(cidr, bytes)
}

interface DescribeOptions {
  readonly view: ServicePortView
  readonly frontend: Frontend
  readonly family: Family
  readonly asked: readonly AskedFrom[]
  readonly objects: KernelObjects
}

function describeFrontend({ view, frontend, family, asked, objects }: DescribeOptions): FrontendDetail {
  const id = frontendId(frontend)
  for (const { explanation } of asked) {
    for (const { steps, destination, outcome } of explanation.kernel?.ways ?? []) {
      const backend = outcome === 'to' ? backendId(view, destination) : undefined
      for (const step of steps) objects.add(step, { family, frontend: id, backend })
    }
  }
  return {
    id,
    port: view.name,
    family,
    kind: frontend.kind,
    affinitySeconds: frontend.affinitySeconds ?? null,
    allowedSources: frontend.allowedSources?.map((cidr) => formatCidr(cidr)) ?? null,
    routes: asked.map(({ from, explanation: { outcome, because, masquerade, backends } }) => ({
      from,
      outcome,
      because,
      masquerade: masquerade?.masquerade ?? null,
      masqueradeWhy: masquerade?.why ?? null,
      backends: backends.flatMap(({ address, port, eligible }) =>
        eligible && outcome === 'to' ? [backendId(view, joinHostPort(address, port))] : [],
      ),
    })),
    objects: objects.ofFrontend(id),
  }
}

interface BackendContext {
  readonly known: Known
  readonly view: ServicePortView
  readonly frontend: Frontend
  readonly asked: readonly AskedFrom[]
}

function addBackends(all: Map<string, BackendDetail>, { known, view, frontend, asked }: BackendContext): void {
  const inside = frontend.kind === 'clusterIP'
  const chosen = inside ? (asked.find(({ from }) => from === 'pods of this node') ?? asked[0]) : asked.at(-1)
  for (const { address, port, node, eligible, why } of chosen?.explanation.backends ?? []) {
    const text = joinHostPort(address, port)
    const id = backendId(view, text)
    const before = all.get(id)
    const pod = known.pods.find(({ ips }) => ips.includes(address))
    const external = inside ? (before?.external ?? null) : { eligible, why }
    const own = inside ? { eligible, why } : { eligible: before?.eligible ?? eligible, why: before?.why ?? why }
    all.set(id, {
      id,
      address: text,
      port: view.name,
      pod: pod === undefined ? null : `${pod.namespace}/${pod.name}`,
      node,
      ...own,
      external,
      ejected: known.ejected.has(text) && own.why.startsWith('ejected'),
      objects: [],
    })
  }
}

function frontendId({ protocol, address, port }: Frontend): string {
  return `${protocol.toLowerCase()} ${address === undefined ? `*:${port}` : joinHostPort(address, port)}`
}

function backendId({ name, protocol }: ServicePortView, address: string): string {
  return `${protocol.toLowerCase()} ${address} of ${name}`
}

interface Met {
  readonly family: Family
  readonly frontend: string
  readonly backend: string | undefined
}

/** Each object once, with the frontends and backends whose packets meet it. */
class KernelObjects {
  readonly #byKey = new Map<
    string,
    Omit<KernelObject, 'frontends' | 'backends'> & { readonly frontends: Set<string>; readonly backends: Set<string> }
  >()

  add({ hook, place, rule, comment, found, packets, bytes }: ExplainedStep, { family, frontend, backend }: Met): void {
    const key = [family, hook, place, rule, comment ?? '', ...found].join('\n')
    let object = this.#byKey.get(key)
    if (object === undefined) {
      const id = `${family}-${this.#byKey.size + 1}`
      const links = { frontends: new Set<string>(), backends: new Set<string>() }
      object = { id, family, hook, place, rule, comment, found, packets, bytes, ...links }
      this.#byKey.set(key, object)
    }
    object.frontends.add(frontend)
    if (backend !== undefined) object.backends.add(backend)
  }

  ofFrontend(id: string): string[] {
    return this.list().flatMap((each) => (each.frontends.includes(id) ? [each.id] : []))
  }

  ofBackend(id: string): string[] {
    return this.list().flatMap((each) => (each.backends.includes(id) ? [each.id] : []))
  }

  list(): KernelObject[] {
    return Array.from(this.#byKey.values(), ({ frontends, backends, ...rest }) => ({
      ...rest,
      frontends: [...frontends],
      backends: [...backends],
    }))
  }
}
