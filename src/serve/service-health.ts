// The health check node ports: one small server per service with externalTrafficPolicy Local, from which load balancers learn
// whether this node has endpoints of it. See service_health.go upstream.

import type { Clock } from '../lib/clock.ts'
import { joinHostPort, type Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { Listener } from './listen.ts'
import { jsonReply, listenerFor } from './reply.ts'
import type { Reply } from './http-server.ts'

/** `namespace/name` */
type ServiceKey = string

/** Where the ports are open: on every address of the family, or on these. */
export type HealthAddresses = 'all' | readonly string[]

/** A health check port that could not be opened. It is tried again every 5 seconds. */
export interface RefusedHealthPort {
  readonly service: ServiceKey
  readonly port: number
  readonly error: Error
}

export interface ServiceHealthOptions {
  readonly family: Family
  readonly addresses: HealthAddresses
  /** Whether the proxy keeps up. (Whether the node may stay is not asked: that is for /healthz.) */
  readonly proxyHealthy: () => boolean
  /** Called once per service and port. */
  readonly onRefused: (refused: RefusedHealthPort) => void
  readonly clock: Clock
  readonly log: Logger
}

interface Instance {
  readonly service: ServiceKey
  readonly port: number
  /** By address. */
  readonly listeners: Map<string, Listener>
  localEndpoints: number
  reported: boolean
}

export class ServiceHealth {
  readonly #options: ServiceHealthOptions
  readonly #instances = new Map<ServiceKey, Instance>()
  #addresses: readonly string[]

  constructor(options: ServiceHealthOptions) {
    this.#options = options
    this.#addresses = listenAddresses(options.family, options.addresses)
  }

  /** Opens the ports of these services and closes all others, at once. */
  syncServices(ports: ReadonlyMap<ServiceKey, number>): void {
    // Closing first: a port may have moved from one service to another.
    for (const [service, instance] of this.#instances) {
      if (ports.get(service) !== instance.port) void this.#close(instance)
    }
    for (const [service, port] of ports) {
      if (this.#instances.has(service)) continue
      this.#options.log.v(2)?.info('Opening healthcheck', { service, port })
      const instance = { service, port, listeners: new Map<string, Listener>(), localEndpoints: 0, reported: false }
      this.#instances.set(service, instance)
      this.#openWhereMissing(instance)
    }
  }

  /** How many endpoints each service has on this node; services that are not mentioned have none. */
  syncEndpoints(counts: ReadonlyMap<ServiceKey, number>): void {
    for (const [service, instance] of this.#instances) instance.localEndpoints = counts.get(service) ?? 0
  }

  /** Follows the node's addresses. */
  setAddresses(addresses: HealthAddresses): void {
    this.#addresses = listenAddresses(this.#options.family, addresses)
    for (const instance of this.#instances.values()) {
      for (const [address, listener] of instance.listeners) {
        if (this.#addresses.includes(address)) continue
        instance.listeners.delete(address)
        void listener.close()
      }
      this.#openWhereMissing(instance)
    }
  }

  boundAddresses(service: ServiceKey): string[] {
    const listeners = this.#instances.get(service)?.listeners.values() ?? []
    return [...listeners].flatMap(({ bound }) => (bound === undefined ? [] : [joinHostPort(bound.address, bound.port)]))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#instances.values()].map((instance) => this.#close(instance)))
  }

  async #close(instance: Instance): Promise<void> {
    this.#options.log.v(2)?.info('Closing healthcheck', { service: instance.service, port: instance.port })
    this.#instances.delete(instance.service)
    await Promise.all([...instance.listeners.values()].map((listener) => listener.close()))
  }

  #openWhereMissing(instance: Instance): void {
    const { clock, family, log } = this.#options
    for (const address of this.#addresses) {
      if (instance.listeners.has(address)) continue
      const listener = new Listener({
        name: `healthcheck of ${instance.service}`,
        address: joinHostPort(address, instance.port),
        network: family === 4 ? 'tcp4' : 'tcp6',
        handler: listenerFor(() => this.#answer(instance), log),
        whenRefused: 'retry',
        onRefused: (error) => this.#report(instance, error),
        clock,
        log,
      })
      instance.listeners.set(address, listener)
    }
  }

  #report(instance: Instance, error: Error): void {
    if (instance.reported) return
    instance.reported = true
    this.#options.onRefused({ service: instance.service, port: instance.port, error })
  }

  /** Every path and method gets the same answer: load balancers ask in their own ways. */
  #answer({ service, localEndpoints }: Instance): Reply {
    const healthy = this.#options.proxyHealthy()
    const slash = service.indexOf('/')
    const body = {
      service: { namespace: service.slice(0, slash), name: service.slice(slash + 1) },
      localEndpoints,
      serviceProxyHealthy: healthy,
    }
    const reply = jsonReply(localEndpoints > 0 && healthy ? 200 : 503, JSON.stringify(body, undefined, '\t'))
    return { ...reply, headers: { ...reply.headers, 'X-Load-Balancing-Endpoint-Weight': String(localEndpoints) } }
  }
}

function listenAddresses(family: Family, addresses: HealthAddresses): readonly string[] {
  if (addresses !== 'all') return addresses
  return family === 4 ? ['0.0.0.0'] : ['::']
}
