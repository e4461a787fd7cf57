// `kube-proxy check --from`: reads the Services and this node, and judges what another mode changes. Changes nothing.

import type { RunOptions } from '../../config/run-options.ts'
import { hasIpv6 } from '../../compose/families.ts'
import { readMachineAddresses } from '../../compose/machine-addresses.ts'
import { nodeNameOf } from '../../compose/settings.ts'
import { type Family, formatIp } from '../../lib/ip.ts'
import { whyNotServed } from '../../model/service-ports.ts'
import { parseBound, parseListeners, type TcpListener } from '../check/parse-listeners.ts'
import { look } from '../check/read-machine.ts'
import { type NodeOfCluster, readObjects } from '../explain/read-known.ts'
import { readNumber, readText } from '../read-text.ts'
import type { LeavingFacts, LeftMode, MachineFacts, NewMode, Side } from './facts.ts'
import type { LeavingReport } from './format.ts'
import { judgeLeaving } from './judge-leaving.ts'
import { sideOf } from './side-of.ts'

export interface Leaving {
  readonly from: LeftMode
  readonly to: NewMode
}

/** Rejects when the Services cannot be read. */
export async function runLeaving({ from, to }: Leaving, options: RunOptions): Promise<LeavingReport> {
  const { config, version } = options
  const objects = await readObjects(options, { pods: 'without pods', warn: () => {} })
  const machineAddresses = readMachineAddresses()
  const families = hasIpv6() ? ([4, 6] as const) : ([4] as const)
  const node: NodeOfCluster = { source: objects.source, config, objects, machineAddresses }
  const services = objects.services.filter((service) => whyNotServed(service) === undefined)
  const newSide = sideOf(node, to, families)
  const facts: LeavingFacts = {
    from: sideOf(node, from, families),
    to: newSide,
    services,
    machineAddresses,
    machine: await readMachine(newSide, families),
    hasFile: options.configFile !== undefined,
  }
  return {
    version,
    nodeName: nodeNameOf(config),
    source: objects.source,
    from,
    to,
    services: services.length,
    changes: judgeLeaving(facts),
  }
}

async function readMachine({ mode, config }: Side, families: readonly Family[]): Promise<MachineFacts> {
  const { lacks } = await look(mode, { config, families })
  return {
    lacks: lacks.map(({ what }) => what),
    bound: [
      ...['tcp', 'tcp6'].flatMap((name) => named('TCP', parseListeners(readText(`/proc/net/${name}`)))),
      ...['udp', 'udp6'].flatMap((name) => named('UDP', parseBound(readText(`/proc/net/${name}`)))),
    ],
    sloppyTcp: readNumber('/proc/sys/net/ipv4/vs/sloppy_tcp') === 1,
  }
}

function named(protocol: 'TCP' | 'UDP', sockets: readonly TcpListener[]): MachineFacts['bound'] {
  return sockets.map(({ address, port }) => ({ address: formatIp(address), port, protocol }))
}
