// `kube-proxy check`: reads all there is to know and judges it. Changes nothing.

import type { RunOptions } from '../config/run-options.ts'
import { ipFamily } from '../lib/ip.ts'
import { modes } from '../modes/all.ts'
import { hasIpv6 } from '../proxy/families.ts'
import { readMachineAddresses } from '../proxy/machine-addresses.ts'
import { NodeState } from '../proxy/node-state.ts'
import { nodeNameOf, nodeSettings, otherSettings } from '../proxy/settings.ts'
import { readCapabilities } from '../system/capabilities.ts'
import type { Facts } from './facts.ts'
import { finding } from './finding-kinds.ts'
import type { CheckReport } from './format.ts'
import { judge } from './judge.ts'
import { readApi } from './read-api.ts'
import { readConntrack, readKernel, readModes, readOthers, readSettings } from './read-machine.ts'

export async function runCheck(options: RunOptions, warnings: readonly string[]): Promise<CheckReport> {
  const { config, version } = options
  return { ...judge(await readFacts(options, warnings), modes), version, nodeName: nodeNameOf(config) }
}

/** For a configuration that cannot be used: nothing can be said of the rest then. */
export function refusedConfiguration(message: string, version: string): CheckReport {
  const mode = { asked: '', chosen: undefined, givenUp: [] }
  return { version, nodeName: '', mode, findings: [finding('config-invalid', message)] }
}

async function readFacts(options: RunOptions, warnings: readonly string[]): Promise<Facts> {
  const { config, master, manifests, standIns, mode, minSyncPeriod, configFile } = options
  const families = hasIpv6() ? ([4, 6] as const) : ([4] as const)
  const nodeName = nodeNameOf(config)
  const machineAddresses = readMachineAddresses()
  const { api, node } = await readApi({ settings: { ...config.clientConnection, master }, manifests, nodeName })
  const known = node === 'unknown' ? undefined : node
  const state = new NodeState(nodeSettings(config), { node: known, machineAddresses }, () => {})
  return {
    kernel: readKernel(),
    capabilities: readCapabilities(),
    modes: await readModes(config, families),
    conntrack: readConntrack(),
    settings: readSettings(config),
    others: readOthers(config),
    api,
    node: {
      name: nodeName,
      object: node === 'unknown' ? 'unknown' : node === undefined ? 'does not exist' : 'exists',
      addresses: (known?.addresses ?? []).filter(({ address }) => ipFamily(address) !== undefined),
      machineAddresses,
      problems: state.problems(otherSettings(config, families)),
    },
    configuration: { config, standIns, mode, minSyncPeriod, file: configFile, warnings },
  }
}
