// users[].user.exec of a kubeconfig: a program that prints credentials.

import { resolve } from 'node:path'
import { isJsonObject } from '../../lib/json.ts'
import type { ExecPluginConfig } from './cluster-access.ts'

const API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const

/** cluster fields of the kubeconfig, and their names in the plugin's spec.cluster. */
const CLUSTER_FIELDS = [
  'tls-server-name',
  'insecure-skip-tls-verify',
  'certificate-authority-data',
  'proxy-url',
  'disable-compression',
] as const

export interface ExecEnvironment {
  /** The kubeconfig's folder. */
  readonly folder: string
  readonly server: URL
  /** The cluster entry, for plugins that ask for it. */
  readonly cluster: Readonly<Record<string, unknown>>
}

/** The plugin, or its error: `command: must be given`. */
export function execPluginFrom(exec: unknown, environment: ExecEnvironment): ExecPluginConfig | string {
  if (!isJsonObject(exec)) return ': must be a mapping'
  const apiVersion = exec['apiVersion']
  if (typeof apiVersion !== 'string' || !API_VERSIONS.some((known) => known === apiVersion)) {
    return `apiVersion: Invalid value: ${JSON.stringify(apiVersion)}: must be one of ${API_VERSIONS.join(', ')}`
  }
  const command = exec['command']
  if (typeof command !== 'string' || command === '') return 'command: must be given'
  if (exec['interactiveMode'] === 'Always') {
    return 'interactiveMode: Invalid value: "Always": there is no terminal to ask at, must be Never or IfAvailable'
  }
  return {
    apiVersion,
    command: command.includes('/') ? resolve(environment.folder, command) : command,
    args: Array.isArray(exec['args']) ? exec['args'].map(textOf) : [],
    env: (Array.isArray(exec['env']) ? exec['env'] : [])
      .filter(isJsonObject)
      .map((entry) => ({ name: textOf(entry['name']), value: textOf(entry['value']) })),
    installHint: textOf(exec['installHint']),
    cluster: exec['provideClusterInfo'] === true ? clusterInfo(environment) : undefined,
  }
}

function clusterInfo({ server, cluster }: ExecEnvironment): Record<string, unknown> {
  const info: Record<string, unknown> = { server: server.href.replace(/\/$/, '') }
  for (const field of CLUSTER_FIELDS) {
    if (cluster[field] !== undefined) info[field] = cluster[field]
  }
  // An administrator may store settings for the plugin in the cluster's extensions.
  for (const extension of Array.isArray(cluster['extensions']) ? cluster['extensions'] : []) {
    if (isJsonObject(extension) && extension['name'] === 'client.authentication.k8s.io/exec') {
      info['config'] = extension['extension']
    }
  }
  return info
}

/** In YAML an unquoted 1 or true is no text. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}
