// Runs the pods: a namespace, a cable and a server for each, and programs that users start in them.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ApiError } from './apiserver/api-error.ts'
import type { Container, Probe } from './apiserver/objects/pod.ts'
import type { PodStreams } from './apiserver/http/pod-streams.ts'
import { planPodFiles } from './commands/pod-files.ts'
import { runCommand, type CommandOptions, type RunningCommand } from './commands/run-command.ts'
import type { FailureMode, PodRuntime, ProbeResult, RuntimePod } from './controllers/pod-runtime.ts'
import type { NamedCluster } from './dns/cluster-names.ts'
import { dnsImage } from './dns/cluster-dns.ts'
import { NameServer } from './dns/name-server.ts'
import type { Place, PodStatus } from './instance/control.ts'
import { openPodNetwork, type NodeNetwork } from './netns/cluster-network.ts'
import type { NetworkNamespace } from './netns/network-namespace.ts'
import { openClientSocket } from './netns/sockets.ts'
import { podIdentity, podPorts } from './pod-environment.ts'
import { isProbePod, PROBE_PROGRAM, ProbeServer } from './probe-server.ts'
import type { Behaviour, PodServer } from './pod-server.ts'
import { ownProgram } from './proxy-process.ts'
import { runProbe } from './run-probe.ts'
import { parseExecOptions, serveExec } from './streams/serve-exec.ts'
import { servePortForward } from './streams/serve-port-forward.ts'
import type { UpgradeRequest } from './streams/upgrade.ts'
import { formatLogLine, parseLogQuery, pickLines, PodLog } from './whoami/pod-log.ts'
import { WhoamiServer } from './whoami/whoami-server.ts'

interface RunningPod {
  readonly pod: RuntimePod
  readonly netns: NetworkNamespace
  readonly place: Place
  readonly server: PodServer
  readonly log: PodLog
  readonly commands: Set<RunningCommand>
  /** How it is meant to behave. */
  behaviour: Behaviour
}

export interface PodHostOptions {
  readonly nodes: readonly NodeNetwork[]
  /** Where the files of pods are kept, a folder for each. */
  readonly filesFolder: string
  /** Where pods look up names. */
  readonly nameServers: readonly string[]
  /** What they find there. */
  readonly names: () => NamedCluster
  /** Called with each namespace that is opened, and before it is closed. */
  readonly onOpened: (netns: NetworkNamespace) => void
  readonly onClosing: (netns: NetworkNamespace) => void
}

