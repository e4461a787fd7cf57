import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { TestApiServer, type ApiServerOptions } from '../../test/support/api-server/api-server.ts'
import { createCertificates, type TestCertificates } from '../../test/support/api-server/certificates.ts'
import { STATUS } from '../../test/support/api-server/faults.ts'
import { quietLog } from '../../test/support/api-server/quiet-log.ts'
import type { ClusterAccess, TlsAccess } from './access/cluster-access.ts'
import type { ApiClient } from './api-client.ts'
import { ApiError } from './api-error.ts'
import { acceptHeader, openApiClient } from './open-client.ts'
import { readStart } from './read-body.ts'
import { systemClock } from '../lib/clock.ts'
import { type SentRequest, Transport } from './transport.ts'

const PATH = '/api/v1/services'

let folder: string
let certificates: TestCertificates
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'transport-'))
  certificates = createCertificates()
})
afterAll(() => rmSync(folder, { recursive: true }))

function plainTls(fields: Partial<TlsAccess> = {}): TlsAccess {
  return { ca: undefined, clientCertificate: undefined, serverName: undefined, verify: true, ...fields }
}

function clientOf(server: string, access: Partial<ClusterAccess> = {}, responseTimeoutMs: number = 2000): Transport {
  return new Transport({
    access: {
      server: new URL(server),
      tls: plainTls(),
      authentication: { type: 'anonymous' },
      impersonation: {},
      proxyUrl: undefined,
      ...access,
    },
    userAgent: 'test-agent',
    accept: 'application/json',
    limits: { qps: -1, burst: 0 },
    log: quietLog(),
    responseTimeoutMs,
  })
}

async function get(client: ApiClient, path: string = PATH): Promise<string> {
  const response = await client.request({ path })
  return (await readStart(response, systemClock)).toString('utf8')
}

async function* started(options: ApiServerOptions): AsyncGenerator<TestApiServer> {
  await using server = await TestApiServer.start(options)
  yield server
}

function httpsOptions(): ApiServerOptions {
  const { ca, server } = certificates
  return { tls: { ...server, ca, requestCert: true, rejectUnauthorized: false } }
}

