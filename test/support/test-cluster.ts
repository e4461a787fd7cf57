// TEMPORARY mini API server until test/support/api-server exists.
import { createServer } from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { control } from './addresses.ts'
import { anEmptyCluster } from './builders.ts'
import type { ApiObject } from './builders.ts'
import type { ServerResponse } from 'node:http'

export interface TestCluster extends AsyncDisposable {
  readonly kubeconfig: string
  put(...objects: readonly ApiObject[]): void
  remove(...objects: readonly ApiObject[]): void
}

const paths: Record<string, { kind: string; apiVersion: string }> = {
  '/api/v1/services': { kind: 'Service', apiVersion: 'v1' },
  '/api/v1/nodes': { kind: 'Node', apiVersion: 'v1' },
  '/apis/discovery.k8s.io/v1/endpointslices': { kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1' },
  '/apis/networking.k8s.io/v1/servicecidrs': { kind: 'ServiceCIDR', apiVersion: 'networking.k8s.io/v1' },
}
export async function openTestCluster(): Promise<TestCluster> {
  let version = 1
  const store = new Map<string, ApiObject>()
  const watchers = new Map<ServerResponse, { kind: string; match: (o: ApiObject) => boolean }>()
  const visible = new Map<ServerResponse, Set<string>>()
  const key = (o: ApiObject) => `${o.kind}/${o.metadata.namespace ?? ''}/${o.metadata.name}`
  const send = (type: string, o: ApiObject) => {
    for (const [res, w] of watchers)
      if (w.kind === o.kind) {
        const seen = visible.get(res)!
        const had = seen.has(key(o))
        const has = type !== 'DELETED' && w.match(o)
        if (has) seen.add(key(o))
        else seen.delete(key(o))
        if (had || has)
          res.write(JSON.stringify({ type: has ? (had ? 'MODIFIED' : 'ADDED') : 'DELETED', object: o }) + '\n')
      }
  }
  const matcher = (url: URL) => {
    const labels = (url.searchParams.get('labelSelector') ?? '').split(',').filter(Boolean)
    const fields = (url.searchParams.get('fieldSelector') ?? '').split(',').filter(Boolean)
    return (o: ApiObject) =>
      labels.every((l) => (l.startsWith('!') ? !(l.slice(1) in (o.metadata.labels ?? {})) : true)) &&
      fields.every((f) =>
        f.startsWith('metadata.name=')
          ? o.metadata.name === f.slice(14)
          : f === 'spec.clusterIP!=None'
            ? (o as { spec?: { clusterIP?: string } }).spec?.clusterIP !== 'None'
            : true,
      )
  }
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', 'http://x')
    const what = paths[url.pathname]
    res.setHeader('content-type', 'application/json')
    if (req.method === 'POST') {
      res.statusCode = 201
      req.resume()
      res.end('{"apiVersion":"v1","kind":"Event","metadata":{}}')
      return
    }
    if (what === undefined) {
      const m = /^\/api\/v1\/nodes\/(.*)$/.exec(url.pathname)
      const n = m && store.get(`Node//${m[1]}`)
      if (n) {
        res.end(JSON.stringify(n))
        return
      }
      res.statusCode = 404
      res.end('{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}')
      return
    }
    const match = matcher(url)
    const items = [...store.values()].filter((o) => o.kind === what.kind && match(o))
    if (url.searchParams.get('watch')) {
      if (url.searchParams.get('sendInitialEvents')) {
        res.statusCode = 422
        res.end('{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422}')
        return
      }
      const from = Number(url.searchParams.get('resourceVersion') ?? 0)
      watchers.set(res, { kind: what.kind, match })
      visible.set(res, new Set(items.map(key)))
      for (const o of items)
        if (Number((o.metadata as { resourceVersion?: string }).resourceVersion) > from)
          res.write(JSON.stringify({ type: 'ADDED', object: o }) + '\n')
      res.flushHeaders()
      res.on('close', () => {
        watchers.delete(res)
        visible.delete(res)
      })
      return
    }
    res.end(
      JSON.stringify({
        kind: `${what.kind}List`,
        apiVersion: what.apiVersion,
        metadata: { resourceVersion: String(version) },
        items,
      }),
    )
  })
  await new Promise<void>((r) => server.listen(0, control.ip[4], r))
  const folder = mkdtempSync(join(tmpdir(), 'kube-proxy-cluster-'))
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'c', cluster: { server: `http://${control.ip[4]}:${(server.address() as { port: number }).port}` } },
      ],
      contexts: [{ name: 'x', context: { cluster: 'c', user: '' } }],
      'current-context': 'x',
    }),
  )
  const cluster: TestCluster = {
    kubeconfig,
    put(...objects) {
      for (const o of objects) {
        const c = structuredClone(o)
        ;(c.metadata as { resourceVersion?: string }).resourceVersion = String(++version)
        store.set(key(o), c)
        send('PUT', c)
      }
    },
    remove(...objects) {
      for (const o of objects) {
        const c = store.get(key(o))
        if (!c) continue
        const d = structuredClone(c)
        ;(d.metadata as { resourceVersion?: string }).resourceVersion = String(++version)
        store.delete(key(o))
        send('DELETED', d)
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((r) => server.close(r))
      rmSync(folder, { recursive: true })
    },
  }
  cluster.put(...anEmptyCluster())
  return cluster
}
