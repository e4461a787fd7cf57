// The entry to this folder: watches everything that the proxy reads from the API, and never gives up.

import type { Logger } from '../lib/log.ts'
import type { ApiClient } from './api-client.ts'
import { ApiError, isNotServed } from './api-error.ts'
import { flattenSlices } from './flatten-slices.ts'
import { HandOver } from './hand-over.ts'
import { endpointSlices } from './objects/endpoint-slice.ts'
import { endpoints } from './objects/endpoints.ts'
import { nodes } from './objects/node.ts'
import { serviceCidrs } from './objects/service-cidr.ts'
import { services } from './objects/service.ts'
import { DEFAULT_TIMING, type ReflectorTiming } from './reflector-timing.ts'
import { firstPathOf, runReflector } from './reflector.ts'
import type { ResourceHandler } from './resource-handler.ts'
import { sleep } from './sleep.ts'
import type { EndpointSlice, Node, Service, ServiceCIDR } from './types.ts'

export interface ClusterHandlers {
  readonly services: ResourceHandler<Service>
  /** From EndpointSlices, or from Endpoints where the server has no EndpointSlices. */
  readonly slices: ResourceHandler<EndpointSlice>
  /** Our own Node only. Synced without any event means that there is no Node of that name. */
  readonly node: ResourceHandler<Node>
  /** Synced without any event where the server has no ServiceCIDRs, or denies access to them. */
  readonly serviceCidrs: ResourceHandler<ServiceCIDR>
}

export interface WatchClusterOptions {
  readonly client: ApiClient
  readonly nodeName: string
  readonly handlers: ClusterHandlers
  readonly log: Logger
  /** Aborting ends all requests at once. */
  readonly signal: AbortSignal
  readonly timing?: Partial<ReflectorTiming>
  /** In how many milliseconds delivered events will be written; undefined: none are waiting. More are read shortly before. */
  readonly nextWriteMs?: () => number | undefined
  /** Called when a watch of a resource begins that is not its first. */
  readonly onWatchRestarted?: (resource: string) => void
}

const NO_PROXY_NAME = '!service.kubernetes.io/service-proxy-name'
const NOT_HEADLESS = '!service.kubernetes.io/headless'

const selections = {
  services: { resource: services, labelSelector: NO_PROXY_NAME, fieldSelector: 'spec.clusterIP!=None' },
  slices: { resource: endpointSlices, labelSelector: NOT_HEADLESS },
  node: (name: string) => ({ resource: nodes, fieldSelector: `metadata.name=${name}` }),
  serviceCidrs: { resource: serviceCidrs },
}

/** The requests that watchCluster() begins with. */
export function firstPaths(nodeName: string): string[] {
  const { slices, node, serviceCidrs: cidrs } = selections
  // The longest answer first.
  return [slices, selections.services, node(nodeName), cidrs].map(firstPathOf)
}

/** An API server that is upgraded in place may serve new kinds. */
const ASK_AGAIN_MS = 10 * 60_000
/** One that just started may not serve all kinds yet. */
const ASK_SOON_MS = 5_000

/**
 * Lists and watches until the signal is aborted. Resolves after that; rejects only when a handler throws. Failures of the API
 * are retried for ever, and reported to the handlers and in the log.
 */
export async function watchCluster(options: WatchClusterOptions): Promise<void> {
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const watches = [watchServices, watchSlices, watchNode, watchServiceCidrs].map((watch) =>
    watch({ ...options, signal }),
  )
  try {
    await Promise.all(watches)
  } finally {
    // If one failed, the others end before the caller handles the error.
    stop.abort()
    await Promise.allSettled(watches)
  }
}

