// Files that a pod has of its own: where names are looked up. Like a kubelet's, by the pod's dnsPolicy. Pure.

import type { Pod } from '../apiserver/objects/pod.ts'

export const clusterDomain = 'cluster.local'

/** Path and text of each file that takes the place of the machine's. */
export function planPodFiles(
  pod: Pod,
  ips: readonly string[],
  nameServers: readonly string[],
): ReadonlyMap<string, string> {
  const resolv = planResolvConf(pod, nameServers)
  if (resolv === undefined) return new Map()
  return new Map([
    ['/etc/resolv.conf', resolv],
    ['/etc/hosts', planHosts(pod, ips)],
    // Some machines ask a daemon of their own first, which does not have the names of the cluster.
    ['/etc/nsswitch.conf', 'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n'],
  ])
}

/** Undefined: the machine's own. */
function planResolvConf({ metadata, spec }: Pod, nameServers: readonly string[]): string | undefined {
  const { dnsPolicy = 'ClusterFirst', dnsConfig = {} } = spec
  const isCluster =
    dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && spec.hostNetwork !== true)
  if (!isCluster && dnsPolicy !== 'None') return undefined
  const namespace = metadata.namespace ?? 'default'
  const searches = isCluster ? [`${namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain] : []
  const options = (dnsConfig.options ?? []).map(({ name, value }) => (value === undefined ? name : `${name}:${value}`))
  const allSearches = [...searches, ...(dnsConfig.searches ?? [])]
  const allOptions = [...(isCluster && !options.some((one) => one.startsWith('ndots:')) ? ['ndots:5'] : []), ...options]
  return [
    ...[...(isCluster ? nameServers : []), ...(dnsConfig.nameservers ?? [])].map((address) => `nameserver ${address}`),
    ...(allSearches.length === 0 ? [] : [`search ${allSearches.join(' ')}`]),
    ...(allOptions.length === 0 ? [] : [`options ${allOptions.join(' ')}`]),
  ]
    .map((line) => `${line}\n`)
    .join('')
}

function planHosts({ metadata, spec }: Pod, ips: readonly string[]): string {
  const hostname = spec.hostname ?? metadata.name
  const full =
    spec.subdomain === undefined ? [] : [`${hostname}.${spec.subdomain}.${metadata.namespace}.svc.${clusterDomain}`]
  const own = ips.map((ip) => `${ip}\t${[...full, hostname].join(' ')}\n`)
  return `127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n${own.join('')}`
}
