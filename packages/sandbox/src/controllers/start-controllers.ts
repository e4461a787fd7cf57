// Everything that makes a cluster out of an API server.

import { ControlLoop } from './control-loop.ts'
import { EventRecorder } from './event-recorder.ts'
import { Kubelet } from './kubelet.ts'
import { noRuntime } from './pod-runtime.ts'
import { silentLogger } from '../../../../src/lib/log.ts'
import { startDeploymentController } from './deployment-controller.ts'
import { startEndpointsController } from './endpoints-controller.ts'
import { startGarbageCollector } from './garbage-collector.ts'
import { startLoadBalancers } from './load-balancers.ts'
import { startMirrorController } from './mirror-controller.ts'
import { startNamespaceController } from './namespace-controller.ts'
import { startReplicaControllers } from './replica-controller.ts'
import { startScheduler } from './scheduler.ts'
import { startServiceCidrController } from './service-cidr-controller.ts'
import { every, systemClock, type Clock } from '../../../../src/lib/clock.ts'
import type { ControllerContext } from './controller.ts'
import type { Logger } from '../../../../src/lib/log.ts'
import type { PodRuntime } from './pod-runtime.ts'
import type { Registry } from '../apiserver/registry/registry.ts'

export interface ControllerOptions {
  readonly registry: Registry
  /** What runs the pods; nothing does without it. */
  readonly runtime?: PodRuntime
  readonly loadBalancerPool?: readonly string[]
  /** How long a deleted pod serves on, within its grace period. */
  readonly drainSeconds?: number
  readonly clock?: Clock
  readonly log?: Logger
}

export interface Controllers extends AsyncDisposable {
  /** Whether they have nothing to do at the moment. */
  readonly isIdle: boolean
  /** Stops deciding, and then every pod. */
  close(): Promise<void>
}

const defaultDrainSeconds = 2
const expiryIntervalMs = 60_000

export function startControllers(options: ControllerOptions): Controllers {
  const { registry } = options
  const clock = options.clock ?? systemClock
  const log = options.log ?? silentLogger
  const loop = new ControlLoop({ clock, log })
  const context: ControllerContext = { registry, loop, events: new EventRecorder(registry), clock, log }
  startGarbageCollector(context)
  startNamespaceController(context)
  startServiceCidrController(context)
  startReplicaControllers(context)
  startDeploymentController(context)
  startScheduler(context)
  const kubelet = new Kubelet(context, {
    runtime: options.runtime ?? noRuntime,
    drainSeconds: options.drainSeconds ?? defaultDrainSeconds,
  })
  startEndpointsController(context)
  startMirrorController(context)
  startLoadBalancers(context, options.loadBalancerPool ?? [])
  const expiry = every(clock, expiryIntervalMs, () => context.events.expire())
  const close = async (): Promise<void> => {
    loop.stop()
    expiry.cancel()
    await kubelet.stopAll()
  }
  return {
    get isIdle() {
      return loop.isIdle
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
