// The API server of the comparison: that of the sandbox, or a real one with its etcd.

import { benchNode } from '../support/api-server/sample-cluster.ts'
import { spawn, type ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeReady } from './measured-proxy.ts'
import { TestApiServer } from '../support/api-server/api-server.ts'
import type { ApiObject } from '../support/api-server/objects.ts'

export interface BenchApi extends AsyncDisposable {
  readonly kubeconfig: string
  /** Stores these, and a Node. */
  load(objects: readonly ApiObject[]): Promise<void>
  put(object: ApiObject): Promise<void>
}

const node = benchNode('10.255.255.1')

export async function openApi(program: string | undefined): Promise<BenchApi> {
  return program === undefined ? openSandboxApi() : openRealApi(program)
}

async function openSandboxApi(): Promise<BenchApi> {
  const server = await TestApiServer.start()
  const folder = mkdtempSync(join(tmpdir(), 'beside-api-'))
  return {
    kubeconfig: writeKubeconfig(folder, { server: server.url }, {}),
    load: async (objects) => {
      server.store.applyAll([node, ...objects])
      // For the first program as for the others.
      await makeReady(server.url)
    },
    put: async (object) => void server.store.apply(structuredClone(object)),
    async [Symbol.asyncDispose]() {
      await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}

const token = 'a-token'
const port = 16_443
/** Requests at a time. */
const CONCURRENCY = 32

async function openRealApi(program: string): Promise<BenchApi> {
  const folder = mkdtempSync(join(tmpdir(), 'beside-api-'))
  const file = (name: string) => join(folder, name)
  const children: ChildProcess[] = []
  const start = (name: string, command: string, args: readonly string[]) => {
    const log = openSync(file(`${name}.log`), 'w')
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', command, ...args], { stdio: ['ignore', log, log] })
    children.unshift(child)
  }
  start('etcd', process.env['ETCD'] ?? 'etcd', [
    '--data-dir',
    file('etcd'),
    '--unsafe-no-fsync',
    '--listen-client-urls=http://127.0.0.1:12379',
    '--advertise-client-urls=http://127.0.0.1:12379',
    '--listen-peer-urls=http://127.0.0.1:12380',
    '--initial-advertise-peer-urls=http://127.0.0.1:12380',
    '--initial-cluster=default=http://127.0.0.1:12380',
  ])
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(file('key.pem'), privateKey.export({ type: 'pkcs1', format: 'pem' }))
  writeFileSync(file('tokens'), `${token},bench,bench,system:masters\n`)
  start('apiserver', program, [
    '--etcd-servers=http://127.0.0.1:12379',
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=10.255.255.1',
    `--cert-dir=${file('certificates')}`,
    `--token-auth-file=${file('tokens')}`,
    '--authorization-mode=AlwaysAllow',
    '--service-cluster-ip-range=172.16.0.0/12',
    '--service-account-issuer=https://bench',
    `--service-account-key-file=${file('key.pem')}`,
    `--service-account-signing-key-file=${file('key.pem')}`,
    '--disable-admission-plugins=ServiceAccount',
    '--max-requests-inflight=4000',
    '--max-mutating-requests-inflight=4000',
  ])
  const agent = new https.Agent({ keepAlive: true, maxSockets: CONCURRENCY, rejectUnauthorized: false })
  const request = (method: string, path: string, body?: object) => send(agent, method, path, body)
  const server = `https://127.0.0.1:${port}`
  await ready(request, () => readFileSync(file('apiserver.log'), 'utf8').slice(-2000))
  const put = async (object: ApiObject) => {
    const { status, text } = await request('PUT', `${pathOf(object)}/${object.metadata.name}`, bodyOf(object))
    if (status >= 300) throw new Error(`Cannot change ${object.kind} ${object.metadata.name}: ${status} ${text}`)
  }
  const create = async (object: ApiObject) => {
    const { status, text } = await request('POST', pathOf(object), bodyOf(object))
    if (status >= 300 && status !== 409)
      throw new Error(`Cannot create ${object.kind} ${object.metadata.name}: ${status} ${text}`)
  }
  return {
    kubeconfig: writeKubeconfig(folder, { server, 'insecure-skip-tls-verify': true }, { token }),
    put,
    async load(objects) {
      const waiting = [node, ...objects].values()
      const work = async () => {
        for (const object of waiting) await create(object)
      }
      await Promise.all(Array.from({ length: CONCURRENCY }, work))
    },
    async [Symbol.asyncDispose]() {
      agent.destroy()
      for (const child of children) {
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        await Promise.race([ended, sleep(5000).then(() => child.kill('SIGKILL'))])
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Answer {
  readonly status: number
  readonly text: string
}

function send(agent: https.Agent, method: string, path: string, body?: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const request = https.request({ agent, host: '127.0.0.1', port, method, path, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    request.on('error', reject)
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

async function ready(request: (method: string, path: string) => Promise<Answer>, log: () => string): Promise<void> {
  for (let i = 0; i < 600; i++) {
    const { status } = await request('GET', '/readyz').catch(() => ({ status: 0 }))
    const namespace = status === 200 ? await request('GET', '/api/v1/namespaces/default') : { status: 0 }
    if (namespace.status === 200) return
    await sleep(200)
  }
  throw new Error(`Cannot measure: the API server does not get ready: ${log()}`)
}

const apiVersions: Readonly<Record<string, string>> = {
  Service: 'v1',
  Node: 'v1',
  EndpointSlice: 'discovery.k8s.io/v1',
}

function pathOf({ kind }: ApiObject): string {
  if (kind === 'Node') return '/api/v1/nodes'
  return kind === 'Service'
    ? '/api/v1/namespaces/default/services'
    : '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
}

function bodyOf(object: ApiObject): object {
  return { ...object, apiVersion: apiVersions[object.kind ?? ''] }
}

export function writeKubeconfig(folder: string, cluster: object, user: object): string {
  const text = JSON.stringify({
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })
  const file = join(folder, 'kubeconfig')
  writeFileSync(file, text)
  return file
}
