// Reads what is known of a cluster: from files, from an API server, from a running proxy.

import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { featureEnabled } from '../../config/feature-gates.ts'
import type { RunOptions } from '../../config/run-options.ts'
import type { KubeProxyConfiguration } from '../../config/types.ts'
import { ask } from '../../serve/control/client.ts'
import type { StateAnswer } from '../../serve/control/state.ts'
import type { ApiClient } from '../../kube/api-client.ts'
import { ApiError } from '../../kube/api-error.ts'
import { JSON_TYPE } from '../../kube/encoding/codec.ts'
import type { JsonObject } from '../../lib/json.ts'
import { JsonReader } from '../../kube/encoding/json-reader.ts'
import { StringPool } from '../../kube/encoding/string-pool.ts'
import { readOwnNode } from '../../kube/manifests/own-node.ts'
import { parseManifest } from '../../kube/manifests/parse-manifest.ts'
import { endpointSlices } from '../../kube/objects/endpoint-slice.ts'
import { endpoints } from '../../kube/objects/endpoints.ts'
import { nodes } from '../../kube/objects/node.ts'
import { serviceCidrs } from '../../kube/objects/service-cidr.ts'
import { services } from '../../kube/objects/service.ts'
import { type ClientSettings, openApiClient } from '../../kube/open-client.ts'
import type { EndpointSlice, Node, Service } from '../../kube/types.ts'
import { canonicalIp } from '../../lib/ip.ts'
import { messageOf } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/log.ts'
import { planNodeView } from '../../model/node-view.ts'
import { modeNamed } from '../../modes/all.ts'
import { nodeNameOf, nodeSettings } from '../../compose/settings.ts'
import { knownFromState } from './from-state.ts'
import type { Known, KnownPod } from './known.ts'

/** The objects of a cluster, as they are stored. */
export interface ReadObjects {
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
  readonly nodes: readonly Node[]
  readonly serviceCidrs: readonly string[]
  readonly pods: readonly KnownPod[]
  /** As they are in the API: for what the proxy itself does not read. */
  readonly raw: { readonly services: readonly JsonObject[]; readonly pods: readonly JsonObject[] }
}

export async function readKnownFromProxy(socket: string): Promise<Known> {
  return knownFromState(await ask<StateAnswer>('state', { socket, query: { only: 'objects' } }), modeNamed)
}

/** A node, its configuration, and the objects of its cluster. */
export interface NodeOfCluster {
  /** For people: `manifests in ./web`. */
  readonly source: string
  readonly config: KubeProxyConfiguration
  readonly objects: ReadObjects
  /** Absent: those of its Node object. */
  readonly machineAddresses?: readonly string[] | undefined
  readonly ejected?: Known['ejected']
  readonly rungs?: Known['rungs']
}

/** What the proxy of a node would know. */
export function knownFromObjects(of: NodeOfCluster): Known {
  const { source, config, objects } = of
  const settings = nodeSettings(config)
  const node = objects.nodes.find(({ name }) => name === settings.nodeName)
  const machineAddresses =
    of.machineAddresses ?? (node?.addresses ?? []).flatMap(({ address }) => canonicalIp(address) ?? [])
  const facts = { node, machineAddresses, serviceCidrs: objects.serviceCidrs }
  const mode = modeNamed(config.mode)
  return {
    source,
    hasObjects: true,
    mode,
    nodes: { 4: planNodeView(settings, facts, 4), 6: planNodeView(settings, facts, 6) },
    machineAddresses,
    services: objects.services,
    slices: objects.slices,
    allowExternalIPs: featureEnabled(config.featureGates, 'AllowServiceExternalIPs'),
    localhostNodePorts: config.iptables.localhostNodePorts,
    connectRetry: config.connectRetry,
    ejected: of.ejected ?? new Map(),
    rungs: of.rungs,
    otherNodes: objects.nodes
      .filter(({ name }) => name !== settings.nodeName)
      .map(({ name, addresses }) => ({
        name,
        addresses: addresses.flatMap(({ address }) => canonicalIp(address) ?? []),
      })),
    pods: objects.pods,
  }
}

