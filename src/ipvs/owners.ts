// Which of two frontends gets a virtual server that both ask for.
//
// The kernel has one virtual server for an address and port. An external address of one service may be an address of this
// machine, and its port the node port of another service: both plan that server. The address goes before the node port, as
// in the rules of every mode, whichever came first; when it goes, the node port gets the server.

import { serverKey, type PlannedServer, type ServerKey } from './types.ts'

/** A server with what asks for it. Of each kind, the model lets only one service port ask. */
export interface WantedServer extends PlannedServer {
  readonly by: 'address' | 'nodePort'
}

interface Claims {
  address: WantedServer | undefined
  nodePort: WantedServer | undefined
}

export interface ServerPlans {
  readonly before: PlannedServer[]
  readonly after: PlannedServer[]
}

export class ServerOwners {
  /** Only on these can two frontends meet, so no others are kept here. */
  readonly #nodePortAddresses: ReadonlySet<string>
  readonly #claims = new Map<ServerKey, Claims>()

  constructor(nodePortAddresses: Iterable<string>) {
    this.#nodePortAddresses = new Set(nodePortAddresses)
  }

  /** Frontends ask for other servers than before: which servers there were, and which there are to be. Each stands there once. */
  change(before: Iterable<WantedServer>, after: Iterable<WantedServer>): ServerPlans {
    const plans: ServerPlans = { before: [], after: [] }
    const owners = new Map<ServerKey, WantedServer | undefined>()
    for (const wanted of before) {
      if (!this.#isShared(wanted)) plans.before.push(wanted)
      else this.#claim(wanted, owners)[wanted.by] = undefined
    }
    for (const wanted of after) {
      if (!this.#isShared(wanted)) plans.after.push(wanted)
      else this.#claim(wanted, owners)[wanted.by] = wanted
    }
    for (const [key, previous] of owners) {
      const owner = this.#owner(key)
      if (previous !== undefined) plans.before.push(previous)
      if (owner !== undefined) plans.after.push(owner)
      else this.#claims.delete(key)
    }
    return plans
  }

  #isShared({ server, by }: WantedServer): boolean {
    return by === 'nodePort' || this.#nodePortAddresses.has(server.address)
  }

  /** What is asked of a server; notes whose it was, the first time. */
  #claim({ server }: WantedServer, owners: Map<ServerKey, WantedServer | undefined>): Claims {
    const key = serverKey(server)
    if (!owners.has(key)) owners.set(key, this.#owner(key))
    let claims = this.#claims.get(key)
    if (claims === undefined) this.#claims.set(key, (claims = { address: undefined, nodePort: undefined }))
    return claims
  }

  #owner(key: ServerKey): WantedServer | undefined {
    const claims = this.#claims.get(key)
    return claims?.address ?? claims?.nodePort
  }
}
