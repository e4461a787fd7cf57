// What a mode would program on a node of a cluster.

import { loadConfiguration } from '../../config/load.ts'
import { ask } from '../../serve/control/client.ts'
import { askPath } from '../../serve/control/path.ts'
import type { StateAnswer } from '../../serve/control/state.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Family } from '../../lib/ip.ts'
import { modeNamed, modes } from '../../modes/all.ts'
import { type Balance, balancesOf } from '../../model/balance.ts'
import type { ServicePortName } from '../../model/types.ts'
import type { DryRun, DryRunOptions } from '../../modes/dry-run.ts'
import { knownFromState } from '../explain/from-state.ts'
import { decideAll } from '../explain/known.ts'
import { knownFromObjects, type NodeOfCluster } from '../explain/read-known.ts'
import { configurationFor } from './configuration-for.ts'

/** What one mode would program for one family. */
export interface Preview {
  readonly mode: string
  readonly family: Family
  /** Undefined when the mode cannot run here. */
  readonly dryRun: DryRun | undefined
  /** Why. */
  readonly problem?: string | undefined
  /** How an endpoint is chosen, of the service ports that do not leave it to chance. */
  readonly balances?: ReadonlyMap<ServicePortName, Balance> | undefined
}

export interface PreviewOptions {
  readonly mode: string
  readonly family: Family
  readonly kernel: DryRunOptions['kernel']
  readonly onProblem: (message: string) => void
}

/** The node of the proxy that runs here, and the mode that it runs in. Rejects with NoProxyError when there is none. */
export async function askRunningProxy(
  socket: string,
): Promise<{ readonly node: NodeOfCluster; readonly mode: string }> {
  const state = await ask<StateAnswer>('state', { socket, query: { only: 'objects' } })
  const { config } = loadConfiguration(JSON.stringify(state.config), { modes }).loaded
  const { services, slices, ejected, rungs } = knownFromState(state, modeNamed)
  const nodes = state.node === undefined ? [] : [state.node]
  return {
    mode: state.mode.name,
    node: {
      source: `the proxy at ${askPath(socket)}, pid ${state.pid}`,
      config: { ...config, hostnameOverride: state.nodeName },
      objects: { services, slices, nodes, serviceCidrs: state.serviceCidrs, pods: [], raw: { services: [], pods: [] } },
      machineAddresses: state.machineAddresses,
      ejected,
      rungs,
    },
  }
}

/** Never rejects: a mode that this machine cannot run has a problem instead. */
export async function previewMode(cluster: NodeOfCluster, options: PreviewOptions): Promise<Preview> {
  const { mode: name, family, kernel, onProblem } = options
  const mode = modeNamed(name)
  try {
    const config = configurationFor(cluster.config, mode)
    const known = knownFromObjects({ ...cluster, config })
    const { node, model, problems } = decideAll(known, family)!
    for (const [object, messages] of problems) for (const message of messages) onProblem(`${object}: ${message}`)
    const { machineAddresses } = known
    const machine = await mode.load()
    if (machine.dryRun === undefined) throw new Error(`Cannot preview mode ${name}: it has no dry run`)
    const views = [...model.views()]
    const dryRun = await machine.dryRun({ config, node, machineAddresses, views, kernel })
    return { mode: name, family, dryRun, balances: balancesOf(views) }
  } catch (error) {
    return { mode: name, family, dryRun: undefined, problem: messageOf(error) }
  }
}
