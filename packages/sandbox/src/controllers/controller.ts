import type { ControlLoop } from './control-loop.ts'
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

export function placeOf(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/')
  return slash < 0 ? { namespace: '', name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