/** Not for this proxy, by their labels: what the API server leaves out of a proxy's watch. */
const HEADLESS_LABEL = 'service.kubernetes.io/headless'

/** What the proxy would read: files, or an API server. Warnings go to `warn`. */
export async function readObjects(
  { config, master, manifests }: Pick<RunOptions, 'config' | 'master' | 'manifests'>,
  { pods, warn }: { readonly pods: 'with pods' | 'without pods'; readonly warn: (message: string) => void },
): Promise<ReadObjects & { readonly source: string }> {
  if (manifests === '') {
    const objects = await readApiObjects({ ...config.clientConnection, master }, { pods, warn })
    return { ...objects, source: `the API server ${objects.server}` }
  }
  const objects = readManifestObjects(manifests, warn)
  const nodeName = nodeNameOf(config)
  const hasNode = objects.nodes.some(({ name }) => name === nodeName)
  const nodes = hasNode ? objects.nodes : [...objects.nodes, await readOwnNode(nodeName)]
  return {
    ...objects,
    nodes,
    source: manifests === STANDARD_INPUT ? 'the objects on standard input' : `manifests in ${manifests}`,
  }
}

/** Files of YAML and JSON: a folder, or one of them. Throws when one cannot be used. */
export function readManifestObjects(path: string, warn: (message: string) => void = () => {}): ReadObjects {
  const files = listFiles(path)
  const found: { kind: string; json: JsonObject }[] = []
  for (const file of files) {
    const { objects, remarks } = parseManifest(readFileSync(file === STANDARD_INPUT ? 0 : file, 'utf8'))
    const [wrong] = remarks.filter(({ severity }) => severity === 'error')
    if (wrong !== undefined) throw new Error(`Cannot use ${file}:${wrong.line}: ${wrong.text}`)
    for (const { line, text } of remarks) warn(`${file}:${line}: ${text}`)
    found.push(...objects)
  }
  const of = (kind: string) => found.filter((each) => each.kind === kind).map(({ json }) => withNamespace(json))
  return decodeAll({
    services: of('Service'),
    slices: of('EndpointSlice'),
    endpoints: of('Endpoints'),
    nodes: of('Node'),
    serviceCidrs: of('ServiceCIDR'),
    pods: [],
  })
}

const STANDARD_INPUT = '-'

function listFiles(path: string): string[] {
  if (path === STANDARD_INPUT) return [path]
  try {
    if (!statSync(path).isDirectory()) return [path]
    return readdirSync(path)
      .filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name))
      .sort()
      .map((name) => join(path, name))
  } catch (error) {
    throw new Error(`Cannot read manifests in ${path}: ${messageOf(error)}`, { cause: error })
  }
}

function withNamespace(json: JsonObject): JsonObject {
  const metadata = (json['metadata'] ?? {}) as JsonObject
  return { ...json, metadata: { namespace: 'default', ...metadata } }
}

/** Everything at once. What the user may not see of nodes and pods is left out. */
export async function readApiObjects(
  settings: ClientSettings,
  { pods, warn }: Parameters<typeof readObjects>[1] = { pods: 'with pods', warn: () => {} },
): Promise<ReadObjects & { readonly server: string }> {
  const client = openApiClient({ ...settings, qps: 0, burst: 0 }, { ...silentLogger, warn })
  try {
    const [serviceItems, endpointItems, nodeItems, cidrItems, podItems] = await Promise.all([
      list(client, services.path),
      listSlices(client),
      list(client, nodes.path, 'optional'),
      list(client, serviceCidrs.path, 'optional'),
      pods === 'with pods' ? list(client, '/api/v1/pods', 'optional') : [],
    ])
    const objects = decodeAll({
      services: serviceItems,
      ...endpointItems,
      nodes: nodeItems,
      serviceCidrs: cidrItems,
      pods: podItems,
    })
    return { ...objects, server: client.server }
  } finally {
    client.close()
  }
}

