// The test's namespace and what is in it. There is one namespace, so two runs cannot meet, and what a killed run left is found.

import { setTimeout as sleep } from 'node:timers/promises'
import type { UpgradingClient } from '../kube/api-client.ts'
import { ApiError } from '../kube/api-error.ts'
import { type Family, ipFamily } from '../lib/ip.ts'
import { askApi, findObject, mergePatch, type Metadata } from './api.ts'
import type { AssignedService, TestNode } from './checks.ts'
import {
  ALIVE_UNTIL,
  type Endpoint,
  loadBalancerStatus,
  NAMESPACE,
  namespaceObject,
  podObject,
  type ProbePod,
  serviceObject,
  type ServiceName,
  type ServiceSettings,
  sliceObjects,
} from './objects.ts'
import type { ProxyOfNode } from './report.ts'

const NAMESPACE_PATH = `/api/v1/namespaces/${NAMESPACE}`
/** How long a namespace is left alone after its run was last seen. */
const ALIVE_MS = 30_000
const RENEW_MS = 10_000
const POLL_MS = 250
const GONE_WITHIN_MS = 120_000
/** A pull may fail once and then work. */
const IMAGE_PATIENCE_MS = 15_000

interface KubeNode {
  readonly metadata: Metadata
  readonly status: {
    readonly addresses?: readonly { readonly type: string; readonly address: string }[]
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

interface KubePod {
  readonly metadata: Metadata
  readonly spec: { readonly nodeName?: string; readonly containers: readonly { readonly image?: string }[] }
  readonly status: {
    readonly phase?: string
    readonly reason?: string
    readonly message?: string
    readonly podIPs?: readonly { readonly ip: string }[]
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly {
      readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } }
    }[]
  }
}

interface KubeService {
  readonly metadata: Metadata
  readonly spec: {
    readonly clusterIPs?: readonly string[]
    readonly clusterIP?: string
    readonly healthCheckNodePort?: number
    readonly ports: readonly { readonly protocol?: string; readonly port: number; readonly nodePort?: number }[]
  }
}

interface List<T> {
  readonly items: readonly T[]
}

export interface FoundNode {
  readonly name: string
  readonly addresses: readonly string[]
  /** Undefined: the test can use it. */
  readonly problem: string | undefined
}

export async function readNodes(client: UpgradingClient): Promise<FoundNode[]> {
  const { items } = await askApi<List<KubeNode>>(client, { path: '/api/v1/nodes' })
  return items.flatMap(({ metadata, status }) => {
    if ((metadata.labels?.['kubernetes.io/os'] ?? 'linux') !== 'linux') return []
    const isReady = status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
    const internal = (status.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address)
    const addresses = ([4, 6] as const).flatMap((family) => internal.find((ip) => ipFamily(ip) === family) ?? [])
    return [{ name: metadata.name, addresses, problem: isReady ? undefined : 'the node is not ready' }]
  })
}

export interface FoundProxy extends ProxyOfNode {
  readonly image: string | undefined
}

/** Pods of kube-proxy and of this program, by their labels. */
export async function readProxies(client: UpgradingClient): Promise<FoundProxy[]> {
  const selector = encodeURIComponent('k8s-app in (kube-proxy,kube-proxy-ts)')
  const { items } = await askApi<List<KubePod>>(client, { path: `/api/v1/pods?labelSelector=${selector}` })
  return items.map(({ metadata, spec }) => ({
    node: spec.nodeName ?? '',
    pod: `${metadata.namespace}/${metadata.name}`,
    isOurs: spec.containers.some(({ image }) => image?.includes('kube-proxy-ts') === true),
    image: spec.containers[0]?.image,
  }))
}

export async function readApiServer(
  client: UpgradingClient,
): Promise<{ readonly clusterIPs: readonly string[]; readonly port: number } | undefined> {
  const service = await findObject<KubeService>(client, '/api/v1/namespaces/default/services/kubernetes')
  const port = service?.spec.ports[0]?.port
  return service === undefined || port === undefined ? undefined : { clusterIPs: clusterIPsOf(service), port }
}

