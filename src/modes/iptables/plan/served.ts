// Which UDP frontends the rules serve: what was read back may be of a time when other services existed.

import { canonicalIp } from '../../../lib/ip.ts'
import type { FrontendAddress } from '../../../model/types.ts'
import type { Tables } from '../../../iptables/types.ts'
import { CHAINS } from './names.ts'

/** A rule that sends what comes to an address, or to a node port of any address, to a chain of a service. */
const TO_ADDRESS = /^-d ([^ /]+)\/(?:32|128) -p udp .* -m udp --dport (\d+) -j KUBE-/
const TO_NODE_PORT = /^-p udp .* -m udp --dport (\d+) -j KUBE-/

/** Flows of other protocols are not cleaned up. */
export function* servedUdpFrontends(tables: Tables): Generator<FrontendAddress> {
  const nat = tables.get('nat')
  for (const rule of nat?.get(CHAINS.services) ?? []) {
    const [, address = '', port] = TO_ADDRESS.exec(rule) ?? []
    if (port !== undefined) yield { address: canonicalIp(address), protocol: 'UDP', port: Number(port) }
  }
  for (const rule of nat?.get(CHAINS.nodePorts) ?? []) {
    const port = TO_NODE_PORT.exec(rule)?.[1]
    if (port !== undefined) yield { address: undefined, protocol: 'UDP', port: Number(port) }
  }
}
