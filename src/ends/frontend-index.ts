// Which connections of the tracker belong to which service port.

import { joinHostPort } from '../lib/ip.ts'
import type { Flow } from '../conntrack/driver.ts'
import type { ServicePortName, ServicePortView } from '../model/types.ts'

/** Service ports by what clients dial. No two have the same. */
export class FrontendIndex {
  readonly #dialled = new Map<string, ServicePortName>()
  readonly #nodePorts = new Map<number, ServicePortName>()
  readonly #isNodePortAddress: (address: string) => boolean

  constructor(isNodePortAddress: (address: string) => boolean) {
    this.#isNodePortAddress = isNodePortAddress
  }

  add({ name, frontends }: ServicePortView): void {
    for (const { address, port } of frontends) {
      if (address === undefined) this.#nodePorts.set(port, name)
      else this.#dialled.set(joinHostPort(address, port), name)
    }
  }

  /** The service port that sent a connection to an endpoint, at one of its addresses or its node port. */
  portOf({ original, reply }: Flow): ServicePortName | undefined {
    const isTranslated = reply.src !== original.dst || reply.sport !== original.dport
    if (!isTranslated) return undefined
    const name = this.#dialled.get(joinHostPort(original.dst, original.dport))
    if (name !== undefined) return name
    return this.#isNodePortAddress(original.dst) ? this.#nodePorts.get(original.dport) : undefined
  }
}
