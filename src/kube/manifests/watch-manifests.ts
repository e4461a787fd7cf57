// Files in place of an API server: the same handlers, with objects from a folder of YAML and JSON.

import { readFileSync } from 'node:fs'
import type { Logger } from '../../lib/log.ts'
import { messageOf } from '../../lib/errors.ts'
import { flattenSlices } from '../flatten-slices.ts'
import type { ObjectEvent, ResourceHandler } from '../resource-handler.ts'
import type { ClusterHandlers } from '../watch-cluster.ts'
import { ManifestSet } from './manifest-set.ts'
import { readOwnNode } from './own-node.ts'
import { parseManifest } from './parse-manifest.ts'
import { watchFolder, type FileChange } from './watch-folder.ts'

export interface WatchManifestsOptions {
  /** A folder, or a single file. */
  readonly path: string
  readonly nodeName: string
  readonly handlers: ClusterHandlers
  readonly log: Logger
  readonly signal: AbortSignal
}

/**
 * Delivers the objects of the files, and their changes, until the signal is aborted. An invalid file is logged, and its last valid
 * objects stay. Rejects when the folder cannot be read at first.
 */
export async function watchManifests(options: WatchManifestsOptions): Promise<void> {
  const { path, handlers, log, signal } = options
  const set = new ManifestSet(options.nodeName)
  const deliver = delivererTo(handlers)
  let isSynced = false
  warnOfForwarding(log)
  // Until a file has this Node.
  handlers.node.onEvents([{ type: 'set', key: options.nodeName, object: await readOwnNode(options.nodeName) }])
  for await (const changes of foldersChanges(path, signal)) {
    for (const change of changes) takeChange(set, change, log)
    const { events, duplicates } = set.take()
    for (const { file, line, text } of duplicates) log.warn(`${file}:${line}: ${text}, passing over it`)
    deliver(events)
    const { length } = [events.Service, events.EndpointSlice, events.Endpoints, events.Node, events.ServiceCIDR].flat()
    log.info(isSynced ? 'Manifests changed' : 'Read manifests', { path, files: changes.length, changes: length })
    if (isSynced) continue
    isSynced = true
    for (const handler of Object.values(handlers) as ResourceHandler<unknown>[]) {
      handler.onAvailable?.()
      handler.onSynced?.()
    }
  }
}

/** Nodes of a cluster forward packets. Other machines mostly do not. */
function warnOfForwarding(log: Logger): void {
  let value: string
  try {
    value = readFileSync('/proc/sys/net/ipv4/ip_forward', 'latin1')
  } catch {
    return
  }
  if (value.trim() !== '0') return
  log.warn(
    'net.ipv4.ip_forward is 0: this machine passes nothing on to endpoints elsewhere, unless in userspace mode. To change it: sysctl -w net.ipv4.ip_forward=1',
  )
}

async function* foldersChanges(path: string, signal: AbortSignal): AsyncGenerator<readonly FileChange[]> {
  try {
    yield* watchFolder(path, signal)
  } catch (error) {
    throw new Error(`Cannot read manifests in ${path}: ${messageOf(error)}`, { cause: error })
  }
}

function takeChange(set: ManifestSet, change: FileChange, log: Logger): void {
  const { file } = change
  if ('gone' in change) return set.delete(file)
  if ('error' in change) {
    return log.error(undefined, `Cannot read ${file}: ${change.error.message}; what it said before stays`)
  }
  const { objects, remarks } = parseManifest(change.text)
  const errors = remarks.filter(({ severity }) => severity === 'error')
  for (const { line, text } of remarks.filter(({ severity }) => severity === 'warning')) {
    log.warn(`${file}:${line}: ${text}`)
  }
  if (errors.length === 0) return set.set(file, objects)
  for (const { line, text } of errors) log.error(undefined, `${file}:${line}: ${text}`)
  const count = errors.length === 1 ? 'one error' : `${errors.length} errors`
  log.error(undefined, `Cannot use ${file}: ${count}; what it said before stays`)
}

type Events = ReturnType<ManifestSet['take']>['events']

function delivererTo(handlers: ClusterHandlers): (events: Events) => void {
  const endpoints = flattenSlices(handlers.slices)
  return (events) => {
    notify(handlers.serviceCidrs, events.ServiceCIDR)
    // A Node that is deleted from the files stays: the machine is still there.
    notify(
      handlers.node,
      events.Node.filter(({ type }) => type === 'set'),
    )
    notify(handlers.slices, events.EndpointSlice)
    notify(endpoints, events.Endpoints)
    notify(handlers.services, events.Service)
  }
}

function notify<T>(handler: ResourceHandler<T>, events: readonly ObjectEvent<T>[]): void {
  if (events.length > 0) handler.onEvents(events)
}
