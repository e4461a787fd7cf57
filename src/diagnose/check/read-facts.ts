// All that there is to know of a machine and its cluster, put together.

import type { RunOptions } from '../../config/run-options.ts'
import { type Family, ipFamily } from '../../lib/ip.ts'
import type { ModeOutlook } from '../../modes/contract.ts'
import { probeSockets } from '../../connect/probe.ts'
import { hasIpv6 } from '../../compose/families.ts'
import { readMachineAddresses } from '../../compose/machine-addresses.ts'
import { NodeState } from '../../compose/node-state.ts'
import { nodeNameOf, nodeSettings, otherSettings } from '../../compose/settings.ts'
import { readCapabilities } from '../../system/capabilities.ts'
import type { CheckFacts, OtherFacts } from './facts.ts'
import type { ApiAnswers } from './read-api.ts'
import { readConntrack, readKernel, readSettings } from './read-machine.ts'

/** What a proxy that runs knows better than one that is to start. */
export interface Sources {
  readonly answers: ApiAnswers
  readonly readModes: (families: readonly Family[]) => Promise<ReadonlyMap<string, ModeOutlook>>
  readonly readOthers: (families: readonly Family[]) => OtherFacts | Promise<OtherFacts>
}

export async function readFacts(
  { config, standIns, mode, minSyncPeriod, configFile }: RunOptions,
  warnings: readonly string[],
  { answers, readModes, readOthers }: Sources,
): Promise<CheckFacts> {
  const families = hasIpv6() ? ([4, 6] as const) : ([4] as const)
  const nodeName = nodeNameOf(config)
  const machineAddresses = readMachineAddresses()
  const { api, node } = answers
  const known = node === 'unknown' ? undefined : node
  const state = new NodeState(nodeSettings(config), { node: known, machineAddresses }, () => {})
  return {
    kernel: readKernel(),
    capabilities: readCapabilities(),
    modes: await readModes(families),
    conntrack: readConntrack(),
    settings: readSettings(config),
    others: await readOthers(families),
    api,
    node: {
      name: nodeName,
      object: node === 'unknown' ? 'unknown' : node === undefined ? 'does not exist' : 'exists',
      addresses: (known?.addresses ?? []).filter(({ address }) => ipFamily(address) !== undefined),
      machineAddresses,
      problems: state.problems(otherSettings(config, families)),
    },
    configuration: { config, standIns, mode, minSyncPeriod, file: configFile, warnings },
    sockets: config.socketBalancing === '' ? undefined : probeSockets(config.socketBalancing, families),
  }
}
