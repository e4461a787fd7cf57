// Runs the pods: a namespace, a cable and a server for each.

import type { FailureMode, PodRuntime, RuntimePod } from './controllers/pod-runtime.ts'
import type { Place, PodStatus } from './instance/control.ts'
import { openPodNetwork, type NodeNetwork } from './netns/cluster-network.ts'
import type { NetworkNamespace } from './netns/network-namespace.ts'
import { podIdentity, podPorts } from './pod-environment.ts'
import type { PodStreams } from './apiserver/http/pod-streams.ts'
import { formatLogLine, parseLogQuery, pickLines, PodLog } from './whoami/pod-log.ts'
import type { Identity } from './whoami/answer.ts'
import { WhoamiServer, type Behaviour } from './whoami/whoami-server.ts'

interface RunningPod {
  readonly pod: RuntimePod
  readonly netns: NetworkNamespace
  readonly identity: Identity
  readonly server: WhoamiServer
  readonly log: PodLog
}

export interface PodHostOptions {
  readonly nodes: readonly NodeNetwork[]
  /** Told of namespaces that come and go. */
  readonly onOpened: (netns: NetworkNamespace) => void
  readonly onClosing: (netns: NetworkNamespace) => void
}

/** A container that died listens on nothing; its pod's address is still there. */
const behaviours: Readonly<Record<FailureMode, Behaviour>> = {
  none: 'serve',
  hang: 'hang',
  refuse: 'refuse',
  die: 'refuse',
}

export class PodHost implements PodRuntime {
  readonly #options: PodHostOptions
  readonly #pods = new Map<string, RunningPod>()

  constructor(options: PodHostOptions) {
    this.#options = options
  }

  async start(pod: RuntimePod): Promise<void> {
    await this.stop(pod)
    const netns = this.#openNetwork(pod)
    const identity = podIdentity(pod)
    const log = new PodLog()
    const server = new WhoamiServer({ netns, identity, ports: podPorts(pod.pod), log })
    const running = { pod, netns, identity, server, log }
    this.#pods.set(pod.uid, running)
    try {
      server.setBehaviour('serve')
    } catch (error) {
      this.#close(running)
      throw error
    }
    if (!pod.hostNetwork) this.#options.onOpened(netns)
  }

  async stop({ uid }: Pick<RuntimePod, 'uid'>): Promise<void> {
    const running = this.#pods.get(uid)
    if (running !== undefined) this.#close(running)
  }

  async setFailure({ uid }: RuntimePod, mode: FailureMode): Promise<void> {
    this.#pods.get(uid)?.server.setBehaviour(behaviours[mode])
  }

  /** Every pod, by name. */
  list(): PodStatus[] {
    const pods = [...this.#pods.values()].map(({ pod }) => ({
      name: pod.pod.metadata.name,
      namespace: pod.pod.metadata.namespace ?? '',
      node: pod.nodeName,
      addresses: pod.ips,
    }))
    return pods.sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1))
  }

  /** The pods of a name, or of `namespace/name`. */
  find(name: string): Place[] {
    const found = [...this.#pods.values()].filter(({ pod }) => pod.key === name || pod.pod.metadata.name === name)
    return found.map(({ pod, netns, identity }) => ({
      kind: 'pod',
      name: pod.key,
      netns: netns.path,
      hostname: identity.hostname,
      env: identity.env,
    }))
  }

  /** Answers `kubectl logs`. */
  serveLog({ pod, query, response }: Parameters<NonNullable<PodStreams['log']>>[0]): void {
    const log = this.#pods.get(pod.metadata.uid ?? '')?.log
    const wish = parseLogQuery(query, Date.now())
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    for (const line of pickLines(log?.lines() ?? [], wish)) response.write(formatLogLine(line, wish))
    if (log === undefined || !wish.follow) {
      response.end()
      return
    }
    response.flushHeaders()
    const stop = log.follow(
      (line) => response.write(formatLogLine(line, wish)),
      () => response.end(),
    )
    response.on('close', stop)
  }

  #openNetwork({ key, pod, nodeName, ips, hostNetwork }: RuntimePod): NetworkNamespace {
    const node = this.#options.nodes.find(({ plan }) => plan.name === nodeName)
    if (node === undefined) throw new Error(`Cannot run pod ${key}: there is no node ${nodeName}`)
    return hostNetwork ? node.netns : openPodNetwork(node, pod.metadata.name, ips)
  }

  #close({ pod, netns, server, log }: RunningPod): void {
    this.#pods.delete(pod.uid)
    server.close()
    log.close()
    if (pod.hostNetwork) return
    this.#options.onClosing(netns)
    netns.close()
  }
}