async function watchServices(options: WatchClusterOptions): Promise<void> {
  const { fieldSelector, ...selection } = selections.services
  const settings = { ...options, ...selection, handler: options.handlers.services }
  try {
    await runReflector({ ...settings, fieldSelector, giveUpOn: isBadRequest })
  } catch (error) {
    if (!isBadRequest(error)) throw error
    // Older servers cannot select by cluster IP. The model leaves headless services out.
    options.log.v(1)?.info('API server cannot leave out headless Services, listing all')
    await runReflector(settings)
  }
}

async function watchSlices(options: WatchClusterOptions): Promise<void> {
  const { log, signal } = options
  const handOver = new HandOver(syncedOnce(options.handlers.slices))
  while (!signal.aborted) {
    try {
      await runReflector({
        ...options,
        ...selections.slices,
        handler: handOver.next('for good'),
        giveUpOn: isNotServed,
      })
    } catch (error) {
      if (!isNotServed(error)) throw error
      log.info('API server has no EndpointSlices (discovery.k8s.io/v1), watching Endpoints instead')
      await watchEndpoints(options, handOver.next('for now'))
    }
  }
}

/** Ends when the API server serves EndpointSlices after all: it was upgraded, or had not been ready. */
async function watchEndpoints(options: WatchClusterOptions, handler: ResourceHandler<EndpointSlice>): Promise<void> {
  const enough = new AbortController()
  const signal = AbortSignal.any([options.signal, enough.signal])
  const labelSelector = `${NO_PROXY_NAME},${NOT_HEADLESS}`
  const watching = runReflector({
    ...options,
    resource: endpoints,
    handler: flattenSlices(handler),
    labelSelector,
    signal,
  })
  try {
    await Promise.race([watching, untilServed(endpointSlices.path, { ...options, signal })])
  } finally {
    enough.abort()
    await watching
  }
}

async function untilServed(path: string, { client, log, signal, timing }: WatchClusterOptions): Promise<void> {
  const clock = timing?.clock ?? DEFAULT_TIMING.clock
  for (let waitMs = ASK_SOON_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, ASK_AGAIN_MS)) {
    await sleep(clock, waitMs, signal).catch(() => {})
    if (signal.aborted) return
    try {
      ;(await client.request({ path: `${path}?limit=1`, signal })).destroy()
      log.info('API server has EndpointSlices now')
      return
    } catch (error) {
      if (!signal.aborted) log.v(2)?.info('API server still gives us no EndpointSlices', { err: error })
    }
  }
}

function watchNode(options: WatchClusterOptions): Promise<void> {
  return runReflector({ ...options, ...selections.node(options.nodeName), handler: options.handlers.node })
}

async function watchServiceCidrs(options: WatchClusterOptions): Promise<void> {
  const { log, signal } = options
  const clock = options.timing?.clock ?? DEFAULT_TIMING.clock
  const handler = syncedOnce(options.handlers.serviceCidrs)
  while (!signal.aborted) {
    try {
      await runReflector({ ...options, ...selections.serviceCidrs, handler, giveUpOn: isNotAvailable })
    } catch (error) {
      if (!isNotAvailable(error)) throw error
      log.v(1)?.info('API server gives us no ServiceCIDRs, doing without', { err: error })
      handler.onSynced?.()
      await sleep(clock, ASK_AGAIN_MS, signal).catch(() => {})
    }
  }
}

/** The same handler; onSynced is called only once. */
function syncedOnce<T>(handler: ResourceHandler<T>): ResourceHandler<T> {
  let synced = false
  return {
    onEvents: (events) => handler.onEvents(events),
    onSynced() {
      if (synced) return
      synced = true
      handler.onSynced?.()
    },
    onUnavailable: (error) => handler.onUnavailable?.(error),
    onAvailable: () => handler.onAvailable?.(),
  }
}

function isBadRequest(error: unknown): boolean {
  return error instanceof ApiError && error.status === 400
}

/** Not served, or forbidden: old manifests of the proxy grant no access to ServiceCIDRs. */
function isNotAvailable(error: unknown): boolean {
  return isNotServed(error) || (error instanceof ApiError && error.status === 403)
}
