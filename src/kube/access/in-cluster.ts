// Access for a pod: the service account that Kubernetes mounts into it.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AccessError, type ClusterAccess } from './cluster-access.ts'

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

export interface InClusterOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Where the service account is mounted. */
  readonly serviceAccount?: string
}

/** Throws outside of a pod. Token and authorities are read from files because they are rotated. */
export function readInClusterAccess(options: InClusterOptions = {}): ClusterAccess {
  const env = options.env ?? process.env
  const folder = options.serviceAccount ?? SERVICE_ACCOUNT
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (!host || !port) {
    throw new AccessError(
      'Cannot use in-cluster configuration: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined' +
        ' (outside a cluster, give --kubeconfig or --master)',
    )
  }
  const tokenFile = join(folder, 'token')
  if (!existsSync(tokenFile)) {
    throw new AccessError(`Cannot use in-cluster configuration: open ${tokenFile}: no such file or directory`)
  }
  const caFile = join(folder, 'ca.crt')
  return {
    server: new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`),
    tls: {
      ca: existsSync(caFile) ? { file: caFile } : undefined,
      clientCertificate: undefined,
      serverName: undefined,
      verify: true,
    },
    authentication: { type: 'tokenFile', file: tokenFile },
    impersonation: {},
    proxyUrl: undefined,
  }
}
