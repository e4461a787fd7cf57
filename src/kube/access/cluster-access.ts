// How to reach an API server and as which user: from a kubeconfig file, or from a pod's environment.

import type { Buffer } from 'node:buffer'

/** Bytes in the configuration, or in a file that an operator may replace at any time. */
export type Material = { readonly data: Buffer } | { readonly file: string }

export interface TlsAccess {
  /** Certificate authorities to trust instead of the system's. */
  readonly ca: Material | undefined
  readonly clientCertificate: { readonly cert: Material; readonly key: Material } | undefined
  /** The name that the server's certificate must carry, when it is not the server's address. */
  readonly serverName: string | undefined
  readonly verify: boolean
}

/** For the Authorization header. */
export type Authentication =
  | { readonly type: 'anonymous' }
  | { readonly type: 'token'; readonly token: string }
  | { readonly type: 'tokenFile'; readonly file: string }
  | { readonly type: 'basic'; readonly username: string; readonly password: string }
  | { readonly type: 'exec'; readonly plugin: ExecPluginConfig }

/** users[].user.exec of a kubeconfig. */
export interface ExecPluginConfig {
  readonly apiVersion: string
  /** Resolved against the kubeconfig's folder when it was a relative path. */
  readonly command: string
  readonly args: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly installHint: string
  /** spec.cluster for the plugin, when it asked for it with provideClusterInfo. */
  readonly cluster: Readonly<Record<string, unknown>> | undefined
}

export interface ClusterAccess {
  readonly server: URL
  readonly tls: TlsAccess
  readonly authentication: Authentication
  /** Impersonate-User and its relatives. */
  readonly impersonation: Readonly<Record<string, string | readonly string[]>>
  /** From the kubeconfig; when absent the environment decides (HTTPS_PROXY, NO_PROXY). */
  readonly proxyUrl: URL | undefined
}

/** An access configuration that cannot be used. */
export class AccessError extends Error {
  override readonly name = 'AccessError'
}
