// The API server of the tests: what fails here is no fault of the program.

import { get } from 'node:https'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { issueAuthority, issueServing } from '../../packages/sandbox/src/apiserver/certificate.ts'
import { proxyRules } from '../../packages/sandbox/src/apiserver/http/users.ts'
import { TestApiServer } from './api-server/api-server.ts'
import { STATUS, type Misbehaviour } from './api-server/faults.ts'
import type { IncomingMessage } from 'node:http'

const hostile = {
  metadata: { name: 'hostile', labels: { a: null }, annotations: null },
  spec: { ports: ['x', { port: {} }], clusterIP: 7, type: null },
}

test('what no API server takes is stored, listed and watched as it is', async () => {
  await using server = await TestApiServer.start()
  const watch = await fetch(`${server.url}/api/v1/services?watch=1&fieldSelector=spec.clusterIP!=None`)
  server.store.apply({ kind: 'Service', ...hostile } as never)
  const { items } = (await (await fetch(`${server.url}/api/v1/services`)).json()) as { items: object[] }
  expect(items).toMatchObject([hostile])
  const { value } = (await watch.body!.getReader().read()) as { value: Uint8Array }
  expect(JSON.parse(Buffer.from(value).toString())).toMatchObject({ type: 'ADDED', object: hostile })
})

/** A server over TLS, for a proxy. */
async function startSecure() {
  const authority = issueAuthority(Date.now())
  const { key, certificate: cert } = issueServing(authority, ['127.0.0.1'], Date.now())
  const users = [{ name: 'system:kube-proxy', token: 'secret', rules: proxyRules }]
  const server = await TestApiServer.start({ tls: { key, cert }, users })
  const ask = async (path: string, token = 'secret'): Promise<string> => {
    const options = { ca: authority.certificate, headers: { authorization: `Bearer ${token}` }, agent: false } as const
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        get(`${server.url}${path}`, options, resolve).on('error', reject)
      })
      return `${response.statusCode} ${await text(response)}`
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? String(error)
    }
  }
  return { server, ask }
}

test('over TLS a proxy may do what it needs, and no more', async () => {
  const { server, ask } = await startSecure()
  expect(await ask('/api/v1/services')).toContain('200 {"apiVersion":"v1","kind":"ServiceList"')
  expect(await ask('/api/v1/secrets')).toContain('403')
  expect(await ask('/api/v1/services', 'wrong')).toContain('401')
  await server.stop()
})

test.for<[Misbehaviour, RegExp]>([
  [{ type: 'drop' }, /^ECONNRESET$/],
  [{ type: 'cut', afterBytes: 10 }, /^ECONNRESET$/],
  [{ type: 'garbage', bytes: Buffer.from('nonsense') }, /^200 nonsense$/],
  [{ type: 'slow', pieceBytes: 50, pauseMs: 1 }, /^200 \{.*"name":"a".*\}\n$/],
  [{ type: 'empty' }, /^200 \{.*"items":\[\]\}\n$/],
  [{ type: 'version', version: 'yesterday' }, /^200 \{.*"resourceVersion":"yesterday".*"name":"a"/],
  [{ type: 'status', status: STATUS.expired }, /^410 .*too old/],
])('a list can go wrong over TLS, once: %j', async ([what, outcome]) => {
  const { server, ask } = await startSecure()
  server.store.apply({ kind: 'Endpoints', metadata: { name: 'a' } })
  server.fail({ on: 'list', what })
  expect(await ask('/api/v1/endpoints')).toMatch(outcome)
  expect(await ask('/api/v1/endpoints')).toMatch(/^200 \{.*"name":"a"/)
  await server.stop()
})
