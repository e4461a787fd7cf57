// The API server over HTTPS, as clients see it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { openApiClient } from '../../../../src/kube/open-client.ts'
import { silentLogger } from '../../../../src/lib/log.ts'
import { startApiServer } from './start-api-server.ts'
import { watchCluster } from '../../../../src/kube/watch-cluster.ts'
import { configMaps, endpointSlices, events, services } from './resources/table.ts'
import type { ApiServer } from './start-api-server.ts'
import type { IncomingMessage } from 'node:http'
import type { JsonObject } from './json.ts'

interface Call {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly token?: string | undefined
}

interface Reply {
  readonly code: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly json: Answer
}

/** What the tests look at in an answer. */
type Answer = JsonObject & {
  items: { metadata: { name: string } }[]
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number; uid: string }
  message: string
  reason: string
}

let server: ApiServer
beforeAll(async () => {
  server = await startApiServer({
    serviceCidrs: ['10.96.0.0/16', 'fd00:96::/112'],
    historyLimit: 50,
    bookmarkIntervalMs: 50,
  })
})
afterAll(() => server.close())
afterEach(() => {
  for (const resource of [configMaps, services, endpointSlices, events]) {
    for (const { object } of server.registry.collection(resource).list()) {
      server.registry.delete(resource, { namespace: object.metadata.namespace ?? '', name: object.metadata.name })
    }
  }
})

function open(path: string, call: Call): Promise<IncomingMessage> {
  const { method = 'GET', body, headers = {}, token = server.token } = call
  return new Promise((resolve, reject) => {
    const sent = request(
      `${server.url}${path}`,
      {
        method,
        ca: server.certificateAuthority,
        headers: {
          ...('token' in call && call.token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      },
      resolve,
    )
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body))
  })
}

async function call(path: string, options: Call = {}): Promise<Reply> {
  const response = await open(path, options)
  let text = ''
  for await (const chunk of response as AsyncIterable<Buffer>) text += chunk.toString()
  const isJson = (response.headers['content-type'] ?? '').startsWith('application/json')
  const json = (isJson ? JSON.parse(text) : {}) as Answer
  return { code: response.statusCode ?? 0, headers: response.headers, text, json }
}

interface WatchedEvent {
  readonly type: string
  readonly object: JsonObject & { metadata: { name?: string; resourceVersion: string; annotations?: JsonObject } }
}

/** A watch, and what it has said so far. */
async function watch(path: string): Promise<{ events: WatchedEvent[]; ended: () => boolean; close: () => void }> {
  const response = await open(path, {})
  const events: WatchedEvent[] = []
  let rest = ''
  let ended = false
  response.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    events.push(...lines.map((line) => JSON.parse(line) as WatchedEvent))
  })
  response.on('end', () => (ended = true))
  response.on('error', () => {})
  return { events, ended: () => ended, close: () => response.destroy() }
}

const maps = '/api/v1/namespaces/default/configmaps'
const configMap = (name: string, extra: object = {}) => ({ metadata: { name, ...extra }, data: { a: 'b' } })
const summary = (list: readonly WatchedEvent[]) => list.map(({ type, object }) => `${type} ${object.metadata.name}`)
const until = (what: string, test: () => boolean) => eventually(what, () => (test() ? undefined : 'not yet'))