describe('Transport.request()', () => {
  test('tells about each request, for the metrics', async () => {
    await using server = await TestApiServer.start()
    const sent: SentRequest[] = []
    const client = openApiClient({ kubeconfig: '', master: server.url, qps: -1 }, quietLog(), (request) =>
      sent.push(request),
    )
    await get(client)
    await expect(client.request({ path: '/nowhere' })).rejects.toThrow('404')
    const stop = new AbortController()
    ;(await client.request({ path: `${PATH}?watch=true`, signal: stop.signal })).on('error', () => {}).destroy()
    await server.stop()
    await expect(get(client)).rejects.toThrow('Cannot reach')
    client.close()
    const { host } = new URL(server.url)
    expect(sent.map(({ tookMs, ...rest }) => ({ ...rest, timed: tookMs !== undefined }))).toEqual([
      { method: 'GET', host, code: '200', timed: true },
      { method: 'GET', host, code: '404', timed: true },
      { method: 'GET', host, code: '200', timed: false },
      { method: 'GET', host, code: '<error>', timed: true },
    ])
  })

  test('sends user agent, accepted types, impersonation and body', async () => {
    await using server = await TestApiServer.start()
    const client = clientOf(server.url, { impersonation: { 'Impersonate-User': 'jane' } })
    const path = '/api/v1/namespaces/default/endpoints'
    await client.request({ method: 'POST', path, body: { metadata: { name: 'a' } } })
    client.close()
    expect(server.requests[0]).toMatchObject({
      method: 'POST',
      path,
      body: '{"metadata":{"name":"a"}}',
      headers: {
        'user-agent': 'test-agent',
        accept: 'application/json',
        'impersonate-user': 'jane',
        'content-type': 'application/json',
      },
    })
  })

  test('uses one connection for requests one after the other', async () => {
    await using server = await TestApiServer.start()
    const client = clientOf(server.url)
    await get(client)
    await get(client)
    expect(server.connectionCount).toBe(1)
    client.close()
  })

  test('asks again at once when a kept connection turns out to be dead', async () => {
    await using server = await TestApiServer.start()
    const client = clientOf(server.url)
    await get(client)
    server.fail({ on: 'list', what: { type: 'drop' } })
    await expect(get(client)).resolves.toContain('ServiceList')
    client.close()
  })

  test('rejects when a new connection is dropped', async () => {
    await using server = await TestApiServer.start()
    server.fail({ on: 'list', what: { type: 'drop' } })
    const client = clientOf(server.url)
    await expect(get(client)).rejects.toThrow(`Cannot reach API server ${server.url}`)
    client.close()
  })

  test('rejects when no server listens', async () => {
    const server = await TestApiServer.start()
    await server.stop()
    await expect(get(clientOf(server.url))).rejects.toThrow('ECONNREFUSED')
  })

  test('rejects when there is no answer in time', async () => {
    await using server = await TestApiServer.start()
    server.fail({ on: 'list', what: { type: 'hang' } })
    await expect(get(clientOf(server.url, {}, 50))).rejects.toThrow('no answer within 0.05 s')
  })

  test('rejects with an ApiError that says what the Status said, from either encoding', async () => {
    await using server = await TestApiServer.start()
    for (const accept of ['application/json', 'application/vnd.kubernetes.protobuf']) {
      server.fail({ on: 'list', what: { type: 'status', status: STATUS.tooManyRequests, retryAfterSeconds: 7 } })
      const error = await clientOf(server.url)
        .request({ path: PATH, accept })
        .catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(ApiError)
      expect(error).toMatchObject({ status: 429, reason: 'TooManyRequests', retryAfterMs: 7000 })
      expect(String(error)).toContain('the server has received too many requests')
    }
  })

  test('rejects at once when the signal is aborted', async () => {
    await using server = await TestApiServer.start()
    server.fail({ on: 'list', what: { type: 'hang' } })
    const stop = new AbortController()
    const pending = clientOf(server.url).request({ path: PATH, signal: stop.signal })
    setTimeout(() => stop.abort(), 20)
    await expect(pending).rejects.toThrow()
  })

  test('waits for the rate limiter', async () => {
    await using server = await TestApiServer.start()
    const { url } = server
    writeFileSync(join(folder, 'limited'), kubeconfigFor(url))
    const client = openApiClient({ kubeconfig: join(folder, 'limited'), qps: 20, burst: 1 }, quietLog())
    const startMs = performance.now()
    await Promise.all([get(client), get(client), get(client)])
    client.close()
    expect(performance.now() - startMs).toBeGreaterThan(90)
  })
})

function kubeconfigFor(server: string): string {
  return JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server } }],
    users: [{ name: 'x', user: {} }],
  })
}

function trusting(): TlsAccess {
  return plainTls({ ca: { data: Buffer.from(certificates.ca) } })
}

describe('credentials of a Transport', () => {
  test('a token file is read again when it changes, and its last content kept while it is missing', async () => {
    await using server = await TestApiServer.start(httpsOptions())
    const file = join(folder, 'token')
    writeFileSync(file, 'first\n')
    const client = clientOf(server.url, { tls: trusting(), authentication: { type: 'tokenFile', file } })
    await get(client)
    writeFileSync(`${file}.new`, 'second\n')
    renameSync(`${file}.new`, file)
    await get(client)
    rmSync(file)
    await get(client)
    client.close()
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first',
      'Bearer second',
      'Bearer second',
    ])
  })

  test('basic authentication is encoded', async () => {
    await using server = await TestApiServer.start(httpsOptions())
    const authentication = { type: 'basic', username: 'a', password: 'b' } as const
    const client = clientOf(server.url, { tls: trusting(), authentication })
    await get(client)
    client.close()
    expect(server.requests[0]?.headers.authorization).toBe('Basic YTpi')
  })

  test('an exec plugin is asked again when the API server answers 401', async () => {
    const counter = join(folder, 'counter')
    writeFileSync(counter, '')
    const status = '{"token":"t'
    const script = `echo x >> ${counter}; printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":${status}%s"}}' $(wc -l < ${counter})`
    const plugin = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: '/bin/sh',
      args: ['-c', script],
      env: [],
      installHint: '',
      cluster: undefined,
    }
    await using server = await TestApiServer.start({
      ...httpsOptions(),
      authorize: (request) => request.headers.authorization === 'Bearer t2',
    })
    const client = clientOf(server.url, { tls: trusting(), authentication: { type: 'exec', plugin } })
    await expect(get(client)).resolves.toContain('ServiceList')
    client.close()
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer t1', 'Bearer t2'])
  })

  test('a static token that is refused is an ApiError with status 401', async () => {
    await using server = await TestApiServer.start({ ...httpsOptions(), authorize: () => false })
    const client = clientOf(server.url, { tls: trusting(), authentication: { type: 'token', token: 'x' } })
    await expect(get(client)).rejects.toMatchObject({ status: 401 })
    client.close()
  })

  test.each([
    { type: 'token', token: 'SECRET' },
    { type: 'tokenFile', file: '/nowhere' },
    { type: 'basic', username: 'a', password: 'SECRET' },
    {
      type: 'exec',
      plugin: { apiVersion: 'v1', command: '/bin/false', args: [], env: [], installHint: '', cluster: undefined },
    },
  ] as const)('nothing secret goes over plain http: $type', async (authentication) => {
    await using server = await TestApiServer.start()
    const client = clientOf(server.url, { authentication })
    await expect(get(client)).resolves.toContain('ServiceList')
    client.close()
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([undefined])
  })
})

