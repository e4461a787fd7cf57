import type { ControlLoop } from './control-loop.ts'
import type { ApiObject, OwnerReference } from '../apiserver/objects/meta.ts'
import type { EventRecorder } from './event-recorder.ts'
import type { Clock } from '../../../../src/lib/clock.ts'
import type { Logger } from '../../../../src/lib/log.ts'
import type { Registry } from '../apiserver/registry/registry.ts'

export interface ControllerContext {
  readonly registry: Registry
  readonly loop: ControlLoop
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Logger
}

/** The reference of what a controller made to the object that it was made for. */
export function ownerReferenceTo({ apiVersion, kind, metadata: { name, uid = '' } }: ApiObject): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }
}

export function placeOf(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/')
  return slash < 0 ? { namespace: '', name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
