// A sandbox as the stage of the packet-flow table: its nodes and pods are those of the table, and the machine is the client
// outside. What the table needs beyond that is added as anybody may with `sandbox exec`: an address, and routes.

import { openSync } from 'node:fs'
import { askPlace } from '../../../src/sandbox/instance/control.ts'
import { Cleanup } from '../../support/cleanup.ts'
import { ranges, type DualStack } from '../../support/addresses.ts'
import { Netns } from '../../support/netns/netns.ts'
import { serveSctp } from '../../support/netns/sctp.ts'
import { aShortWhile, tcpProbe } from '../../support/netns/probe.ts'
import { SandboxProcess } from '../support/sandbox-process.ts'
import { AddressMap, type PodAddresses } from './address-map.ts'
import { podNames, whoamiDialect } from './dialect.ts'
import { createPods, TableCluster } from './table-cluster.ts'
import type { Flow, ProxySettings, Source } from '../../conformance/packet-flow.ts'
import type { FlowStage } from '../../support/flows.ts'

const families = [4, 6] as const
const sourceNames: Readonly<Record<Source, string>> = {
  localPod: podNames.localA,
  otherLocalPod: podNames.localB,
  remotePod: podNames.remoteA,
  node: 'node-1',
  external: 'machine',
}
const sctpPort = 8080

export interface TableSandboxOptions {
  readonly root: string
  readonly mode: string
  readonly settings: ProxySettings
  /** The number by which it has its addresses: the lowest that is free on this machine. */
  readonly index: number
}

export class TableSandbox implements FlowStage, AsyncDisposable {
  readonly dialect = whoamiDialect
  readonly sources: FlowStage['sources']
  readonly cluster: TableCluster
  readonly index: number
  readonly #sandbox: SandboxProcess
  readonly #addresses: AddressMap
  readonly #podAddresses: readonly string[]
  readonly #cleanup: Cleanup

  private constructor(parts: {
    sandbox: SandboxProcess
    sources: FlowStage['sources']
    cluster: TableCluster
    addresses: AddressMap
    podAddresses: PodAddresses
    cleanup: Cleanup
  }) {
    this.#sandbox = parts.sandbox
    this.sources = parts.sources
    this.cluster = parts.cluster
    this.#addresses = parts.addresses
    this.index = parts.addresses.plan.index
    this.#podAddresses = Object.values(parts.podAddresses).flatMap((ip) => [ip[4], ip[6]])
    this.#cleanup = parts.cleanup
  }

  static async open(options: TableSandboxOptions): Promise<TableSandbox> {
    const { root, mode, index } = options
    const settings = new AddressMap(index).value(options.settings) as ProxySettings
    const flags = ['--proxy-mode', mode, '--dual-stack', '--empty', '--', ...settingsFlags(settings)]
    const cleanup = new Cleanup()
    const sandbox = cleanup.use(await SandboxProcess.start(root, ...flags))
    try {
      return await TableSandbox.#prepare(sandbox, index, cleanup)
    } catch (error) {
      await cleanup[Symbol.asyncDispose]()
      throw error
    }
  }

