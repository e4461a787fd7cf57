// The cluster of a test: the sandbox's API server in the control namespace, and the kubeconfig with which a proxy comes to
// it: over TLS, with the rights of a proxy and no others.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { control } from './addresses.ts'
import { TestApiServer } from './api-server/api-server.ts'
import { keyOf, resourceOf } from './api-server/objects.ts'
import { anEmptyCluster } from './builders.ts'
import { formatKubeconfig } from '../../packages/sandbox/src/apiserver/kubeconfig.ts'
import { issueAuthority, issueServing } from '../../packages/sandbox/src/apiserver/certificate.ts'
import { proxyRules } from '../../packages/sandbox/src/apiserver/http/users.ts'
import type { ApiServerOptions } from './api-server/api-server.ts'
import type { ApiObject as ServedObject } from './api-server/objects.ts'
import type { ApiObject } from './builders.ts'

export class TestCluster implements AsyncDisposable {
  readonly server: TestApiServer
  /** A folder for files of this cluster. */
  readonly folder: string
  readonly kubeconfig: string

  constructor(server: TestApiServer, access: { readonly certificateAuthority: string; readonly token: string }) {
    this.server = server
    this.folder = mkdtempSync(join(tmpdir(), 'kube-proxy-cluster-'))
    this.kubeconfig = join(this.folder, 'kubeconfig')
    writeFileSync(this.kubeconfig, formatKubeconfig({ url: server.url, user: 'kube-proxy', ...access }))
  }

  /** Creates the objects, or replaces those of their names. */
  put(...objects: readonly ApiObject[]): void {
    for (const object of objects) this.server.store.apply(asServed(object))
  }

  /** Deletes the objects; those that do not exist are passed over. */
  remove(...objects: readonly ApiObject[]): void {
    for (const object of objects) this.server.store.delete(resourceOf(asServed(object)), keyOf(asServed(object)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A cluster with the two nodes and no service. */
export async function openTestCluster(options: ApiServerOptions = {}): Promise<TestCluster> {
  const host = control.ip[4]
  const token = 'a-token'
  const authority = issueAuthority(Date.now())
  const { key, certificate: cert } = issueServing(authority, [host], Date.now())
  const users = [{ name: 'system:kube-proxy', token, rules: proxyRules }]
  const server = await TestApiServer.start({ host, tls: { key, cert }, users, ...options })
  const cluster = new TestCluster(server, { certificateAuthority: authority.certificate, token })
  cluster.put(...anEmptyCluster())
  return cluster
}

/** The server sees JSON; what the builders promise about it is their own affair. */
function asServed(object: ApiObject): ServedObject {
  return structuredClone(object) as unknown as ServedObject
}
