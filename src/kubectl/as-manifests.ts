// What explain needs of a cluster, as manifests for its standard input: the node that runs it need not reach the API server.

import { parse } from 'yaml'
import type { Cluster } from './cluster.ts'

interface ApiItem {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: object
    readonly annotations?: Readonly<Record<string, string>>
    readonly creationTimestamp?: string
  }
  readonly spec?: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>>
  readonly addressType?: string
  readonly endpoints?: readonly unknown[] | null
  readonly ports?: readonly unknown[] | null
}

export async function readManifests(cluster: Cluster): Promise<string> {
  const [services, slices, nodes] = await Promise.all([
    cluster.list<ApiItem>('/api/v1/services'),
    cluster.list<ApiItem>('/apis/discovery.k8s.io/v1/endpointslices'),
    cluster.list<ApiItem>('/api/v1/nodes'),
  ])
  return formatManifests({ services, slices, nodes })
}

/** JSON is YAML, and on one line it is read faster. */
export function formatManifests(of: {
  readonly services: readonly ApiItem[]
  readonly slices: readonly ApiItem[]
  readonly nodes: readonly ApiItem[]
}): string {
  const documents = [
    ...of.services.map(({ metadata, spec, status }) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: metaOf(metadata),
      spec,
      status: { loadBalancer: status?.['loadBalancer'] ?? {} },
    })),
    ...of.slices.map(({ metadata, addressType, endpoints, ports }) => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: metaOf(metadata),
      addressType,
      endpoints: endpoints ?? [],
      ports: ports ?? [],
    })),
    ...of.nodes.map(({ metadata, spec, status }) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: metadata.name, labels: metadata.labels },
      spec: { podCIDR: spec?.['podCIDR'], podCIDRs: spec?.['podCIDRs'] },
      status: { addresses: status?.['addresses'] ?? [] },
    })),
  ]
  return documents.map((document) => `---\n${JSON.stringify(document)}\n`).join('')
}

function metaOf({ name, namespace, labels, annotations, creationTimestamp }: ApiItem['metadata']): object {
  const kept = Object.entries(annotations ?? {}).filter(([key]) => /^service\.|^endpoints\./.test(key))
  return { name, namespace, labels, annotations: Object.fromEntries(kept), creationTimestamp }
}

/** The flags that make explain decide as a kube-proxy with this configuration does. Throws when it is no YAML. */
export function flagsOfConfig(text: string): string[] {
  const config = (parse(text) ?? {}) as {
    readonly mode?: string
    readonly clusterCIDR?: string
    readonly detectLocalMode?: string
    readonly nodePortAddresses?: readonly string[] | null
    readonly iptables?: { readonly masqueradeAll?: boolean; readonly localhostNodePorts?: boolean | null }
    readonly nftables?: { readonly masqueradeAll?: boolean }
  }
  const { mode = '', clusterCIDR = '', detectLocalMode = '', nodePortAddresses, iptables, nftables } = config
  return [
    // kube-proxy's own default.
    `--proxy-mode=${mode === '' ? 'iptables' : mode}`,
    ...(clusterCIDR === '' ? [] : [`--cluster-cidr=${clusterCIDR}`]),
    ...(detectLocalMode === '' ? [] : [`--detect-local-mode=${detectLocalMode}`]),
    ...(nodePortAddresses?.length ? [`--nodeport-addresses=${nodePortAddresses.join(',')}`] : []),
    ...(iptables?.masqueradeAll === true || nftables?.masqueradeAll === true ? ['--masquerade-all'] : []),
    ...(iptables?.localhostNodePorts === false ? ['--iptables-localhost-nodeports=false'] : []),
  ]
}