/** API servers before Kubernetes 1.21 have Endpoints alone. */
async function listSlices(client: ApiClient): Promise<Pick<RawObjects, 'slices' | 'endpoints'>> {
  try {
    return { slices: await list(client, endpointSlices.path), endpoints: [] }
  } catch (error) {
    if (!(error instanceof Error && error.cause instanceof ApiError && error.cause.status === 404)) throw error
    return { slices: [], endpoints: await list(client, endpoints.path) }
  }
}

/** What kubeadm keeps of the configuration of all proxies of a cluster. */
export const PROXY_CONFIG_MAP = 'kube-system/kube-proxy'

/** The text of the configuration in it, or a message why there is none. */
export async function readProxyConfigMap(
  settings: ClientSettings,
): Promise<{ readonly text: string } | { readonly why: string }> {
  const client = openApiClient({ ...settings, qps: 0, burst: 0 }, silentLogger)
  const [namespace, name] = PROXY_CONFIG_MAP.split('/')
  try {
    const json = await get(client, `/api/v1/namespaces/${namespace}/configmaps/${name}`)
    const texts = Object.values(reader.object(reader.object(json)['data'])).map((each) => reader.string(each))
    const text = texts.find((each) => /^kind: *["']?KubeProxyConfiguration/m.test(each))
    return text === undefined ? { why: `ConfigMap ${PROXY_CONFIG_MAP} has no KubeProxyConfiguration` } : { text }
  } catch (error) {
    return { why: `ConfigMap ${PROXY_CONFIG_MAP} cannot be read: ${messageOf(error)}` }
  } finally {
    client.close()
  }
}

async function get(client: ApiClient, path: string): Promise<unknown> {
  const response = await client.request({ path, accept: JSON_TYPE, signal: AbortSignal.timeout(TIMEOUT_MS) })
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

const TIMEOUT_MS = 30_000

async function list(
  client: ApiClient,
  path: string,
  need: 'required' | 'optional' = 'required',
): Promise<JsonObject[]> {
  try {
    return [...reader.objects(reader.object(await get(client, path))['items'])]
  } catch (error) {
    if (need === 'optional' && error instanceof ApiError) return []
    throw new Error(`Cannot list ${path} of ${client.server}: ${messageOf(error)}`, { cause: error })
  }
}

const reader = new JsonReader(new StringPool())

interface RawObjects {
  readonly services: readonly JsonObject[]
  readonly slices: readonly JsonObject[]
  readonly endpoints: readonly JsonObject[]
  readonly nodes: readonly JsonObject[]
  readonly serviceCidrs: readonly JsonObject[]
  readonly pods: readonly JsonObject[]
}

function decodeAll(raw: RawObjects): ReadObjects {
  const isServed = (json: JsonObject) => labelsOf(json)[HEADLESS_LABEL] === undefined
  return {
    services: raw.services.map((json) => services.fromJson(json, reader).object),
    slices: [
      ...raw.slices.filter(isServed).map((json) => endpointSlices.fromJson(json, reader).object),
      ...raw.endpoints.flatMap((json) => endpoints.fromJson(json, reader).object),
    ],
    nodes: raw.nodes.map((json) => nodes.fromJson(json, reader).object),
    serviceCidrs: raw.serviceCidrs.flatMap((json) => serviceCidrs.fromJson(json, reader).object.cidrs),
    pods: raw.pods.map(podFromJson),
    raw: { services: raw.services, pods: raw.pods },
  }
}

function podFromJson(json: JsonObject): KnownPod {
  const metadata = reader.object(json['metadata'])
  const status = reader.object(json['status'])
  return {
    namespace: reader.string(metadata['namespace']),
    name: reader.string(metadata['name']),
    ips: reader.objects(status['podIPs']).flatMap(({ ip }) => canonicalIp(reader.string(ip)) ?? []),
    nodeName: reader.string(reader.object(json['spec'])['nodeName']),
  }
}

function labelsOf(json: JsonObject): JsonObject {
  return reader.object(reader.object(json['metadata'])['labels'])
}