describe('TLS of a Transport', () => {
  test('trusts the given authority only', async () => {
    for await (const server of started(httpsOptions())) {
      const trusting = clientOf(server.url, { tls: plainTls({ ca: { data: Buffer.from(certificates.ca) } }) })
      await expect(get(trusting)).resolves.toContain('ServiceList')
      trusting.close()
      await expect(get(clientOf(server.url))).rejects.toThrow(/unable to (verify|get)|self.signed/)
    }
  })

  test('trusts whom the machine trusts, where no authority is given', async () => {
    const file = join(folder, 'roots.crt')
    writeFileSync(file, certificates.ca)
    vi.stubEnv('SSL_CERT_FILE', file)
    try {
      for await (const server of started(httpsOptions())) {
        const client = clientOf(server.url)
        await expect(get(client)).resolves.toContain('ServiceList')
        client.close()
      }
    } finally {
      vi.unstubAllEnvs()
    }
  })

  test('verifies nothing with insecure-skip-tls-verify', async () => {
    for await (const server of started(httpsOptions())) {
      const client = clientOf(server.url, { tls: plainTls({ verify: false }) })
      await expect(get(client)).resolves.toContain('ServiceList')
      client.close()
    }
  })

  test('checks the certificate against tls-server-name', async () => {
    for await (const server of started(httpsOptions())) {
      const ca = { data: Buffer.from(certificates.ca) }
      const right = clientOf(server.url, { tls: plainTls({ ca, serverName: 'kubernetes.default.svc' }) })
      await expect(get(right)).resolves.toContain('ServiceList')
      right.close()
      const wrong = clientOf(server.url, { tls: plainTls({ ca, serverName: 'example.com' }) })
      await expect(get(wrong)).rejects.toThrow('example.com')
    }
  })

  test('presents the client certificate, and a new one after its file has changed', async () => {
    const seen: string[] = []
    const options: ApiServerOptions = {
      ...httpsOptions(),
      authorize: (request) => {
        seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject?.CN))
        return true
      },
    }
    const files = { cert: join(folder, 'client.crt'), key: join(folder, 'client.key') }
    const store = (pair: TestCertificates['client']): void => {
      writeFileSync(files.cert, pair.cert)
      writeFileSync(files.key, pair.key)
    }
    store(certificates.client)
    for await (const server of started(options)) {
      const client = clientOf(server.url, {
        tls: plainTls({
          ca: { data: Buffer.from(certificates.ca) },
          clientCertificate: { cert: { file: files.cert }, key: { file: files.key } },
        }),
      })
      await get(client)
      store(certificates.otherClient)
      await get(client)
      client.close()
    }
    expect(seen).toEqual(['kube-proxy', 'kube-proxy-2'])
  })
})