describe('authentication', () => {
  it('knows the token, refuses others with 401 and strangers with 403', async () => {
    expect((await call(maps)).code).toBe(200)
    expect(await call(maps, { token: 'wrong' })).toMatchObject({ code: 401, json: { reason: 'Unauthorized' } })
    const stranger = await call(maps, { token: undefined })
    expect(stranger.code).toBe(403)
    expect(stranger.json.message).toBe(
      'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "default"',
    )
  })

  it('answers every client that asks for its health and its version', async () => {
    for (const path of ['/healthz', '/livez', '/readyz']) {
      expect(await call(path, { token: undefined })).toMatchObject({ code: 200, text: 'ok' })
    }
    expect((await call('/version', { token: undefined })).json['major']).toBe('1')
    expect((await call('/apis', { token: undefined })).code).toBe(403)
  })

  it('lets a proxy read what it follows, and nothing else', async () => {
    const token = /token: (.+)/.exec(server.kubeconfig({ user: 'kube-proxy' }))![1]!
    expect((await call('/api/v1/services', { token })).code).toBe(200)
    expect((await call('/api/v1/secrets', { token })).code).toBe(403)
    expect((await call('/api/v1/nodes/x', { token, method: 'DELETE' })).code).toBe(403)
  })

  it('answers users who ask what they may do', async () => {
    const token = /token: (.+)/.exec(server.kubeconfig({ user: 'kube-proxy' }))![1]!
    const path = '/apis/authorization.k8s.io/v1'
    const ask = async (verb: string, resource: string, as: { token?: string | undefined } = { token }) => {
      const spec = { resourceAttributes: { verb, group: 'discovery.k8s.io', resource } }
      return call(`${path}/selfsubjectaccessreviews`, { ...as, method: 'POST', body: { spec } })
    }
    expect(await ask('watch', 'endpointslices')).toMatchObject({ code: 201, json: { status: { allowed: true } } })
    expect(await ask('delete', 'endpointslices')).toMatchObject({ code: 201, json: { status: { allowed: false } } })
    expect(await ask('delete', 'endpointslices', {})).toMatchObject({ json: { status: { allowed: true } } })
    expect((await ask('watch', 'endpointslices', { token: undefined })).code).toBe(403)
    const rules = await call(`${path}/selfsubjectrulesreviews`, { token, method: 'POST', body: { spec: {} } })
    expect(rules.json['status']).toMatchObject({
      resourceRules: expect.arrayContaining([
        { verbs: ['get', 'list', 'watch'], apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'] },
      ]) as unknown[],
    })
    expect((await call(`${path}/selfsubjectrulesreviews`)).code).toBe(405)
  })

  it('answers users who ask who they are', async () => {
    const review = await call('/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body: {} })
    expect(review.json['status']).toEqual({
      userInfo: { username: 'admin', groups: ['system:masters', 'system:authenticated'] },
    })
  })
})

describe('lists', () => {
  it('select by labels and fields', async () => {
    server.registry.create(configMaps, { metadata: { name: 'a', namespace: 'default', labels: { tier: 'x' } } })
    server.registry.create(configMaps, { metadata: { name: 'b', namespace: 'default' } })
    const names = async (query: string) =>
      (await call(`${maps}?${query}`)).json.items.map(({ metadata }) => metadata.name)
    expect(await names('labelSelector=tier%3Dx')).toEqual(['a'])
    expect(await names('labelSelector=!tier')).toEqual(['b'])
    expect(await names('fieldSelector=metadata.name!%3Da')).toEqual(['b'])
    expect(await call(`${maps}?fieldSelector=spec.x%3D1`)).toMatchObject({
      code: 400,
      json: { message: 'field label not supported: spec.x' },
    })
  })

  it('come in pages, all of the moment of the first', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      server.registry.create(configMaps, { metadata: { name, namespace: 'default' } })
    }
    const first = await call(`${maps}?limit=2`)
    expect(first.json.metadata.remainingItemCount).toBe(3)
    server.registry.delete(configMaps, { namespace: 'default', name: 'c' })
    server.registry.create(configMaps, { metadata: { name: 'aa', namespace: 'default' } })
    const second = await call(`${maps}?limit=2&continue=${first.json.metadata.continue}`)
    const third = await call(`${maps}?limit=2&continue=${second.json.metadata.continue}`)
    const names = [first, second, third].flatMap(({ json }) => json.items.map(({ metadata }) => metadata.name))
    expect(names).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(third.json.metadata.continue).toBeUndefined()
    expect(third.json.metadata.resourceVersion).toBe(first.json.metadata.resourceVersion)
  })

  it('say that a page is too old when the past is forgotten', async () => {
    for (const name of ['a', 'b']) server.registry.create(configMaps, { metadata: { name, namespace: 'default' } })
    const first = await call(`${maps}?limit=1`)
    for (let i = 0; i < 150; i++) {
      server.registry.modify(
        configMaps,
        { namespace: 'default', name: 'a' },
        (draft) => (draft.data = { i: String(i) }),
      )
    }
    expect(await call(`${maps}?limit=1&continue=${first.json.metadata.continue}`)).toMatchObject({
      code: 410,
      json: { reason: 'Expired' },
    })
    expect((await call(`${maps}?continue=rubbish`)).code).toBe(400)
  })

  it('answer for a revision of the future with a timeout, as kubectl expects it', async () => {
    expect(await call(`${maps}?resourceVersion=999999&resourceVersionMatch=NotOlderThan`)).toMatchObject({
      code: 504,
      json: { reason: 'Timeout' },
    })
  })

  it('answer for a revision that is none with an error of the server', async () => {
    expect(await call(`${maps}?resourceVersion=yesterday`)).toMatchObject({ code: 500 })
  })

  it('are tables on request', async () => {
    await call('/api/v1/namespaces/default/services', {
      method: 'POST',
      body: {
        metadata: { name: 'web' },
        spec: { type: 'NodePort', clusterIP: '10.96.0.9', ports: [{ port: 80, nodePort: 30080 }] },
      },
    })
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
    const { json } = await call('/api/v1/services', { headers: { accept } })
    expect(json['kind']).toBe('Table')
    const columns = (json['columnDefinitions'] as { name: string; priority: number }[]).map(({ name }) => name)
    expect(columns).toEqual(['Name', 'Type', 'Cluster-IP', 'External-IP', 'Port(s)', 'Age', 'Selector'])
    const [row] = json['rows'] as { cells: string[]; object: { kind: string } }[]
    expect(row!.cells).toEqual([
      'web',
      'NodePort',
      '10.96.0.9',
      '<none>',
      '80:30080/TCP',
      expect.stringMatching(/^\ds$/),
      '<none>',
    ])
    expect(row!.object.kind).toBe('PartialObjectMetadata')
  })
})

