// A cluster, a mode, and what that mode would program on the node.

import { completeConfiguration } from '../../config/complete.ts'
import { featureEnabled } from '../../config/feature-gates.ts'
import type { KubeProxyConfiguration } from '../../config/types.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Family } from '../../lib/ip.ts'
import { planNodeView } from '../../model/node-view.ts'
import { ProblemLog } from '../../model/problems.ts'
import { ServiceModel } from '../../model/service-model.ts'
import { modeNamed, modes } from '../../modes/all.ts'
import type { Mode } from '../../modes/contract.ts'
import type { Rehearsal, RehearseOptions } from '../../modes/rehearsal.ts'
import { nodeSettings } from '../../compose/settings.ts'
import type { Cluster } from './read-cluster.ts'

/** What one mode would program for one family. */
export interface Preview {
  readonly mode: string
  readonly family: Family
  /** Undefined when that cannot be told. */
  readonly rehearsal: Rehearsal | undefined
  /** Why. */
  readonly problem?: string | undefined
}

export interface PreviewOptions {
  readonly mode: string
  readonly family: Family
  readonly kernel: RehearseOptions['kernel']
  readonly onProblem: (message: string) => void
}

/** Never rejects: a mode that this machine cannot run has a problem instead. */
export async function previewMode(cluster: Cluster, options: PreviewOptions): Promise<Preview> {
  const { mode: name, family, kernel } = options
  const mode = modeNamed(name)
  try {
    const machine = await mode.load()
    return { mode: name, family, rehearsal: await machine.rehearse({ ...decide(cluster, mode, options), kernel }) }
  } catch (error) {
    return { mode: name, family, rehearsal: undefined, problem: messageOf(error) }
  }
}

function decide(cluster: Cluster, mode: Mode, options: PreviewOptions): Omit<RehearseOptions, 'kernel'> {
  const { node: object, machineAddresses, serviceCidrs } = cluster
  const config = configurationFor(cluster, mode)
  const node = planNodeView(nodeSettings(config), { node: object, machineAddresses, serviceCidrs }, options.family)
  const problems = new ProblemLog(({ object: about, message }) => options.onProblem(`${about}: ${message}`))
  const allowExternalIPs = featureEnabled(config.featureGates, 'AllowServiceExternalIPs')
  const model = new ServiceModel({ node, problems, allowExternalIPs, weighs: mode.weighs, startedMs: 0 })
  const { services, slices } = cluster.objects(options.family)
  for (const service of services) model.setService(service)
  for (const slice of slices) model.setSlice(slice)
  model.takeChanges()
  return { config, node, machineAddresses, views: [...model.views()] }
}

/** The same configuration in another mode. What was the default of its own mode becomes that of the other. */
function configurationFor({ config }: Cluster, mode: Mode): KubeProxyConfiguration {
  if (config.mode === mode.name) return config
  const defaults = modes.find(({ name }) => name === config.mode)?.defaultNodePortAddresses ?? []
  const isDefault = JSON.stringify(config.nodePortAddresses) === JSON.stringify(defaults)
  const nodePortAddresses = isDefault ? [] : config.nodePortAddresses
  return completeConfiguration({ ...config, mode: mode.name, nodePortAddresses }, modes).config
}