/** Makes the namespace, when no other run has it, and keeps it from other runs until `signal`. */
export async function claimNamespace(
  client: UpgradingClient,
  signal: AbortSignal,
  onWait: (text: string) => void,
): Promise<void> {
  for (;;) {
    const found = await findObject<{ readonly metadata: Metadata }>(client, NAMESPACE_PATH)
    if (found === undefined) break
    const { annotations, labels, deletionTimestamp } = found.metadata
    if (labels?.['app.kubernetes.io/managed-by'] !== 'kube-proxy-test')
      throw new Error(`Cannot use namespace ${NAMESPACE}: something else made it`)
    const leftMs = Number(annotations?.[ALIVE_UNTIL] ?? 0) - Date.now()
    if (deletionTimestamp === undefined && leftMs > 0) {
      onWait(`another test runs in this cluster, or was killed less than ${ALIVE_MS / 1000} s ago: waiting`)
      await sleep(Math.min(leftMs, 1000), undefined, { signal })
      continue
    }
    onWait('removing what an earlier test left')
    await removeNamespace(client, signal)
  }
  const body = namespaceObject(Date.now() + ALIVE_MS)
  // Without the signal: what may have been made would not be known.
  await askApi(client, { method: 'POST', path: '/api/v1/namespaces', body })
  void renew(client, signal)
}

async function renew(client: UpgradingClient, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(RENEW_MS, undefined, { signal, ref: false }).catch(() => {})
    if (signal.aborted) return
    const annotations = { [ALIVE_UNTIL]: String(Date.now() + ALIVE_MS) }
    // Missed once, it is renewed in time the next time.
    await mergePatch(client, NAMESPACE_PATH, { metadata: { annotations } }).catch(() => {})
  }
}

/** Gives the namespace up without deleting it: the next run may. */
export async function releaseNamespace(client: UpgradingClient): Promise<void> {
  await mergePatch(client, NAMESPACE_PATH, { metadata: { annotations: { [ALIVE_UNTIL]: '0' } } })
}

/** Resolves when it is gone. */
export async function removeNamespace(client: UpgradingClient, signal: AbortSignal): Promise<void> {
  const deadlineMs = Date.now() + GONE_WITHIN_MS
  await askApi(client, { method: 'DELETE', path: NAMESPACE_PATH }).catch(ignoreMissing)
  while ((await findObject(client, NAMESPACE_PATH)) !== undefined) {
    if (Date.now() > deadlineMs)
      throw new Error(`Cannot see namespace ${NAMESPACE} go within ${GONE_WITHIN_MS / 1000} s; it is being deleted`)
    await sleep(POLL_MS, undefined, { signal })
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 404)) throw error
}

export async function createPods(
  client: UpgradingClient,
  pods: readonly ProbePod[],
  image: string,
  signal: AbortSignal,
): Promise<void> {
  const deadlineMs = Date.now() + IMAGE_PATIENCE_MS
  for (const pod of pods) {
    for (;;) {
      try {
        await askApi(client, { method: 'POST', path: `${NAMESPACE_PATH}/pods`, body: podObject(pod, image), signal })
        break
      } catch (error) {
        // The service account of a new namespace comes a moment later.
        const isEarly = error instanceof ApiError && error.status === 403 && error.message.includes('serviceaccount')
        if (!isEarly || Date.now() > deadlineMs) throw error
        await sleep(POLL_MS, undefined, { signal })
      }
    }
  }
}

export interface PodState {
  readonly name: string
  readonly ips: readonly string[]
  /** Undefined: it is ready. */
  readonly problem: string | undefined
}

