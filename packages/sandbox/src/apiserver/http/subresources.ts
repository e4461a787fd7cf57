// Parts of objects with an address of their own: status, scale, finalize, eviction.

import { acceptObject, readObject } from './incoming-object.ts'
import { applyPatch, servePatch } from './patch-verb.ts'
import { methodNotAllowed } from '../api-error.ts'
import { formatRequirements, fromMap, fromObject } from '../selectors/label-selector.ts'
import { isDryRun, parseDeleteOptions, serveUpdate } from './write-verbs.ts'
import { isStream, notOffered } from './pod-streams.ts'
import { mediaType, readBody } from './body.ts'
import { pods } from '../resources/pod.ts'
import { sendKind, sendStored } from './exchange.ts'
import type { ApiObject, LabelSelector } from '../objects/meta.ts'
import type { Exchange } from './exchange.ts'
import type { IncomingKind } from './incoming-object.ts'
import type { JsonObject } from '../json.ts'
import type { Scale } from '../objects/workloads.ts'

export async function serveSubresource(exchange: Exchange): Promise<void> {
  const { subresource } = exchange.request
  if (isStream(subresource)) return serveLog(exchange)
  switch (subresource) {
    case 'status':
      return serveStatus(exchange)
    case 'finalize':
      return serveUpdate(exchange, 'namespace finalizers')
    case 'scale':
      return serveScale(exchange)
    case 'eviction':
      return serveEviction(exchange)
    default:
      throw methodNotAllowed()
  }
}

async function serveStatus(exchange: Exchange): Promise<void> {
  const { api, request } = exchange
  switch (request.verb) {
    case 'get':
      return sendStored(exchange, 200, api.registry.get(request.resource, request))
    case 'update':
      return serveUpdate(exchange, 'status')
    default:
      return servePatch(exchange, 'status')
  }
}

const scaleKind: IncomingKind = { kind: 'Scale', apiVersion: 'autoscaling/v1', message: 'autoscaling.Scale' }

interface Scalable extends ApiObject {
  spec: { replicas?: number; selector?: LabelSelector | Record<string, string> }
  status: { replicas?: number }
}

async function serveScale(exchange: Exchange): Promise<void> {
  const { api, request, incoming } = exchange
  const current = api.registry.get(request.resource, request).object as Scalable
  const scale = scaleOf(current)
  if (request.verb === 'get') return sendKind(exchange, 200, scale, scaleKind.message)
  const requested =
    request.verb === 'update'
      ? await readObject(exchange, scaleKind)
      : acceptObject(
          exchange,
          applyPatch(scale, { bytes: await readBody(incoming), type: mediaType(incoming) }, scaleKind),
          scaleKind,
        )
  const { spec, metadata } = requested as Scale
  const next = structuredClone(current)
  next.spec.replicas = spec.replicas ?? 0
  if (metadata.resourceVersion !== undefined) next.metadata.resourceVersion = metadata.resourceVersion
  const stored = api.registry.update(request.resource, next, { dryRun: isDryRun(request.query) })
  sendKind(exchange, 200, scaleOf(stored.object as Scalable), scaleKind.message)
}

function scaleOf({ metadata, spec, status }: Scalable): JsonObject {
  const { name, namespace = '', uid = '', resourceVersion = '', creationTimestamp = '' } = metadata
  const selector = spec.selector ?? {}
  const isObject = 'matchLabels' in selector || 'matchExpressions' in selector
  const requirements = isObject ? fromObject(selector) : fromMap(selector as Record<string, string>)
  return {
    kind: scaleKind.kind,
    apiVersion: scaleKind.apiVersion,
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: spec.replicas ?? 0 },
    status: { replicas: status.replicas ?? 0, selector: formatRequirements(requirements) },
  }
}

const created = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } as const

/** A polite delete, as `kubectl drain` asks for it. Nothing limits how many pods may go at once. */
async function serveEviction(exchange: Exchange): Promise<void> {
  const { api, request } = exchange
  const eviction = await readObject(exchange, { kind: 'Eviction', apiVersion: 'policy/v1', message: 'policy.Eviction' })
  const { deleteOptions } = eviction as ApiObject & { deleteOptions?: JsonObject }
  api.registry.delete(pods, request, parseDeleteOptions(deleteOptions ?? {}, request.query))
  sendKind(exchange, 201, { ...created }, 'meta.Status')
}

/** A request for a stream that did not ask to be upgraded: the logs, or a client that cannot know better. */
async function serveLog({ api, request, incoming, response }: Exchange): Promise<void> {
  const pod = api.registry.get(pods, request).object
  if (!isStream(request.subresource)) throw methodNotAllowed()
  if (request.subresource !== 'log' || api.podStreams.log === undefined) throw notOffered(request.subresource)
  await api.podStreams.log({ pod, query: request.query, incoming, response })
}
