// What a proxy begins with, before the rest of the program is loaded: its questions to the API server.

import type { RunOptions } from '../config/run-options.ts'
import { type ClusterSource, openClusterSource } from '../kube/cluster-source.ts'
import type { SentRequest } from '../kube/transport.ts'
import { nodeNameOf } from './settings.ts'

/** Where the cluster is known from, and what became of the requests to it. */
export interface BegunSource {
  readonly source: ClusterSource
  /** Told about each request, those before included. */
  readonly countRequests: (count: (request: SentRequest) => void) => void
}

/** Throws AccessError when the settings cannot be used. */
export function beginSource({ config, log, master, manifests }: RunOptions): BegunSource {
  const sent: SentRequest[] = []
  let count = (request: SentRequest): void => void sent.push(request)
  const settings = { ...config.clientConnection, master, manifests }
  const source = openClusterSource(settings, log, (request) => count(request))
  source.ask(nodeNameOf(config))
  return {
    source,
    countRequests: (next) => {
      count = next
      sent.splice(0).forEach(next)
    },
  }
}
