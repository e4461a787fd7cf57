// The sandbox of a soak: its nodes, clients and services, and the ways from the ones to the others.

import { spawn } from 'node:child_process'
import { planAddresses } from '../../packages/sandbox/src/address-plan.ts'
import type { NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import type { ApiJson } from '../sandbox/support/api-access.ts'
import { SandboxProcess } from '../sandbox/support/sandbox-process.ts'
import { eventually } from '../support/eventually.ts'
import { patience } from '../support/patience.ts'
import { ConfigurationFile } from './configuration-file.ts'
import { exchange, type Endpoint } from './exchange.ts'
import { aDeployment, aFixedPod, aService } from './objects.ts'
import type { SoakOptions } from './options.ts'

export const services = '/api/v1/namespaces/default/services'
export const deployments = '/apis/apps/v1/namespaces/default/deployments'
export const pods = '/api/v1/namespaces/default/pods'
const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'

/** Services whose pods come and go, while clients talk to them. */
export const steadyServices = ['steady-1', 'steady-2', 'steady-3'] as const
/** Its traffic policies change; a pod on each node stays. */
export const policyService = 'policy'
/** Its affinity changes. */
export const stickyService = 'sticky'
export const BASE_REPLICAS = 4

/** A place with clients. */
export interface Vantage {
  readonly name: string
  readonly netns: NetworkNamespace
  /** The node whose proxy leads what is sent from here to a cluster IP. */
  readonly node: string
}

export interface Target extends Endpoint {
  /** `cluster IP`, `node port of node-2`, `load balancer` */
  readonly front: string
  readonly through: readonly string[]
}

export interface ReadyEndpoint {
  readonly pod: string
  readonly node: string
}

export class Cluster implements AsyncDisposable {
  readonly sandbox: SandboxProcess
  readonly nodes: readonly Vantage[]
  /** Two pods, the two nodes, and the machine outside. */
  readonly vantages: readonly Vantage[]
  readonly configuration: ConfigurationFile
  readonly #nodeAddresses: ReadonlyMap<string, string>

  private constructor(
    init: Pick<Cluster, 'sandbox' | 'nodes' | 'vantages' | 'configuration'>,
    addresses: ReadonlyMap<string, string>,
  ) {
    this.sandbox = init.sandbox
    this.nodes = init.nodes
    this.vantages = init.vantages
    this.configuration = init.configuration
    this.#nodeAddresses = addresses
  }

  /** The machine is a namespace of this process, so the sandbox is the first there and its addresses are known. */
  static async start(root: string, { mode, services: count }: SoakOptions): Promise<Cluster> {
    const name = 'soak'
    const configuration = new ConfigurationFile(root, {
      mode,
      kubeconfig: `${root}/${name}/kube-proxy.kubeconfig`,
    })
    const flags = ['--empty', '--name', name, '--proxy-mode', mode, '--', `--config=${configuration.path}`]
    const sandbox = await SandboxProcess.start(root, ...flags)
    process.once('exit', () => sandbox.signal('SIGTERM'))
    try {
      const { nodes } = await sandbox.status()
      const addresses = new Map(nodes.map((node) => [node.name, node.addresses[0]!]))
      for (const node of nodes) await sandbox.api.create(pods, aFixedPod(`client-${node.name}`, node.name, 'client'))
      const places = await Promise.all(
        nodes.map(async ({ name }) => ({ name, netns: await sandbox.place(name), node: name })),
      )
      const clients = await Promise.all(nodes.map(({ name }) => openClient(sandbox, name)))
      const machine = { name: 'machine', netns: await sandbox.place('machine'), node: nodes[0]!.name }
      const cluster = new Cluster(
        { sandbox, nodes: places, vantages: [...clients, ...places, machine], configuration },
        addresses,
      )
      await cluster.#create(count)
      return cluster
    } catch (error) {
      await sandbox[Symbol.asyncDispose]()
      throw error
    }
  }

  async #create(count: number): Promise<void> {
    const { api } = this.sandbox
    for (const node of this.nodes) await api.create(pods, aFixedPod(`fixed-${node.name}`, node.name, 'fixed'))
    for (const name of steadyServices) {
      await api.create(deployments, aDeployment(name, BASE_REPLICAS))
      await api.create(services, aService(name, name, 'LoadBalancer'))
    }
    await api.create(services, aService(policyService, 'fixed', 'LoadBalancer'))
    await api.create(services, aService(stickyService, 'fixed', 'NodePort'))
    for (let i = 0; i < count - steadyServices.length - 2; i++) {
      await api.create(services, aService(`churn-${i}`, 'fixed', i % 2 === 0 ? 'NodePort' : 'ClusterIP'))
    }
    await eventually('every service answers', () => this.complaint(), { withinMs: 30_000, everyMs: 100 })
  }

  async service(name: string): Promise<ApiJson> {
    return this.sandbox.api.get(`${services}/${name}`)
  }

  /** What the API says is ready, of any node. */
  async endpoints(service: string): Promise<ReadyEndpoint[]> {
    const query = `?labelSelector=${encodeURIComponent(`kubernetes.io/service-name=${service}`)}`
    const { items } = await this.sandbox.api.get(`${slices}${query}`)
    const all = items.flatMap((slice: ApiJson) => slice.endpoints ?? []) as ApiJson[]
    return all
      .filter(({ conditions }) => conditions.ready !== false)
      .map(({ targetRef, nodeName }) => ({ pod: targetRef.name, node: nodeName }))
  }

  /** The machine's own address, as pods see it where it is kept. */
  get machineAddress(): string {
    return planAddresses(0, [4]).machine[0]!
  }

  addressOf(node: string): string {
    return this.#nodeAddresses.get(node)!
  }

  /** Every front that a client at the place can use. */
  targets(service: ApiJson, from: Vantage, protocol: 'tcp' | 'udp'): Target[] {
    const port = service.spec.ports.find(({ name }: ApiJson) => name === protocol)
    const clusterIp = { host: service.spec.clusterIP, port: port.port, front: 'cluster IP', through: [from.node] }
    const nodePorts = (port.nodePort === undefined ? [] : this.nodes).map(({ name }) => ({
      host: this.addressOf(name),
      port: port.nodePort,
      front: `node port of ${name}`,
      through: [name],
    }))
    const all = this.nodes.map(({ name }) => name)
    const ingress = (service.status.loadBalancer?.ingress ?? []) as { ip: string }[]
    const loadBalancers = ingress.map(({ ip }) => ({
      host: ip,
      port: port.port,
      front: 'load balancer',
      // The machine's route leads to the first node, or to all that have endpoints, which changes under a flow; elsewhere the
      // node itself takes the short cut.
      through: from.name === 'machine' && service.metadata.name === policyService ? all : [from.node],
    }))
    return [clusterIp, ...nodePorts, ...loadBalancers]
  }

  /** Whether everything that should answer does, from everywhere: the first thing that does not. */
  async complaint(
    of: readonly string[] = [...steadyServices, policyService, stickyService],
  ): Promise<string | undefined> {
    for (const name of of) {
      const service = await this.service(name)
      for (const from of this.vantages) {
        for (const target of this.targets(service, from, 'tcp')) {
          const result = await exchange(from.netns, target, 1000 * patience())
          if ('why' in result) return `${name} ${from.name} -> ${target.front}: ${result.why}`
        }
      }
    }
    return undefined
  }

  /** Runs a program on a node, or on the control plane, and gives what it printed. */
  run(netns: NetworkNamespace, [program, ...args]: readonly [string, ...string[]]): Promise<string> {
    const child = netns.enter(() => spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] }))
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => {
        if (code === 0) resolve(stdout)
        else reject(new Error(`${program} ${args.join(' ')} ended with ${code}: ${stderr}`))
      })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox[Symbol.asyncDispose]()
  }
}

async function openClient(sandbox: SandboxProcess, node: string): Promise<Vantage> {
  const name = `client-${node}`
  let netns: NetworkNamespace | undefined
  await eventually(`${name} runs`, async () => {
    netns = await sandbox.place(name).catch(() => undefined)
    return netns === undefined ? 'not yet' : undefined
  })
  return { name, netns: netns!, node }
}
