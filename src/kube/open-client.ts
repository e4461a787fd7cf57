// A client of the API server from the user's settings.

import type { Logger } from '../lib/log.ts'
import type { ClusterAccess } from './access/cluster-access.ts'
import { readInClusterAccess } from './access/in-cluster.ts'
import { readKubeconfig } from './access/kubeconfig.ts'
import type { UpgradingClient } from './api-client.ts'
import { type SentRequest, Transport } from './transport.ts'
import { JSON_TYPE, PROTOBUF } from './encoding/codec.ts'

/** clientConnection of KubeProxyConfiguration, and --master. */
export interface ClientSettings {
  readonly kubeconfig: string
  readonly master?: string
  readonly contentType?: string
  readonly acceptContentTypes?: string
  readonly qps?: number
  readonly burst?: number
  readonly userAgent?: string
}

/** Throws AccessError when the settings cannot be used. Connects to nothing yet. */
export function openApiClient(
  settings: ClientSettings,
  log: Logger,
  onRequest: (request: SentRequest) => void = () => {},
): UpgradingClient {
  return new Transport({
    onRequest,
    access: resolveAccess(settings, log),
    userAgent: settings.userAgent ?? 'kube-proxy',
    accept: acceptHeader(settings),
    limits: { qps: settings.qps ?? 0, burst: settings.burst ?? 0 },
    log,
  })
}

function resolveAccess(settings: ClientSettings, log: Logger): ClusterAccess {
  const { kubeconfig, master = '' } = settings
  if (kubeconfig !== '' || master !== '') return readKubeconfig({ path: kubeconfig, master })
  log.info('Neither kubeconfig file nor master URL was specified, falling back to in-cluster config')
  return readInClusterAccess()
}

/** JSON is always accepted: an API server answers with it where it has no protobuf. */
export function acceptHeader(settings: Pick<ClientSettings, 'contentType' | 'acceptContentTypes'>): string {
  if (settings.acceptContentTypes) return settings.acceptContentTypes
  const preferred = settings.contentType || PROTOBUF
  return preferred === JSON_TYPE ? JSON_TYPE : `${preferred},${JSON_TYPE}`
}