/** A container that died listens on nothing; its pod's address is still there. */
const behaviours: Readonly<Record<FailureMode, Behaviour>> = {
  none: 'serve',
  hang: 'hang',
  refuse: 'refuse',
  die: 'refuse',
  slow: 'slow',
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
    const common = { netns, ports: podPorts(pod.pod), log }
    const isDns = pod.pod.spec.containers.some(({ image }) => image === dnsImage)
    const server = isProbePod(pod.pod)
      ? new ProbeServer({ ...common, pod: identity.hostname })
      : isDns
        ? new NameServer({ ...common, cluster: this.#options.names() })
        : new WhoamiServer({ ...common, identity })
    const place: Place = {
      kind: 'pod',
      name: pod.key,
      netns: netns.path,
      hostname: identity.hostname,
      files: this.#writeFiles(pod),
      env: identity.env,
    }
    const running: RunningPod = { pod, netns, place, server, log, commands: new Set(), behaviour: 'serve' }
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
    const running = this.#pods.get(uid)
    if (running === undefined) return
    running.behaviour = behaviours[mode]
    running.server.setBehaviour(running.behaviour)
  }

  async restart({ uid }: RuntimePod): Promise<void> {
    const running = this.#pods.get(uid)
    if (running === undefined) return
    for (const command of running.commands) command.kill()
    running.server.close()
    running.server.setBehaviour(running.behaviour)
  }

  async probe(pod: RuntimePod, container: Container, probe: Probe): Promise<ProbeResult> {
    const node = this.#options.nodes.find(({ plan }) => plan.name === pod.nodeName)
    if (node === undefined || !this.#pods.has(pod.uid)) return { isGood: false, message: 'the pod does not run' }
    return runProbe(probe, {
      node: node.netns,
      podIP: pod.ips[0]!,
      container,
      run: (command) => this.run(pod.uid, { command, stdin: false, tty: false }),
    })
  }

  list(): PodStatus[] {
    const pods = [...this.#pods.values()].map(({ pod }) => ({
      name: pod.pod.metadata.name,
      namespace: pod.pod.metadata.namespace ?? '',
      node: pod.nodeName,
      addresses: pod.ips,
    }))
    return pods.sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1))
  }

  find(name: string): Place[] {
    return [...this.#pods.values()]
      .filter(({ pod }) => pod.key === name || pod.pod.metadata.name === name)
      .map(({ place }) => place)
  }

  /** Starts a program in a pod; it ends with the pod at the latest. */
  run(uid: string, options: CommandOptions): RunningCommand {
    const running = this.#running(uid)
    const [program, ...args] = options.command
    const isOwn = program === PROBE_PROGRAM && isProbePod(running.pod.pod)
    const command = runCommand(running.place, isOwn ? { ...options, command: [...ownProgram(), ...args] } : options)
    running.commands.add(command)
    void command.exited.then(() => running.commands.delete(command))
    return command
  }

  get streams(): PodStreams {
    return {
      log: (request) => this.#serveLog(request),
      exec: ({ pod, query, ...request }) => {
        const options = parseExecOptions(query)
        const { pod: known } = this.#running(pod.metadata.uid ?? '')
        return serveExec(request, options, () => this.run(known.uid, options))
      },
      portforward: ({ pod, ...request }) => this.#servePortForward(pod.metadata.uid ?? '', request),
    }
  }

  #servePortForward(uid: string, request: UpgradeRequest): Promise<void> {
    const { netns, pod } = this.#running(uid)
    return servePortForward(request, pod.pod.metadata.name, () => openClientSocket(netns, 'tcp', 4))
  }

  #serveLog({ pod, query, response }: Parameters<NonNullable<PodStreams['log']>>[0]): void {
    const log = this.#pods.get(pod.metadata.uid ?? '')?.log
    const options = parseLogQuery(query, Date.now())
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    for (const line of pickLines(log?.lines() ?? [], options)) response.write(formatLogLine(line, options))
    if (log === undefined || !options.follow) {
      response.end()
      return
    }
    response.flushHeaders()
    const stop = log.follow(
      (line) => response.write(formatLogLine(line, options)),
      () => response.end(),
    )
    response.on('close', stop)
  }

  #running(uid: string): RunningPod {
    const running = this.#pods.get(uid)
    if (running === undefined) throw new ApiError(400, 'BadRequest', 'the pod is not running')
    return running
  }

  #openNetwork({ key, pod, nodeName, ips, hostNetwork }: RuntimePod): NetworkNamespace {
    const node = this.#options.nodes.find(({ plan }) => plan.name === nodeName)
    if (node === undefined) throw new Error(`Cannot run pod ${key}: there is no node ${nodeName}`)
    return hostNetwork ? node.netns : openPodNetwork(node, pod.metadata.name, ips)
  }

  #writeFiles({ uid, pod, ips }: RuntimePod): Place['files'] {
    const folder = join(this.#options.filesFolder, uid)
    const files = [...planPodFiles(pod, ips, this.#options.nameServers)]
    if (files.length > 0) mkdirSync(folder, { recursive: true })
    return files.map(([target, text]) => {
      const source = join(folder, basename(target))
      writeFileSync(source, text)
      return { source, target }
    })
  }

  #close({ pod, netns, server, log, commands }: RunningPod): void {
    this.#pods.delete(pod.uid)
    for (const command of commands) command.kill()
    server.close()
    log.close()
    rmSync(join(this.#options.filesFolder, pod.uid), { recursive: true, force: true })
    if (pod.hostNetwork) return
    this.#options.onClosing(netns)
    netns.close()
  }
}