  static async #prepare(sandbox: SandboxProcess, index: number, cleanup: Cleanup): Promise<TableSandbox> {
    const podAddresses = await createPods(sandbox.api)
    const addresses = new AddressMap(index, podAddresses)
    const place = async (name: string) => cleanup.use(await openPlace(sandbox, name))
    const opened = Object.entries(sourceNames).map(async ([source, name]) => [source, await place(name)] as const)
    const sources = Object.fromEntries(await Promise.all(opened)) as Record<Source, Netns>
    const others = { localC: await place(podNames.localC), node2: await place('node-2') }
    addRoutes(addresses, podAddresses.localC, { ...sources, ...others })
    // A process of ours in the pods' networks: whoami does not speak SCTP.
    const sctp = { localB: sources.otherLocalPod, remoteA: sources.remotePod }
    for (const [host, netns] of Object.entries(sctp)) cleanup.use(serveSctp(netns, host, sctpPort))
    const cluster = new TableCluster(sandbox.api, addresses)
    return new TableSandbox({ sandbox, sources, cluster, addresses, podAddresses, cleanup })
  }

  /** A flow as it is in this sandbox. */
  flow(flow: Flow): Flow {
    return { ...flow, to: { ...flow.to, address: this.#addresses.text(flow.to.address) } }
  }

  /** A pod of node-2 that uses an address of a service meets the proxy of node-2; everything else meets that of node-1. */
  isNode(address: string, { from, to }: Flow): boolean {
    const [first, second] = this.#addresses.nodes
    const isForNode1 = first.addresses.includes(to.address) || from !== 'remotePod'
    const { addresses, gateways } = isForNode1 ? first : second
    const further = isForNode1 ? families.map((family) => this.#addresses.secondIp(family)) : []
    return [...addresses, ...gateways, ...further].includes(address)
  }

  /** For an address that nobody has the sandbox's network says so; TCP listens to that. */
  withoutProxy({ to }: Flow): string {
    const [{ addresses, gateways }] = this.#addresses.nodes
    const isServer = [...this.#podAddresses, ...addresses].includes(to.address)
    if (isServer && [8080, 9090].includes(to.port)) return 'answered'
    const further = [...gateways, ...families.map((family) => this.#addresses.secondIp(family)), '127.0.0.1', '::1']
    if (isServer || further.includes(to.address)) return 'refused'
    if (to.protocol !== 'TCP') return 'silent'
    return to.address.includes(':') ? 'ENETUNREACH' : 'EHOSTUNREACH'
  }

  /** Waits until the proxies of both nodes have programmed everything that was put into the cluster before. */
  settled(): Promise<void> {
    const options = { dialect: whoamiDialect, ...aShortWhile() }
    const answers = async (address: string) => {
      const clients = [this.sources.localPod, this.sources.remotePod]
      const probes = clients.map((client) => tcpProbe(client, { address, port: 80 }, options))
      return (await Promise.all(probes)).every(({ kind }) => kind === 'answered')
    }
    return this.cluster.settled(answers, 10_000)
  }

  /** The nodes whose proxy has ended meanwhile. */
  async endedProxies(): Promise<string[]> {
    const { nodes } = await this.#sandbox.status()
    return nodes.filter(({ restarts }) => restarts > 0).map(({ name }) => name)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cleanup[Symbol.asyncDispose]()
  }
}

/** The proxies' flags that say the same as the settings, beside those that a sandbox gives them. */
export function settingsFlags(settings: ProxySettings): string[] {
  const { detectLocalMode = 'ClusterCIDR' } = settings
  const flags: Readonly<Record<string, string | undefined>> = {
    'detect-local-mode': detectLocalMode === 'ClusterCIDR' ? undefined : detectLocalMode,
    'cluster-cidr': settings.clusterCIDR,
    'pod-bridge-interface': settings.podBridgeInterface,
    'pod-interface-name-prefix': settings.podInterfaceNamePrefix,
    'masquerade-all': settings.masqueradeAll?.toString(),
    'nodeport-addresses': settings.nodePortAddresses?.join(','),
  }
  return Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]))
}

async function openPlace(sandbox: SandboxProcess, name: string): Promise<Netns> {
  const place = await askPlace(sandbox.path('control.sock'), name)
  if ('problem' in place) throw new Error(`Cannot find ${name}: ${place.problem}`)
  return new Netns(name, openSync(place.netns, 'r'))
}

function addRoutes(
  addresses: AddressMap,
  localC: DualStack,
  places: Record<'node' | 'node2' | 'external' | 'localC', Netns>,
): void {
  const { plan, nodes } = addresses
  const eachFamily = (commands: (family: 4 | 6, i: number) => string[]) => families.flatMap(commands)
  const toCrowd = eachFamily((family, i) => [`route add ${ranges.crowd[family]} via ${plan.machine[i]}`])
  places.node2.ip(toCrowd)
  places.node.ip([
    ...toCrowd,
    ...eachFamily((family) => [
      `route add ${addresses.manyPods(family)} via ${localC[family]}`,
      // Not chosen as a source unless a client asks for it.
      `addr add ${addresses.secondIp(family)}/${family === 4 ? '25' : '64 nodad preferred_lft 0'} dev eth0`,
    ]),
  ])
  places.localC.ip(eachFamily((family) => [`route add local ${addresses.manyPods(family)} dev lo`]))
  places.external.ip(eachFamily((family, i) => [`route add ${addresses.outside(family)} via ${nodes[0].addresses[i]}`]))
}
