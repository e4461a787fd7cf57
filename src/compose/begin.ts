// Sends the first requests to the API server, before the rest of the program is loaded.

import type { RunOptions } from '../config/run-options.ts'
import { type ClusterSource, openClusterSource } from '../kube/cluster-source.ts'
import type { SentRequest } from '../kube/transport.ts'
import { nodeNameOf } from './settings.ts'

/** The source of objects, and the results of the requests to it. */
export interface BegunSource {
  readonly source: ClusterSource
  /** Sets the listener for results of requests. It also gets the earlier ones. */
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
