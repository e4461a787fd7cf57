// What the API server lets us do, and what it says of our Node. Asks what the proxy asks, and keeps nothing open.

import type { IncomingMessage } from 'node:http'
import { AccessError } from '../../kube/access/cluster-access.ts'
import type { ApiClient } from '../../kube/api-client.ts'
import { ApiError } from '../../kube/api-error.ts'
import { JSON_TYPE } from '../../kube/encoding/codec.ts'
import { JsonReader } from '../../kube/encoding/json-reader.ts'
import { StringPool } from '../../kube/encoding/string-pool.ts'
import { type ClientSettings, openApiClient } from '../../kube/open-client.ts'
import { endpointSlices } from '../../kube/objects/endpoint-slice.ts'
import { nodes } from '../../kube/objects/node.ts'
import { serviceCidrs } from '../../kube/objects/service-cidr.ts'
import { services } from '../../kube/objects/service.ts'
import { readStart } from '../../kube/read-body.ts'
import type { Node } from '../../kube/types.ts'
import { systemClock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/log.ts'
import type { ApiFacts, ApiRequestFact } from './facts.ts'

const TIMEOUT_MS = 10_000

export interface ApiQuestion {
  readonly settings: ClientSettings
  /** `--manifests` */
  readonly manifests: string
  readonly nodeName: string
}

export interface ApiAnswers {
  readonly api: ApiFacts
  /** Undefined when there is none, `unknown` when the API server did not answer. */
  readonly node: Node | undefined | 'unknown'
}

export async function readApi({ settings, manifests, nodeName }: ApiQuestion): Promise<ApiAnswers> {
  if (manifests !== '') return { api: { kind: 'files', folder: manifests }, node: 'unknown' }
  if (isNotNamed(settings)) return { api: { kind: 'not named' }, node: 'unknown' }
  const warnings: string[] = []
  let client: ApiClient
  try {
    // A few questions, at once: the limits are for a proxy that runs.
    client = openApiClient({ ...settings, qps: 0, burst: 0 }, { ...silentLogger, warn: (text) => warnings.push(text) })
  } catch (error) {
    return noAccess(error)
  }
  try {
    return await ask(new Questions(client), { warnings, nodeName })
  } catch (error) {
    return noAccess(error)
  } finally {
    client.close()
  }
}

/** Whoever tries this on a machine of theirs has not said which cluster; a pod knows by its environment. */
function isNotNamed({ kubeconfig, master }: ClientSettings): boolean {
  return kubeconfig === '' && (master ?? '') === '' && (process.env['KUBERNETES_SERVICE_HOST'] ?? '') === ''
}

/** Asks for the version alone, which comes with the time. */
export async function readClock({ settings, manifests }: Omit<ApiQuestion, 'nodeName'>): Promise<ApiFacts> {
  if (manifests !== '') return { kind: 'files', folder: manifests }
  const client = openApiClient({ ...settings, qps: 0, burst: 0 }, silentLogger)
  try {
    const questions = new Questions(client)
    const version = await questions.version()
    const { server, requests, clockAheadMs } = questions
    return { kind: 'asked', server, warnings: [], version, requests, clockAheadMs }
  } finally {
    client.close()
  }
}

function noAccess(error: unknown): ApiAnswers {
  if (!(error instanceof AccessError)) throw error
  return { api: { kind: 'no access', reason: error.message }, node: 'unknown' }
}

async function ask(
  questions: Questions,
  { warnings, nodeName }: { readonly warnings: readonly string[]; readonly nodeName: string },
): Promise<ApiAnswers> {
  const version = await questions.version()
  const ours = `&fieldSelector=metadata.name=${encodeURIComponent(nodeName)}`
  for (const { name, path } of [services, endpointSlices, serviceCidrs]) {
    await questions.ask('list', name, `${path}?limit=1`)
    await questions.ask('watch', name, `${path}?watch=true&timeoutSeconds=1`)
    // One that is not there will not answer the others either.
    if (questions.isSilent) break
  }
  let node: ApiAnswers['node'] = 'unknown'
  if (!questions.isSilent) {
    const list = await questions.ask('list', nodes.name, `${nodes.path}?limit=1${ours}`)
    await questions.ask('watch', nodes.name, `${nodes.path}?watch=true&timeoutSeconds=1${ours}`)
    if (list !== undefined) node = nodeOf(list)
  }
  const { server, requests, clockAheadMs } = questions
  return { api: { kind: 'asked', server, warnings, version, requests, clockAheadMs }, node }
}

function nodeOf(list: unknown): Node | undefined {
  const reader = new JsonReader(new StringPool(16))
  const [item] = reader.objects(reader.object(list)['items'])
  return item === undefined ? undefined : nodes.fromJson(item, reader).object
}

class Questions {
  readonly #client: ApiClient
  readonly requests: ApiRequestFact[] = []
  clockAheadMs: number | undefined

  constructor(client: ApiClient) {
    this.#client = client
  }

  get server(): string {
    return this.#client.server
  }

  get isSilent(): boolean {
    return this.requests.some(({ status }) => status === 0)
  }

  /** Every user may usually read it; where not, the lists say more. */
  async version(): Promise<string | undefined> {
    try {
      const answer = await this.#json(await this.#request('/version'))
      return (
        new JsonReader(new StringPool(4)).string((answer as Record<string, unknown> | undefined)?.['gitVersion']) ||
        undefined
      )
    } catch (error) {
      if (error instanceof AccessError) throw error
      return undefined
    }
  }

  /** The body of a list; undefined when it was refused, and for a watch, which is ended as soon as it begins. */
  async ask(verb: ApiRequestFact['verb'], resource: string, path: string): Promise<unknown> {
    try {
      const response = await this.#request(path)
      this.requests.push({ verb, resource, status: response.statusCode ?? 0, reason: '' })
      if (verb === 'list') return await this.#json(response)
      response.destroy()
    } catch (error) {
      if (error instanceof AccessError) throw error
      const status = error instanceof ApiError ? error.status : 0
      this.requests.push({ verb, resource, status, reason: messageOf(error) })
    }
    return undefined
  }

  async #request(path: string): Promise<IncomingMessage> {
    const startMs = Date.now()
    const response = await this.#client.request({ path, accept: JSON_TYPE, signal: AbortSignal.timeout(TIMEOUT_MS) })
    const theirsMs = Date.parse(response.headers.date ?? '')
    // The header leaves out the fraction, half a second on average; it was written in the middle of our wait, on average.
    if (!Number.isNaN(theirsMs)) this.clockAheadMs ??= theirsMs + 500 - (startMs + Date.now()) / 2
    return response
  }

  async #json(response: IncomingMessage): Promise<unknown> {
    const body = await readStart(response, systemClock)
    try {
      return JSON.parse(body.toString('utf8'))
    } catch {
      return undefined
    }
  }
}
