// What is known of a cluster and of one of its nodes, at one moment: from a running proxy, from files, or from an API server.

import { ControlClient } from '../../serve/control/client.ts'
import type { FamilyState, StateAnswer } from '../../serve/control/state.ts'
import { loadConfiguration } from '../../config/load.ts'
import type { RunOptions } from '../../config/run-options.ts'
import type { KubeProxyConfiguration } from '../../config/types.ts'
import { openClusterSource } from '../../kube/cluster-source.ts'
import type { ObjectEvent, ResourceHandler } from '../../kube/resource-handler.ts'
import type { EndpointSlice, Node, Service, ServiceCIDR } from '../../kube/types.ts'
import type { Family } from '../../lib/ip.ts'
import { messageOf } from '../../lib/errors.ts'
import { silentLogger, type Logger } from '../../lib/log.ts'
import { modes } from '../../modes/all.ts'
import { readMachineAddresses } from '../../compose/machine-addresses.ts'
import { nodeNameOf } from '../../compose/settings.ts'

export interface Cluster {
  /** For people: `the proxy at /run/...`, a path, a URL. */
  readonly source: string
  readonly config: KubeProxyConfiguration
  /** The mode in force, or the configured one. */
  readonly mode: string
  readonly nodeName: string
  readonly node: Node | undefined
  readonly machineAddresses: readonly string[]
  readonly serviceCidrs: readonly string[]
  /** Of both families, or where a proxy tells them, of each. */
  objects(family: Family): { readonly services: readonly Service[]; readonly slices: readonly EndpointSlice[] }
}

/** Rejects with NoProxyError when there is none. */
export async function readRunningProxy(socket: string): Promise<Cluster> {
  const client = new ControlClient(socket)
  try {
    const state = await client.ask<StateAnswer>('state', { query: { only: 'objects' } })
    const nothing: Pick<FamilyState, 'services' | 'slices'> = { services: [], slices: [] }
    return {
      source: `the proxy at ${client.path}, pid ${state.pid}`,
      config: loadConfiguration(JSON.stringify(state.config), { modes }).loaded.config,
      mode: state.mode.name,
      nodeName: state.nodeName,
      node: state.node,
      machineAddresses: state.machineAddresses,
      serviceCidrs: state.serviceCidrs,
      objects: (family) => state.families.find((each) => each.family === family) ?? nothing,
    }
  } finally {
    client.close()
  }
}

export interface ReadClusterOptions {
  readonly run: RunOptions
  /** Whose addresses the node has: those of this machine, or those of its Node, because it is elsewhere. */
  readonly machine: 'this' | 'of the Node'
  readonly withinMs: number
  readonly onWarning: (message: string) => void
}

/** Lists what the proxy would list, once. Rejects when that does not come to its end. */
export async function readCluster({ run, machine, withinMs, onWarning }: ReadClusterOptions): Promise<Cluster> {
  const { config, master, manifests } = run
  const nodeName = nodeNameOf(config)
  const log: Logger = {
    ...silentLogger,
    // Whether this machine forwards packets is of no interest elsewhere.
    warn: (message) => (machine === 'of the Node' && message.startsWith('net.') ? undefined : onWarning(message)),
    error: (error, message) => onWarning(error === undefined ? message : `${message}: ${messageOf(error)}`),
  }
  const source = openClusterSource({ ...config.clientConnection, master, manifests, qps: 0, burst: 0 }, log, () => {})
  const collected = {
    services: new Kept<Service>(),
    slices: new Kept<EndpointSlice>(),
    node: new Kept<Node>(),
    serviceCidrs: new Kept<ServiceCIDR>(),
  }
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), withinMs)
  try {
    const all = Promise.all(Object.values(collected).map(({ synced }) => synced))
    const watching = source.watch({ nodeName, handlers: collected, log, signal: stop.signal })
    const ended = watching.then(() => {
      const reason = Object.values(collected).find(({ problem }) => problem !== undefined)?.problem
      throw new Error(
        `Cannot read all of ${source.name} within ${withinMs} ms${reason === undefined ? '' : `: ${reason}`}`,
      )
    })
    await Promise.race([all, ended])
    ended.catch(() => {})
    stop.abort()
    await watching
  } finally {
    clearTimeout(timer)
    source.close()
  }
  const node = collected.node.objects.get(nodeName)
  const addresses = node?.addresses.filter(({ type }) => type.endsWith('IP')).map(({ address }) => address) ?? []
  const objects = { services: [...collected.services.objects.values()], slices: [...collected.slices.objects.values()] }
  return {
    source: source.name,
    config,
    mode: config.mode,
    nodeName,
    node,
    machineAddresses: machine === 'this' ? readMachineAddresses() : ['127.0.0.1', '::1', ...addresses],
    serviceCidrs: [...collected.serviceCidrs.objects.values()].flatMap(({ cidrs }) => cidrs),
    objects: () => objects,
  }
}

/** The objects of one kind. */
class Kept<T> implements ResourceHandler<T> {
  readonly objects = new Map<string, T>()
  problem: string | undefined
  readonly synced: Promise<void>
  #resolve!: () => void

  constructor() {
    this.synced = new Promise((resolve) => (this.#resolve = resolve))
  }

  readonly onEvents = (events: readonly ObjectEvent<T>[]): void => {
    for (const event of events) {
      if (event.type === 'set') this.objects.set(event.key, event.object)
      else this.objects.delete(event.key)
    }
  }

  readonly onSynced = (): void => this.#resolve()

  readonly onUnavailable = (error: Error): void => {
    this.problem = error.message
  }
}
