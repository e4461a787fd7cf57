// The cluster of a test: an API server in the control namespace, and the kubeconfig that leads to it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { control } from './addresses.ts'
import { TestApiServer } from './api-server/api-server.ts'
import { keyOf, resourceOf } from './api-server/objects.ts'
import { anEmptyCluster } from './builders.ts'
import type { ApiServerOptions } from './api-server/api-server.ts'
import type { ApiObject as ServedObject } from './api-server/objects.ts'
import type { ApiObject } from './builders.ts'

export class TestCluster implements AsyncDisposable {
  readonly server: TestApiServer
  /** A folder for files of this cluster. */
  readonly folder: string
  readonly kubeconfig: string

  constructor(server: TestApiServer) {
    this.server = server
    this.folder = mkdtempSync(join(tmpdir(), 'kube-proxy-cluster-'))
    this.kubeconfig = join(this.folder, 'kubeconfig')
    writeFileSync(this.kubeconfig, kubeconfigFor(server.url))
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
  const cluster = new TestCluster(await TestApiServer.start({ host: control.ip[4], ...options }))
  cluster.put(...anEmptyCluster())
  return cluster
}

/** The server sees JSON; what the builders promise about it is their own affair. */
function asServed(object: ApiObject): ServedObject {
  return structuredClone(object) as unknown as ServedObject
}

/** YAML is a superset of JSON. */
function kubeconfigFor(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server } }],
    users: [{ name: 'proxy', user: { token: 'a-token' } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'proxy' } }],
    'current-context': 'test',
  })
}
