// Which service a connection of the connection tracker dialled, and who dialled it.

import type { Flow } from '../../../../src/conntrack/driver.ts'
import { joinHostPort } from '../../../../src/lib/ip.ts'
import type { Snapshot } from '../../../../src/ui/protocol.ts'
import type { FlowMeaning } from './connection-outcomes.ts'

export class FlowMeanings {
  readonly #ports = new Map<string, Omit<FlowMeaning, 'client'>>()
  readonly #clients = new Map<string, string>()
  readonly #backends = new Set<string>()
  readonly #machines: ReadonlySet<string>

  constructor({ services, pods, nodes, outside }: Snapshot) {
    const machines = nodes.flatMap(({ addresses }) => addresses)
    this.#machines = new Set(machines)
    for (const { ports, clusterIPs, externalIPs, loadBalancerIPs, connectRetry } of services) {
      for (const { id, port, nodePort, protocol, backends } of ports) {
        if (protocol !== 'TCP') continue
        const meaning = { service: id, isRetried: connectRetry }
        for (const ip of [...clusterIPs, ...externalIPs, ...loadBalancerIPs])
          this.#ports.set(joinHostPort(ip, port), meaning)
        if (nodePort !== null) for (const ip of machines) this.#ports.set(joinHostPort(ip, nodePort), meaning)
        for (const { address } of backends) this.#backends.add(address)
      }
    }
    for (const { namespace, name, ips, hostNetwork } of pods) {
      if (!hostNetwork) for (const ip of ips) this.#clients.set(ip, `${namespace}/${name}`)
    }
    for (const { name, addresses } of nodes) for (const ip of addresses) this.#clients.set(ip, name)
    for (const ip of outside?.addresses ?? []) this.#clients.set(ip, 'outside')
  }

  /** Undefined for what is none of a service's, and for what a proxy carries itself. */
  of({ original, reply }: Flow): FlowMeaning | undefined {
    const found = this.#ports.get(joinHostPort(original.dst, original.dport))
    if (found === undefined) return undefined
    const isCarried = this.#machines.has(reply.src) && !this.#backends.has(joinHostPort(reply.src, reply.sport))
    if (isCarried || reply.src === original.dst) return undefined
    return { ...found, client: this.#clients.get(original.src) ?? original.src }
  }
}
