// A miniature cluster, put together: a network of namespaces, an API server with the controllers that make services work,
// pods, and the real proxy on every node. It owns what it opens and closes it in close().

import { appendFileSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { release } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../../src/lib/errors.ts'
import type { Family } from '../../../src/lib/ip.ts'
import { createLogger, type Logger } from '../../../src/lib/log.ts'
import { textFormat } from '../../../src/lib/log-text.ts'
import { planNode, type AddressPlan } from './address-plan.ts'
import { startApiServer, type ApiServer } from './apiserver/start-api-server.ts'
import { serverVersion } from './apiserver/http/server-version.ts'
import { publishApiServer, registerNode } from './controllers/cluster-objects.ts'
import { startControllers, type Controllers } from './controllers/start-controllers.ts'
import { DNS_PORT, dnsAddresses, publishDns } from './dns/cluster-dns.ts'
import { namesOf } from './dns/registry-names.ts'
import { answersFrom, loadExample, waitForExample, type ExampleService } from './example.ts'
import { claimInstance } from './instance/claim.ts'
import { serveControls, type Controls, type Place, type SandboxStatus } from './instance/control.ts'
import type { Registry } from './apiserver/registry/registry.ts'
import type { InstanceFolder, InstanceRecord } from './instance/instance-folder.ts'
import { addNetnsName, removeNetnsName } from './instance/netns-names.ts'
import { giveToUser } from './instance/private-file.ts'
import { startLoadBalancerRoutes } from './load-balancer-routes.ts'
import { ClusterNetwork } from './netns/cluster-network.ts'
import { openBoundSocket } from './netns/sockets.ts'
import { ProxyProcess, proxyFlags } from './proxy-process.ts'
import { PodHost } from './pod-host.ts'

const API_PORT = 6443
const READY_WITHIN_MS = 20_000
const zones = ['zone-a', 'zone-b', 'zone-c'] as const

export interface SandboxOptions {
  /** Where sandboxes keep their files. */
  readonly root: string
  readonly name: string | undefined
  readonly nodes: number
  readonly mode: string
  readonly families: readonly Family[]
  readonly content: 'example' | 'empty'
  /** Further flags for each node's proxy. */
  readonly proxyFlags: readonly string[]
  readonly privilege: InstanceRecord['privilege']
  /** A socket on the loopback address of the machine, for a sandbox in a user namespace, and its port. */
  readonly outerSocket: { readonly fd: number; readonly port: number } | undefined
  /** Called with a line for the person at the terminal. */
  readonly onNotice: (line: string) => void
}

export class Sandbox implements Controls {
  readonly folder: InstanceFolder
  readonly network: ClusterNetwork
  readonly pods: PodHost
  readonly #options: SandboxOptions
  readonly #startedMs = performance.now()
  readonly #plan: AddressPlan
  readonly #log: Logger
  #api: ApiServer | undefined
  #controllers: Controllers | undefined
  #control: Server | undefined
  #proxies: readonly ProxyProcess[] = []
  /** Of the nodes whose mode was changed. */
  readonly #modes = new Map<string, string>()
  #apiUrl = ''
  #isUp = false
  #isApiServerAway = false

  /** Claims names and addresses and builds the network; nothing runs before start(). */
  constructor(options: SandboxOptions) {
    this.#options = options
    const { root, name, families, privilege } = options
    const { folder, plan } = claimInstance({ root, name, families, privilege })
    this.folder = folder
    this.#plan = plan
    this.#log = openLog(folder.path('sandbox.log'))
    try {
      this.network = new ClusterNetwork(plan)
      if (privilege === 'user namespace') this.network.machine.links.setUp('lo')
      this.network.addNodes(Array.from({ length: options.nodes }, (_, i) => planNode(plan, i + 1)))
    } catch (error) {
      folder.remove()
      throw error
    }
    for (const { netns } of this.network.nodes) addNetnsName(folder.name, netns)
    this.pods = new PodHost({
      nodes: this.network.nodes,
      filesFolder: folder.path('pods'),
      nameServers: dnsAddresses(plan.serviceRanges),
      names: () => namesOf(this.#api!.registry),
      onOpened: (netns) => addNetnsName(folder.name, netns),
      onClosing: (netns) => removeNetnsName(folder.name, netns),
    })
  }

  /** The API without HTTP; there after start(). */
  get registry(): Registry {
    return this.#api!.registry
  }

  get apiUrl(): string {
    return this.#apiUrl
  }

  /** Whether clients of the API are turned away, those in this process excepted. */
  get isApiServerAway(): boolean {
    return this.#isApiServerAway
  }

  setApiServerAway(isAway: boolean): void {
    this.#isApiServerAway = isAway
    this.#api!.setAway(isAway)
  }

  proxyOf(nodeName: string): ProxyProcess | undefined {
    return this.#proxies[this.network.nodes.findIndex(({ plan }) => plan.name === nodeName)]
  }

  /** The mode that the proxy of a node was started in. */
  modeOf(nodeName: string): string {
    return this.#modes.get(nodeName) ?? this.#options.mode
  }

  /** Starts the proxy of a node in another mode. Where that cannot run here, the one before runs on, and this rejects. */
  async setMode(nodeName: string, mode: string): Promise<void> {
    const index = this.network.nodes.findIndex(({ plan }) => plan.name === nodeName)
    if (index < 0) throw new Error(`Cannot find node ${JSON.stringify(nodeName)}: there are ${this.#nodeNames}`)
    const before = this.modeOf(nodeName)
    if (before === mode) return
    await this.#restartProxy(index, mode)
    try {
      await this.#proxies[index]!.ready(READY_WITHIN_MS)
    } catch (error) {
      await this.#restartProxy(index, before)
      await this.#proxies[index]!.ready(READY_WITHIN_MS)
      throw new Error(`${messageOf(error)}; it runs in mode ${before}, as before`, { cause: error })
    }
  }

  async #restartProxy(index: number, mode: string): Promise<void> {
    await this.#proxies[index]!.stop()
    this.#modes.set(this.network.nodes[index]!.plan.name, mode)
    this.#proxies = this.#proxies.with(index, this.#startProxy(index))
  }

  get #nodeNames(): string {
    return this.network.nodes.map(({ plan }) => plan.name).join(', ')
  }

  /** Resolves when every node serves, and every pod of the example answers through its service. */
  async start(): Promise<readonly ExampleService[]> {
    const plan = this.#plan
    const api = await startApiServer({
      serviceCidrs: plan.serviceRanges,
      log: this.#log,
      podStreams: this.pods.streams,
    })
    this.#api = api
    await this.#listen(api)
    // The proxies take the longest to start: everything else happens meanwhile.
    this.#proxies = this.network.nodes.map((_, i) => this.#startProxy(i))
    this.#describeCluster(api)
    this.#controllers = startControllers({
      registry: api.registry,
      runtime: this.pods,
      loadBalancerPool: plan.loadBalancerRanges,
      log: this.#log,
    })
    startLoadBalancerRoutes(api.registry, this.network)
    if (this.#options.content === 'example') loadExample(api.registry, plan.families)
    this.#control = await serveControls(this.folder.controlSocket, this)
    giveToUser(this.folder.controlSocket)
    await Promise.all(this.#proxies.map((proxy) => proxy.ready(READY_WITHIN_MS)))
    await this.#waitForNames()
    this.#isUp = true
    if (this.#options.content === 'empty') return []
    return waitForExample(api.registry, this.network.nodes, READY_WITHIN_MS)
  }

  async #waitForNames(): Promise<void> {
    const deadline = performance.now() + READY_WITHIN_MS
    while (!(await answersFrom(this.network.nodes, dnsAddresses(this.#plan.serviceRanges), DNS_PORT))) {
      if (performance.now() > deadline)
        throw new Error(`Cannot see the name server answer: see ${this.folder.path('sandbox.log')}`)
      await sleep(10)
    }
  }

  async close(): Promise<void> {
    this.#control?.close()
    await Promise.allSettled([this.#controllers?.close(), ...this.#proxies.map((proxy) => proxy.stop())])
    await this.#api?.close()
    this.network[Symbol.dispose]()
    this.folder.remove()
  }

  /** Listens where nodes and pods reach it, and writes the kubeconfigs. */
  async #listen(api: ApiServer): Promise<void> {
    const { outerSocket } = this.#options
    const host = this.#plan.controlPlane[0]!
    const fd = openBoundSocket(this.network.fabric.netns, 'tcp', API_PORT, host)
    const inside = await api.listen(host, API_PORT, fd)
    this.#apiUrl = outerSocket === undefined ? api.url : await api.listen('127.0.0.1', outerSocket.port, outerSocket.fd)
    writeFileSync(this.folder.kubeconfig, api.kubeconfig({ url: this.#apiUrl }), { mode: 0o600 })
    writeFileSync(this.#proxyKubeconfig, api.kubeconfig({ url: inside, user: 'kube-proxy' }), { mode: 0o600 })
    giveToUser(this.folder.kubeconfig)
  }

  get #proxyKubeconfig(): string {
    return this.folder.path('kube-proxy.kubeconfig')
  }

  /** In the sandbox's own folder: without root there is no other that it may write to. */
  proxySocket(nodeName: string): string {
    return this.folder.path(`${nodeName}.sock`)
  }

  #startProxy(index: number): ProxyProcess {
    const node = this.network.nodes[index]!
    const { name } = node.plan
    const logFile = this.folder.path(`${name}.log`)
    return new ProxyProcess({
      node,
      logFile,
      flags: proxyFlags({
        mode: this.modeOf(name),
        kubeconfig: this.#proxyKubeconfig,
        nodeName: name,
        podRanges: this.#plan.podRanges,
        controlSocket: this.proxySocket(name),
        extra: this.#options.proxyFlags,
      }),
      // While the sandbox starts, it ends with the first of them and says why.
      onEnded: (how) => {
        if (this.#isUp) this.#options.onNotice(`The proxy of ${name} ended (${how}), starting it again; see ${logFile}`)
      },
    })
  }

  #describeCluster({ registry }: ApiServer): void {
    const plan = this.#plan
    for (const [i, node] of this.network.nodes.entries()) {
      const { name, addresses, podRanges } = node.plan
      const zone = zones[i % zones.length]!
      registerNode(
        registry,
        { name, addresses, podCidrs: podRanges, zone, kernelVersion: release() },
        serverVersion.gitVersion,
      )
    }
    publishApiServer(registry, plan.serviceRanges[0]!, { ips: plan.controlPlane, port: API_PORT })
    publishDns(registry, plan.serviceRanges)
  }

  async status(): Promise<SandboxStatus> {
    const nodes = this.network.nodes.map(async ({ plan }, i) => ({
      name: plan.name,
      addresses: plan.addresses,
      podRanges: plan.podRanges,
      mode: this.modeOf(plan.name),
      proxyPid: this.#proxies[i]?.pid,
      restarts: this.#proxies[i]?.restarts ?? 0,
      health: (await this.#proxies[i]?.health()) ?? 'no answer',
    }))
    return {
      name: this.folder.name,
      pid: process.pid,
      upSeconds: Math.round((performance.now() - this.#startedMs) / 1000),
      apiServer: this.#apiUrl,
      kubeconfig: this.folder.kubeconfig,
      nodes: await Promise.all(nodes),
      pods: this.pods.list(),
    }
  }

  find(name: string): Place | { readonly problem: string } {
    const env = { KUBECONFIG: this.folder.kubeconfig }
    const { machine, fabric, nodes } = this.network
    if (name === 'machine' || name === 'control-plane') {
      const { path } = (name === 'machine' ? machine : fabric).netns
      return { kind: name, name, netns: path, hostname: undefined, files: [], env }
    }
    const node = nodes.find(({ plan }) => plan.name === name)
    if (node !== undefined) {
      const env = { KUBE_PROXY_CONTROL_SOCKET: this.proxySocket(name) }
      return { kind: 'node', name, netns: node.netns.path, hostname: name, files: [], env }
    }
    const [pod, ...others] = this.pods.find(name.replace(/^pods?\//, ''))
    if (pod === undefined) {
      const known = [...nodes.map(({ plan }) => plan.name), ...this.pods.list().map((one) => one.name)]
      return { problem: `there is no such pod or node; there are ${known.slice(0, 12).join(', ')}` }
    }
    if (others.length > 0) {
      return { problem: `there are several: say ${[pod, ...others].map((one) => one.name).join(' or ')}` }
    }
    return pod
  }
}

/** What the API server and the controllers have to say goes into a file. */
function openLog(file: string): Logger {
  const sink = (_: string, line: string) => {
    try {
      appendFileSync(file, line)
    } catch {
      // The folder is gone, and with it every reader.
    }
  }
  return createLogger({ format: textFormat({ pid: process.pid }), sink, verbosity: 0, now: Date.now })
}
