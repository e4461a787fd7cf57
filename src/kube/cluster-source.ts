// The source of services: an API server, or files.

import type { Logger } from '../lib/log.ts'
import type { ApiClient } from './api-client.ts'
import { EarlyRequests } from './early-requests.ts'
import { openApiClient, type ClientSettings } from './open-client.ts'
import type { SentRequest } from './transport.ts'
import { firstPaths, watchCluster, type WatchClusterOptions } from './watch-cluster.ts'

export interface ClusterSource {
  /** For the log: the URL of the API server, or the path of the files. */
  readonly name: string
  /** The API server, for Events; undefined with files. */
  readonly client: ApiClient | undefined
  /** Sends the first requests of watch() early. */
  ask(nodeName: string): void
  /** Feeds the handlers until the signal is aborted. */
  watch(options: Omit<WatchClusterOptions, 'client'>): Promise<void>
  close(): void
}

export interface SourceSettings extends ClientSettings {
  /** `--manifests`: a folder, or a file, in place of an API server. Empty: none. */
  readonly manifests: string
}

/** Throws AccessError when the settings cannot be used. Connects to nothing yet. */
export function openClusterSource(
  settings: SourceSettings,
  log: Logger,
  onRequest: (request: SentRequest) => void,
): ClusterSource {
  const { manifests } = settings
  if (manifests !== '') return manifestSource(manifests)
  const client = new EarlyRequests(openApiClient(settings, log, onRequest))
  return {
    name: client.server,
    client,
    ask: (nodeName) => client.send(firstPaths(nodeName)),
    watch: (options) => watchCluster({ ...options, client }),
    close: () => client.close(),
  }
}

function manifestSource(path: string): ClusterSource {
  return {
    name: path,
    client: undefined,
    ask() {},
    async watch(options) {
      // The YAML parser is only needed with files.
      const { watchManifests } = await import('./manifests/watch-manifests.ts')
      return watchManifests({ ...options, path })
    },
    close() {},
  }
}
