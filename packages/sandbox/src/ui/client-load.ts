// The client that asks while a page is open: a gentle one, until the user wants another, or none.

import { openSync } from 'node:fs'
import type { LoadReport, LoadRequest } from '../../../../src/ui/protocol.ts'
import { AskedWrongly } from '../../../../src/ui/source.ts'
import { services } from '../apiserver/resources/table.ts'
import { NetworkNamespace } from '../netns/network-namespace.ts'
import { openNumberedSocket } from '../netns/sockets.ts'
import type { Sandbox } from '../sandbox.ts'
import type { ConnectionOutcomes } from './connection-outcomes.ts'
import { gentleLoad } from './gentle-load.ts'
import { Load } from './run-load.ts'
import type { ObjectDescriptions } from './sandbox-objects.ts'

export interface ClientLoadOptions {
  readonly sandbox: Sandbox
  readonly objects: ObjectDescriptions
  readonly outcomes: ConnectionOutcomes
  readonly onReport: (report: LoadReport) => void
}

export class ClientLoad {
  readonly #options: ClientLoadOptions
  #load: Load | undefined
  #wanted: LoadRequest | 'gentle' | 'none' = 'gentle'

  constructor(options: ClientLoadOptions) {
    this.#options = options
  }

  /** What runs now. */
  get request(): LoadRequest | undefined {
    return this.#load?.request
  }

  /** Begins what the user wants. */
  begin({ from, to, perSecond, via }: LoadRequest): string {
    const { objects, outcomes, onReport } = this.#options
    const [name = '', port] = to.split(':')
    const service = objects.describe().services.find((each) => `${each.namespace}/${each.name}` === name)
    const found = service?.ports.find((each) => port === undefined || String(each.port) === port || each.name === port)
    const host = via === 'loadBalancerIP' ? service?.ingress.find(({ ip }) => ip !== '')?.ip : service?.clusterIPs[0]
    if (host === undefined || host === 'None' || found === undefined || found.protocol !== 'TCP') {
      throw new AskedWrongly(
        `Cannot dial ${JSON.stringify(to)}: it must be a Service with a ${via === 'loadBalancerIP' ? 'load-balancer IP' : 'cluster IP'} and a TCP port`,
      )
    }
    const path = this.#clientNetns(from)
    this.#load?.close()
    const family = host.includes(':') ? 6 : 4
    const meaning = {
      service: found.name === '' ? name : `${name}:${found.name}`,
      isRetried: false,
      client: from === 'machine' ? 'outside' : from,
    }
    const own = (sport: number) => ({ sport, host, port: found.port })
    this.#wanted = { from, to, perSecond, ...(via === undefined ? {} : { via }) }
    this.#load = new Load({
      request: this.#wanted,
      host,
      port: found.port,
      open: () => {
        using netns = new NetworkNamespace(from, openSync(path, 'r'))
        return openNumberedSocket(netns, family)
      },
      onBegin: (sport) => outcomes.beginOwn(own(sport)),
      onEnd: (sport, outcome) => outcomes.endOwn(own(sport), meaning, outcome),
      onReport,
    })
    return `${perSecond} connections per second from ${from} to ${to}`
  }

  /** The user wants none. */
  end(): string {
    this.#wanted = 'none'
    this.pause()
    return 'The load has ended'
  }

  /** No page is left that could end it. */
  pause(): void {
    this.#load?.close()
    this.#load = undefined
  }

  /** Nobody has to look for a button to see what a Service does. */
  resume(): void {
    if (this.#wanted === 'none') return
    const request = this.#wanted === 'gentle' ? gentleLoad(this.#options.objects.describe()) : this.#wanted
    if (request === undefined) return
    try {
      this.begin(request)
    } catch (error) {
      // The service or the client is gone.
      if (!(error instanceof AskedWrongly)) throw error
      this.#wanted = 'gentle'
    }
  }

  /** The gentle one again. */
  reset(): void {
    this.#wanted = 'gentle'
    this.resume()
  }

  /** Ends a load whose service or client is gone, and begins one where there is none. */
  check(): void {
    if (this.#load !== undefined && !this.#isThere(this.#load.request)) {
      this.pause()
      this.#wanted = 'gentle'
    }
    if (this.#load === undefined) this.resume()
  }

  #isThere({ from, to }: LoadRequest): boolean {
    const [namespace = '', name = ''] = to.split(':')[0]!.split('/')
    if (this.#options.sandbox.registry.find(services, { namespace, name }) === undefined) return false
    return !from.includes('/') || this.#netnsOfPod(from) !== undefined
  }

  #netnsOfPod(pod: string): string | undefined {
    return this.#options.sandbox.pods.find(pod)[0]?.netns
  }

  #clientNetns(from: string): string {
    const { nodes, machine } = this.#options.sandbox.network
    if (from === 'outside') return machine.netns.path
    const node = nodes.find(({ plan }) => plan.name === from)
    const path = node?.netns.path ?? this.#netnsOfPod(from)
    if (path === undefined) throw new AskedWrongly(`Cannot find ${JSON.stringify(from)}: say a pod, a node or outside`)
    return path
  }
}
