// Passes the events of the cluster to the models of both IP families and to the state of this node.

import type { ChangedObject } from '../serve/control/changes.ts'
import type { Unheard } from '../serve/control/state.ts'
import { systemClock } from '../lib/clock.ts'
import type { ObjectEvent } from '../kube/resource-handler.ts'
import type { Node } from '../kube/types.ts'
import type { ClusterHandlers } from '../kube/watch-cluster.ts'
import type { ServiceModel } from '../model/service-model.ts'
import type { FamilyPipeline } from '../reconcile/family-pipeline.ts'

export interface ClusterHandlersOptions {
  readonly pipelines: readonly FamilyPipeline[]
  /** Kept: the kinds of objects that the source does not tell about at present. */
  readonly unheard: Map<string, Unheard>
  readonly setNode: (node: Node | undefined) => void
  /** Called with the ranges of one ServiceCIDR object; none when it is deleted. */
  readonly setServiceCidr: (name: string, cidrs: readonly string[]) => void
  /** When the Node has been listed; calls back when the rules can be made as far as the Node is concerned. */
  readonly onNodeListed: (proceed: () => void) => void
  /** Once, when every kind of object has been listed and the Node has been waited for. */
  readonly onListed: () => void
  /** Once, when there have been more slices than an ordinary cluster has. */
  readonly onMany: () => void
}

const MANY = 2_000

export function clusterHandlers(options: ClusterHandlersOptions): ClusterHandlers {
  const { pipelines, unheard, setNode, setServiceCidr } = options
  let slices = 0
  // No rules are written until all objects have been listed: old rules are better than those of half of the services.
  const missing = new Set(['services', 'endpoints', 'node', 'service CIDRs'])
  const complete = (what: string) => {
    if (missing.delete(what) && missing.size === 0) options.onListed()
  }
  const about = (what: string) => ({
    onSynced: () => complete(what),
    onUnavailable: (error: Error) => {
      unheard.set(what, { what, sinceMs: systemClock.now(), error: error.message })
    },
    onAvailable: () => {
      unheard.delete(what)
    },
  })
  const record = (kind: ChangedObject['kind'], events: readonly ObjectEvent<unknown>[]) => {
    for (const pipeline of pipelines) {
      const { recorder } = pipeline
      if (recorder.isOn) for (const event of events) recorder.received(describeEvent(kind, event))
    }
  }
  const eachModel = (change: (model: ServiceModel) => void) => {
    for (const pipeline of pipelines) {
      change(pipeline.model)
      pipeline.changed()
    }
  }
  return {
    services: {
      ...about('services'),
      onEvents: (events) => {
        record('Service', events)
        eachModel((model) => {
          for (const event of events) {
            if (event.type === 'set') model.setService(event.object, event.key)
            else model.deleteService(event.key)
          }
        })
      },
    },
    slices: {
      ...about('endpoints'),
      onEvents: (events) => {
        record('EndpointSlice', events)
        if (slices < MANY && (slices += events.length) >= MANY) options.onMany()
        eachModel((model) => {
          for (const event of events) {
            if (event.type === 'set') model.setSlice(event.object, event.key)
            else model.deleteSlice(event.key)
          }
        })
      },
    },
    node: {
      ...about('node'),
      onSynced: () => options.onNodeListed(() => complete('node')),
      onEvents: (events) => {
        record('Node', events)
        for (const event of events) setNode(event.type === 'set' ? event.object : undefined)
      },
    },
    serviceCidrs: {
      ...about('service CIDRs'),
      onEvents: (events) => {
        record('ServiceCIDR', events)
        for (const event of events) setServiceCidr(event.key, event.type === 'set' ? event.object.cidrs : [])
      },
    },
  }
}

function describeEvent(kind: ChangedObject['kind'], { key, type }: ObjectEvent<unknown>): ChangedObject {
  const slash = key.indexOf('/')
  return {
    kind,
    namespace: key.slice(0, Math.max(0, slash)),
    name: key.slice(slash + 1),
    verb: type === 'set' ? 'set' : 'deleted',
  }
}