describe('proxies of a Transport', () => {
  /** An HTTP proxy that knows CONNECT and nothing else. */
  async function startProxy(asked: string[], scheme: 'http' | 'https' = 'http'): Promise<http.Server> {
    const proxy = scheme === 'http' ? http.createServer() : https.createServer(httpsOptions().tls ?? {})
    proxy.on('connect', (request, socket) => {
      asked.push(`${request.url} ${request.headers['proxy-authorization'] ?? ''}`)
      const [host = '', port = ''] = (request.url ?? '').split(':')
      const target = connect(Number(port), host, () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
        target.pipe(socket).pipe(target)
      })
      target.on('error', () => socket.destroy())
      socket.on('error', () => target.destroy())
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    return proxy
  }

  test.each(['http', 'https'] as const)(
    'an %s proxy-url tunnels https through CONNECT, with its credentials',
    async (scheme) => {
      const asked: string[] = []
      const proxy = await startProxy(asked, scheme)
      const { port } = proxy.address() as AddressInfo
      for await (const server of started(httpsOptions())) {
        const client = clientOf(server.url, {
          tls: plainTls({ ca: { data: Buffer.from(certificates.ca) } }),
          proxyUrl: new URL(`${scheme}://me:secret@127.0.0.1:${port}`),
        })
        await expect(get(client)).resolves.toContain('ServiceList')
        client.close()
        expect(asked).toEqual([`${new URL(server.url).host} Basic bWU6c2VjcmV0`])
      }
      proxy.close()
    },
  )

  test('between two files of credentials that are replaced, a request fails, and the next one does not', async () => {
    const proxy = await startProxy([])
    const { port } = proxy.address() as AddressInfo
    const closed = new Promise((resolve) => proxy.once('connect', (_, socket) => socket.once('close', resolve)))
    const files = { cert: join(folder, 'rotated.crt'), key: join(folder, 'rotated.key') }
    writeFileSync(files.cert, certificates.otherClient.cert)
    writeFileSync(files.key, certificates.client.key)
    for await (const server of started(httpsOptions())) {
      const clientCertificate = { cert: { file: files.cert }, key: { file: files.key } }
      const client = clientOf(server.url, {
        tls: plainTls({ ca: { data: Buffer.from(certificates.ca) }, clientCertificate }),
        proxyUrl: new URL(`http://127.0.0.1:${port}`),
      })
      await expect(get(client)).rejects.toThrow('key values mismatch')
      await closed
      writeFileSync(files.key, certificates.otherClient.key)
      await expect(get(client)).resolves.toContain('ServiceList')
      client.close()
    }
    proxy.close()
  })

  test.each(['http', 'https'] as const)('a socks5 proxy-url carries %s', async (scheme) => {
    const proxy = createServer((socket) => {
      socket.once('data', () => {
        socket.write(Uint8Array.of(5, 0))
        socket.once('data', (request) => {
          const target = connect(request.readUInt16BE(8), '127.0.0.1', () => {
            socket.write(Uint8Array.of(5, 0, 0, 1, 127, 0, 0, 1, 0, 0))
            target.pipe(socket).pipe(target)
          })
          target.on('error', () => socket.destroy())
          socket.on('error', () => target.destroy())
        })
      })
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    for await (const server of started(scheme === 'https' ? httpsOptions() : {})) {
      const proxyUrl = new URL(`socks5://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
      const client = clientOf(server.url, { tls: plainTls({ ca: { data: Buffer.from(certificates.ca) } }), proxyUrl })
      await expect(get(client)).resolves.toContain('ServiceList')
      client.close()
    }
    proxy.close()
  })

  test('a proxy that refuses is named', async () => {
    await using server = await TestApiServer.start()
    const client = clientOf('https://127.0.0.1:1', { proxyUrl: new URL(server.url) })
    await expect(get(client)).rejects.toThrow(`through proxy ${new URL(server.url).host}`)
  })
})

test('acceptHeader() prefers protobuf, always understands JSON, and lets acceptContentTypes win', () => {
  expect(acceptHeader({})).toBe('application/vnd.kubernetes.protobuf,application/json')
  expect(acceptHeader({ contentType: 'application/json' })).toBe('application/json')
  expect(acceptHeader({ contentType: 'application/json', acceptContentTypes: 'x/y' })).toBe('x/y')
})