/** Waits until every pod is ready, or is not going to be. */
export async function waitForPods(
  client: UpgradingClient,
  { withinMs, signal, onCount }: { withinMs: number; signal: AbortSignal; onCount: (ready: number) => void },
): Promise<Map<string, PodState>> {
  const startMs = Date.now()
  for (;;) {
    const { items } = await askApi<List<KubePod>>(client, { path: `${NAMESPACE_PATH}/pods`, signal })
    const states = items.map(stateOf)
    const waiting = states.filter(({ problem }) => problem !== undefined)
    onCount(states.length - waiting.length)
    const elapsedMs = Date.now() - startMs
    const isHopeless = waiting.every(({ problem }) => /^(ErrImage|ImagePull|InvalidImage|Failed)/.test(problem ?? ''))
    if (waiting.length === 0 || elapsedMs > withinMs || (isHopeless && elapsedMs > IMAGE_PATIENCE_MS))
      return new Map(states.map((state) => [state.name, state]))
    await sleep(POLL_MS, undefined, { signal })
  }
}

function stateOf({ metadata, status }: KubePod): PodState {
  const isReady = status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
  const waiting = status.containerStatuses?.[0]?.state?.waiting
  const reason = waiting?.reason ?? status.reason ?? status.phase ?? 'Pending'
  const message = waiting?.message ?? status.message ?? ''
  return {
    name: metadata.name,
    ips: (status.podIPs ?? []).map(({ ip }) => ip),
    problem: isReady ? undefined : message === '' ? reason : `${reason}: ${message}`,
  }
}

export async function createService(
  client: UpgradingClient,
  name: ServiceName,
  settings: ServiceSettings,
): Promise<AssignedService> {
  const body = serviceObject(name, settings)
  const service = await askApi<KubeService>(client, { method: 'POST', path: `${NAMESPACE_PATH}/services`, body })
  const clusterIPs = clusterIPsOf(service)
  const families = ([4, 6] as const).filter((family) => clusterIPs.some((ip) => ipFamily(ip) === family))
  const status = loadBalancerStatus(name, families)
  if (status !== undefined) await mergePatch(client, `${NAMESPACE_PATH}/services/${name}/status`, status)
  const portOf = (protocol: string) => service.spec.ports.find((port) => port.protocol === protocol)?.nodePort
  const tcp = portOf('TCP')
  const udp = portOf('UDP')
  return {
    clusterIPs,
    nodePorts: { ...(tcp === undefined ? {} : { TCP: tcp }), ...(udp === undefined ? {} : { UDP: udp }) },
    healthCheckNodePort: service.spec.healthCheckNodePort,
  }
}

function clusterIPsOf({ spec }: KubeService): readonly string[] {
  return spec.clusterIPs ?? (spec.clusterIP === undefined ? [] : [spec.clusterIP])
}

/** `isNew`: nothing is there yet. */
export async function writeEndpoints(
  client: UpgradingClient,
  service: ServiceName,
  endpoints: readonly Endpoint[],
  { families, isNew }: { readonly families: readonly Family[]; readonly isNew: boolean },
): Promise<void> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`
  // What becomes ready comes first: a Service that is meant to be served is never without endpoints.
  const slices = sliceObjects(service, endpoints, families).sort((a, b) => endpointCount(b) - endpointCount(a))
  for (const body of slices) {
    const { name } = body['metadata'] as Metadata
    await askApi(client, isNew ? { method: 'POST', path, body } : { method: 'PUT', path: `${path}/${name}`, body })
  }
}

function endpointCount(slice: Readonly<Record<string, unknown>>): number {
  return (slice['endpoints'] as readonly unknown[]).length
}

/** Those whose pods are ready. */
export function testNodes(
  found: readonly FoundNode[],
  pods: ReadonlyMap<string, PodState>,
  names: (node: string) => readonly [pod: string, host: string],
): { readonly nodes: TestNode[]; readonly problems: string[] } {
  const nodes: TestNode[] = []
  const problems: string[] = []
  for (const { name, addresses, problem } of found) {
    const states = names(name).map((pod) => [pod, pods.get(pod)] as const)
    const bad = states.find(([, state]) => state?.problem !== undefined || state === undefined)
    const reason = problem ?? (bad === undefined ? undefined : `probe pod ${bad[0]}: ${bad[1]?.problem ?? 'is gone'}`)
    if (reason === undefined) nodes.push({ name, addresses, pod: states[0]![0], podIps: states[0]![1]!.ips })
    else problems.push(`${name}: ${reason}`)
  }
  return { nodes, problems }
}
