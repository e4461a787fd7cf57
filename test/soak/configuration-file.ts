// The configuration file of all proxies, which the soak changes while they run.

import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'

export interface Configuration {
  readonly mode: string
  readonly kubeconfig: string
}

export class ConfigurationFile {
  readonly path: string
  readonly #configuration: Configuration

  constructor(folder: string, configuration: Configuration) {
    // A hidden file: the sandbox takes all others in this folder for other sandboxes.
    this.path = join(folder, '.kube-proxy.yaml')
    this.#configuration = configuration
    this.write({})
  }

  /** Writes the configuration with these fields changed; readers see the old file or the new one. */
  write(changed: object): void {
    const { mode, kubeconfig } = this.#configuration
    const base = {
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode,
      clientConnection: { kubeconfig },
      // Each sync is told with its time: it shows what a node knew when something was lost.
      logging: { verbosity: 2 },
      // Told by the cluster's range, pods of other nodes would count as pods of this one, and what they send to a node port
      // with externalTrafficPolicy Local would go to any node, whose answer takes the short way: so it is with kube-proxy.
      detectLocalMode: 'NodeCIDR',
      // The sandbox asks for it from outside the node.
      healthzBindAddress: '0.0.0.0:10256',
      // Settings of the whole machine are not the soak's to change.
      conntrack: { maxPerCore: 0 },
      oomScoreAdj: 0,
    }
    this.#replace(stringify({ ...base, ...changed }))
  }

  /** Writes what is no configuration. */
  spoil(): void {
    this.#replace('mode: [')
  }

  #replace(text: string): void {
    writeFileSync(`${this.path}.new`, text)
    renameSync(`${this.path}.new`, this.path)
  }
}
