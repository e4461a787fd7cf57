// Which pod is the proxy of which node.

export interface ProxyPod {
  readonly namespace: string
  readonly name: string
  readonly node: string
  readonly container: string
  readonly image: string
  readonly isReady: boolean
  readonly restarts: number
  /** This program, or Kubernetes's own kube-proxy. */
  readonly kind: 'kube-proxy-ts' | 'kube-proxy'
}

/** A Pod, as far as it is read. */
export interface Pod {
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly spec: {
    readonly nodeName?: string
    readonly containers: readonly {
      readonly name: string
      readonly image?: string
      readonly command?: readonly string[]
      readonly args?: readonly string[]
    }[]
  }
  readonly status?: {
    readonly phase?: string
    readonly podIP?: string
    readonly podIPs?: readonly { readonly ip: string }[]
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly { readonly name: string; readonly restartCount?: number }[]
  }
}

export const PROXY_SELECTOR = 'k8s-app in (kube-proxy-ts,kube-proxy)'

/** Of several pods on a node, as during an upgrade, the ready one, and ours before the other. */
export function proxiesByNode(pods: readonly Pod[]): Map<string, ProxyPod> {
  const found = new Map<string, ProxyPod>()
  const rank = ({ isReady, kind }: ProxyPod) => (isReady ? 2 : 0) + (kind === 'kube-proxy-ts' ? 1 : 0)
  for (const pod of pods) {
    const proxy = proxyOf(pod)
    if (proxy === undefined) continue
    const before = found.get(proxy.node)
    if (before === undefined || rank(proxy) > rank(before)) found.set(proxy.node, proxy)
  }
  return found
}

function proxyOf({ metadata, spec, status }: Pod): ProxyPod | undefined {
  const container = spec.containers.find(({ name }) => name === 'kube-proxy') ?? spec.containers[0]
  const isRunning = status?.phase === undefined || status.phase === 'Running'
  if (spec.nodeName === undefined || container === undefined || !isRunning) return undefined
  const { image = '' } = container
  // A kubeadm cluster may have this program's image in the DaemonSet kube-proxy.
  const isOurs = metadata.labels?.['k8s-app'] === 'kube-proxy-ts' || /kube-proxy-ts/.test(image)
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    node: spec.nodeName,
    container: container.name,
    image,
    isReady: status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
    restarts: status?.containerStatuses?.find(({ name }) => name === container.name)?.restartCount ?? 0,
    kind: isOurs ? 'kube-proxy-ts' : 'kube-proxy',
  }
}