describe('watches', () => {
  it('go on from a revision, and see objects come into and out of what they select', async () => {
    const { json } = await call(maps)
    const query = `watch=true&resourceVersion=${json.metadata.resourceVersion}`
    const all = await watch(`${maps}?${query}`)
    const some = await watch(`${maps}?${query}&labelSelector=on%3Dyes`)
    const place = { namespace: 'default', name: 'a' }
    server.registry.create(configMaps, configMap('a', { namespace: 'default' }))
    server.registry.modify(configMaps, place, ({ metadata }) => (metadata.labels = { on: 'yes' }))
    server.registry.modify(configMaps, place, (draft) => (draft.data = { a: 'c' }))
    server.registry.modify(configMaps, place, ({ metadata }) => (metadata.labels = {}))
    server.registry.delete(configMaps, place)
    await until('all events arrive', () => all.events.length === 5 && some.events.length === 3)
    expect(summary(all.events)).toEqual(['ADDED a', 'MODIFIED a', 'MODIFIED a', 'MODIFIED a', 'DELETED a'])
    expect(summary(some.events)).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a'])
    const versions = all.events.map(({ object }) => Number(object.metadata.resourceVersion))
    expect(versions).toEqual([...versions].sort((a, b) => a - b))
    expect(new Set(versions).size).toBe(5)
    all.close()
    some.close()
  })

  it('replay what happened since', async () => {
    const { json } = await call(maps)
    server.registry.create(configMaps, configMap('a', { namespace: 'default' }))
    server.registry.delete(configMaps, { namespace: 'default', name: 'a' })
    const late = await watch(`${maps}?watch=1&resourceVersion=${json.metadata.resourceVersion}`)
    await until('both events arrive', () => late.events.length === 2)
    expect(summary(late.events)).toEqual(['ADDED a', 'DELETED a'])
    late.close()
  })

  it('begin with everything when no revision is named', async () => {
    server.registry.create(configMaps, configMap('a', { namespace: 'default' }))
    const fresh = await watch(`${maps}?watch=1`)
    await until('the state arrives', () => fresh.events.length === 1)
    expect(summary(fresh.events)).toEqual(['ADDED a'])
    fresh.close()
  })

  it('end with 410 when the revision is forgotten', async () => {
    const { json } = await call(maps)
    server.registry.create(configMaps, configMap('a', { namespace: 'default' }))
    for (let i = 0; i < 150; i++) {
      server.registry.modify(
        configMaps,
        { namespace: 'default', name: 'a' },
        (draft) => (draft.data = { i: String(i) }),
      )
    }
    const old = await watch(`${maps}?watch=1&resourceVersion=${json.metadata.resourceVersion}`)
    await until('the watch ends', () => old.ended())
    expect(old.events).toMatchObject([{ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }])
  })

  it('are invalid from a revision that is none', async () => {
    expect(await call(`${maps}?watch=1&resourceVersion=yesterday`)).toMatchObject({ code: 422 })
  })

  it('send bookmarks to clients that want them', async () => {
    const marked = await watch(`${maps}?watch=1&resourceVersion=0&allowWatchBookmarks=true`)
    await until('a bookmark arrives', () => marked.events.length > 0)
    expect(marked.events[0]).toMatchObject({
      type: 'BOOKMARK',
      object: { kind: 'ConfigMap', metadata: { resourceVersion: String(server.store.revision) } },
    })
    marked.close()
  })

  it('mark where the initial state ends', async () => {
    server.registry.create(configMaps, configMap('a', { namespace: 'default' }))
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const initial = await watch(`${maps}?watch=1&${query}`)
    await until('the end of the state arrives', () => initial.events.length >= 2)
    expect(initial.events[0]?.type).toBe('ADDED')
    expect(initial.events[1]?.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' })
    initial.close()
    expect((await call(`${maps}?watch=1&sendInitialEvents=true`)).code).toBe(422)
  })

  it('end after the time that was asked for', async () => {
    const short = await watch(`${maps}?watch=1&timeoutSeconds=1&resourceVersion=${server.store.revision}`)
    await until('the watch ends', () => short.ended())
    expect(short.events).toEqual([])
  })
})

describe('writes', () => {
  const post = (body: unknown, query = '') => call(`${maps}${query}`, { method: 'POST', body })

  it('answer with the object, and with 409 for what exists', async () => {
    const created = await post(configMap('a'))
    expect(created).toMatchObject({ code: 201, json: { kind: 'ConfigMap', apiVersion: 'v1', data: { a: 'b' } } })
    expect(await post(configMap('a'))).toMatchObject({ code: 409, json: { reason: 'AlreadyExists' } })
  })

  it('refuse bodies that are no object of the kind', async () => {
    expect((await post('{"kind":')).json.message).toContain('must be of type ConfigMap')
    expect((await post({ kind: 'Secret', apiVersion: 'v1', metadata: { name: 'a' } })).json.message).toBe(
      'Secret in version "v1" cannot be handled as a ConfigMap',
    )
    expect((await post({ metadata: { name: 'a', namespace: 'other' } })).json.message).toBe(
      'the namespace of the provided object does not match the namespace sent on the request',
    )
    const headers = { 'content-type': 'text/plain' }
    expect((await call(maps, { method: 'POST', body: 'x', headers })).code).toBe(415)
  })

  it('refuse, name or drop unknown fields, as the request says', async () => {
    const odd = { ...configMap('a'), foo: 1 }
    expect(await post(odd, '?fieldValidation=Strict')).toMatchObject({
      code: 400,
      json: {
        message:
          'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo"',
      },
    })
    const warned = await post(odd)
    expect(warned.code).toBe(201)
    expect(warned.headers['warning']).toBe('299 - "unknown field \\"foo\\""')
    expect((await post({ ...configMap('b'), foo: 1 }, '?fieldValidation=Ignore')).headers['warning']).toBeUndefined()
  })

  it('take YAML', async () => {
    const headers = { 'content-type': 'application/yaml' }
    const reply = await call(maps, { method: 'POST', body: 'metadata: {name: y}\ndata: {a: b}\n', headers })
    expect(reply).toMatchObject({ code: 201, json: { data: { a: 'b' } } })
    expect((await call(`${maps}/y`, { headers: { accept: 'application/yaml' } })).text).toContain('data:\n  a: b\n')
  })

  it('patch in three languages', async () => {
    await post(configMap('a'))
    const patch = (type: string, body: unknown) =>
      call(`${maps}/a`, { method: 'PATCH', body, headers: { 'content-type': `application/${type}` } })
    const merged = await patch('merge-patch+json', { data: { a: null, c: 'd' } })
    expect(merged.json['data']).toEqual({ c: 'd' })
    const stepped = await patch('json-patch+json', [{ op: 'add', path: '/data/e', value: 'f' }])
    expect(stepped.json['data']).toEqual({ c: 'd', e: 'f' })
    const strategic = await patch('strategic-merge-patch+json', { metadata: { finalizers: ['example.com/x'] } })
    expect(strategic.json.metadata).toMatchObject({ finalizers: ['example.com/x'] })
    await patch('merge-patch+json', { metadata: { finalizers: null } })
    const stale = { metadata: { resourceVersion: '1' } }
    expect((await patch('merge-patch+json', stale)).code).toBe(409)
    expect((await patch('json-patch+json', [{ op: 'test', path: '/data/c', value: 'x' }])).code).toBe(422)
    expect((await patch('foo', {})).code).toBe(415)
  })

  it('say that there is no apply on the server', async () => {
    const headers = { 'content-type': 'application/apply-patch+yaml' }
    const answer = await call(`${maps}/a?fieldManager=me`, { method: 'PATCH', body: '{data: {a: b}}', headers })
    expect(answer.code).toBe(415)
    expect(JSON.stringify(answer.json)).toContain('leave out --server-side')
  })

  it('delete with a Status, and a whole collection by selector', async () => {
    const { json } = await post(configMap('a'))
    expect((await call(`${maps}/a`, { method: 'DELETE' })).json).toMatchObject({
      kind: 'Status',
      status: 'Success',
      details: { name: 'a', kind: 'configmaps', uid: json.metadata.uid },
    })
    expect(await call(`${maps}/a`, { method: 'DELETE' })).toMatchObject({
      code: 404,
      json: { message: 'configmaps "a" not found' },
    })
    await post(configMap('b', { labels: { x: 'y' } }))
    await post(configMap('c'))
    await call(`${maps}?labelSelector=x%3Dy`, { method: 'DELETE' })
    expect((await call(maps)).json.items.map(({ metadata }) => metadata.name)).toEqual(['c'])
  })

  it('do nothing in a dry run', async () => {
    expect((await post(configMap('a'), '?dryRun=All')).code).toBe(201)
    expect((await call(`${maps}/a`)).code).toBe(404)
  })
})

describe('paths', () => {
  it.each([
    ['GET', '/nope', 404],
    ['GET', '/api/v1/namespaces/%zz', 400],
    ['GET', '//', 404],
    ['GET', '/api/v1/nope', 404],
    ['GET', '/apis/apps/v2/deployments', 404],
    ['GET', '/api/v1/pods/a', 404],
    ['POST', `${maps}/a`, 405],
    ['GET', '/api/v1/namespaces/default/services/a/scale', 404],
    ['GET', '/api/v1/namespaces/default/pods/a/log', 404],
  ])('%s %s: %d', async (method, path, code) => expect((await call(path, { method })).code).toBe(code))

  it('refuse media types that no encoder makes', async () => {
    expect((await call(maps, { headers: { accept: 'text/html' } })).code).toBe(406)
  })
})

describe('events', () => {
  it('are the same in both versions', async () => {
    await call('/apis/events.k8s.io/v1/namespaces/default/events', {
      method: 'POST',
      body: {
        metadata: { name: 'e' },
        eventTime: '2026-01-01T00:00:00.000001Z',
        reportingController: 'kube-proxy',
        reportingInstance: 'node-1',
        action: 'StartKubeProxy',
        reason: 'Starting',
        regarding: { kind: 'Node', name: 'node-1' },
        type: 'Normal',
        note: 'hello',
      },
    })
    const old = await call('/api/v1/namespaces/default/events/e')
    expect(old.json).toMatchObject({
      apiVersion: 'v1',
      involvedObject: { kind: 'Node', name: 'node-1' },
      message: 'hello',
      reportingComponent: 'kube-proxy',
    })
    const list = await call('/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dnode-1')
    expect(list.json.items).toMatchObject([{ note: 'hello', regarding: { name: 'node-1' } }])
    const seen = await watch('/apis/events.k8s.io/v1/events?watch=1')
    await until('the event arrives', () => seen.events.length === 1)
    expect(seen.events[0]?.object).toMatchObject({ apiVersion: 'events.k8s.io/v1', note: 'hello' })
    seen.close()
  })
})

describe('the proxy', () => {
  it.each(['application/vnd.kubernetes.protobuf', 'application/json'])('follows it in %s', async (contentType) => {
    const folder = mkdtempSync(join(tmpdir(), 'api-server-'))
    const kubeconfig = join(folder, 'kubeconfig')
    writeFileSync(kubeconfig, server.kubeconfig({ user: 'kube-proxy' }))
    const client = openApiClient({ kubeconfig, contentType }, silentLogger)
    const stop = new AbortController()
    const seen: string[] = []
    const note = (kind: string) => ({
      onEvents: (batch: readonly { type: string; key: string }[]) => {
        for (const { type, key } of batch) seen.push(`${kind} ${type} ${key}`)
      },
    })
    const handlers = {
      services: note('service'),
      slices: note('slice'),
      node: note('node'),
      serviceCidrs: note('cidr'),
    }
    const done = watchCluster({ client, nodeName: 'node-1', handlers, log: silentLogger, signal: stop.signal })
    await until('the ranges are listed', () => seen.includes('cidr set kubernetes'))
    const place = { namespace: 'default', name: 'web' }
    server.registry.create(services, { metadata: place, spec: { ports: [{ port: 80 }] } })
    server.registry.create(services, {
      metadata: { ...place, name: 'headless' },
      spec: { clusterIP: 'None', ports: [{ port: 80 }] },
    })
    server.registry.create(endpointSlices, {
      metadata: { ...place, labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.1.0.1'], conditions: { ready: true } }],
      ports: [{ port: 8080 }],
    })
    await until('the slice arrives', () => seen.includes('slice set default/web'))
    server.registry.delete(services, place)
    await until('the deletion arrives', () => seen.includes('service delete default/web'))
    expect(seen).toContain('service set default/web')
    expect(seen).not.toContain('service set default/headless')
    stop.abort()
    await done
    client.close()
    rmSync(folder, { recursive: true })
  })
})
